#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "analyzer/findings/finding.h"
#include "analyzer/rules/rule.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint {

/// The rules that may report: all of them unless chosen.
class RuleSelection {
 public:
  /// A rule's name or code, the beginning of codes (`TL-S`, `TL-S2`), or a group (`shape`). False when nothing matches.
  bool select(std::string_view pattern);
  bool ignore(std::string_view pattern);
  bool allows(const RuleInfo& rule) const { return (!chosen_ || selected_.contains(rule.code)) && !ignored_.contains(rule.code); }

 private:
  bool chosen_ = false;
  std::set<std::string_view> selected_, ignored_;
};

struct RuleResults {
  std::vector<Finding> findings;  ///< sorted, each said once
  SeverityCounts counts;          ///< of all that was found, also past the caps
};

/// Runs all rules that the selection allows. Exactly one rule words each failed precondition.
/// Rules about devices need a `placement` of the same analysis; null: they say nothing. With a `cost` the runtime
/// copies between devices: rules say what that costs instead of where operands are apart.
RuleResults run_rules(const Analysis& analysis, const RuleSelection& selection, const Placement* placement = nullptr, const RuntimeCost* cost = nullptr);

}  // namespace tensorlint
