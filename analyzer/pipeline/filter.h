#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/config/baseline.h"
#include "analyzer/findings/finding.h"
#include "analyzer/findings/suppression.h"
#include "analyzer/rules/engine.h"
#include "base/meter.h"
#include "ir/graph/model.h"

namespace tensorlint::pipeline {

/// What is not reported of an input, besides what its comments suppress.
struct FilterOptions {
  using Suppressions = std::vector<std::shared_ptr<const findings::Suppression>>;
  std::shared_ptr<const Suppressions> suppressions;  ///< null: none
  std::shared_ptr<const config::Baseline> baseline;  ///< null: none
};

/// What is reported of an input, and how much is not.
struct CheckResults {
  std::vector<findings::Finding> findings;  ///< sorted, one for each mistake (group_by_cause)
  findings::SeverityCounts counts;          ///< of all that is reported, also past the caps
  std::size_t omitted_places = 0;           ///< past the caps, of findings that are counted
  std::size_t left_out = 0;                 ///< findings of rules that RuleSelection::count_left_out named
  std::size_t suppressed_by_comments = 0;
  std::vector<std::size_t> suppressed;  ///< findings taken away, by suppression of the options
  std::size_t in_baseline = 0;          ///< places taken away
  std::size_t gone = 0;                 ///< in the baseline, and no longer found
  bool is_partial = false;              ///< PassResults::is_partial
};

/// Takes away what is not to be reported: findings of rules that are not selected, what comments and the options
/// suppress, what follows from another finding, what the baseline knows. Reports the comments that suppress nothing.
/// `meter`: of the input; once it is spent, options suppress nothing more.
CheckResults filter(const Model& model, rules::RuleResults found, const rules::RuleSelection& selection,
                    const FilterOptions& options, Meter& meter);

/// Whether a suppression could have taken anything away: a rule that did not run proves nothing.
bool all_run(const findings::Suppression& suppression, const rules::RuleSelection& selection);

/// The finding about a suppression that takes nothing away, of the rule `unused-suppression`, wherever it is written.
findings::Finding unused_suppression(const findings::Suppression& suppression, const rules::RuleSelection& selection);
bool reports_unused_suppressions(const rules::RuleSelection& selection);

}  // namespace tensorlint::pipeline
