#pragma once

#include <string>

#include "analyzer/rules/rule.h"
#include "passes/placement/placement.h"

namespace tensorlint::rules {

/// Reports the violations of a placement that have one of these causes, with where both sides come from and the
/// witness.
void report_placement_violations(const ModelView& view, Reporter& out,
                                 std::initializer_list<placement::PlacementCause> causes);

/// A number, a formula in the extents' names, or nothing.
std::string bytes_text(const dataflow::Analysis& analysis, Dim bytes);
findings::TransferCost to_transfer_cost(const dataflow::Analysis& analysis, const placement::CostCase& run);

/// "in the second iteration", "in iteration 7"
std::string iteration_text(std::int64_t iteration);

}  // namespace tensorlint::rules
