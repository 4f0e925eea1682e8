#pragma once

#include <cstddef>
#include <vector>

#include "analyzer/findings/finding.h"
#include "ir/graph/edit.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::fixes {

/// The fixes that go into a model together.
struct FixPlan {
  std::vector<GraphEdit> edits;
  std::vector<const findings::Finding*> fixed;  ///< or other places of findings; with `fixes_used` of the same index
  std::vector<const findings::Fix*> fixes_used;
  std::size_t unsafe_left = 0;  ///< findings that only an unsafe fix would mend, and none was allowed
};

/// Takes the first fix with edits of each place of each finding, safe ones only unless `unsafe`. The first finding wins
/// where two change the same operand or attribute, or one changes what another takes away or moves; a second run mends
/// what is left out, as it does where the plan would be too large. `findings` are of `model` and must outlive the plan.
FixPlan plan_fixes(const Model& model, const std::vector<findings::Finding>& findings, bool unsafe);

/// Drops the value_info of intermediate values that a fix has made wrong: declared types that contradict what is
/// inferred of the fixed model and did not before.
std::vector<GraphEdit> drop_stale_declarations(const dataflow::Analysis& before, const dataflow::Analysis& after);

}  // namespace tensorlint::fixes
