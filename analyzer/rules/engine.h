#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/findings/finding.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/suppression.h"
#include "passes/results/pass_results.h"

namespace tensorlint::rules {

/// Codes of the rules that a word means: a rule's name or code, the beginning of codes (`TL-S`, `TL-S2`), or a group
/// (`shape`). Empty when it means none.
std::vector<std::string_view> rules_matching(std::string_view pattern);

/// The words that people use for rules: names and groups.
std::span<const std::string_view> rule_words();

/// Which rules may report, all of them unless chosen, and as what.
class RuleSelection {
 public:
  /// Patterns are those of rules_matching. False when nothing matches.
  bool select(std::string_view pattern);
  bool ignore(std::string_view pattern);
  /// The pattern that means fewer rules wins, else the later one.
  bool set_severity(std::string_view pattern, findings::Severity severity);
  void suppress(Suppression suppression) { suppressions_.push_back(std::move(suppression)); }
  /// Keeps up to `limit` findings of one rule instead of Reporter::kMaxFindingsPerRule: for those who compare them all.
  void keep(std::size_t limit) { limit_ = limit; }
  /// Where the lines of the user's program are read besides the model's folder and the working folder.
  void read_sources_below(std::string folder) { source_root_ = std::move(folder); }

  bool allows(const RuleInfo& rule) const { return allows(rule.code); }
  bool allows(std::string_view code) const {
    return (!chosen_ || selected_.contains(code)) && !ignored_.contains(code);
  }
  /// Runs a rule that is not selected, or ignored, to count what it would have reported.
  void count_left_out(std::string_view code) { left_out_.insert(code); }
  bool runs(const RuleInfo& rule) const { return allows(rule.code) || left_out_.contains(rule.code); }
  std::optional<findings::Severity> severity(std::string_view code) const;
  const std::vector<Suppression>& suppressions() const { return suppressions_; }
  std::size_t limit() const { return limit_; }
  const std::string& source_root() const { return source_root_; }

 private:
  struct Override {
    findings::Severity severity;
    std::size_t rules;  ///< that the pattern means
  };
  bool chosen_ = false;
  std::set<std::string_view> selected_, ignored_, left_out_;
  std::map<std::string_view, Override> severities_;
  std::vector<Suppression> suppressions_;
  std::size_t limit_ = Reporter::kMaxFindingsPerRule;
  std::string source_root_;
};

struct RuleResults {
  std::vector<findings::Finding> findings;  ///< sorted, one for each mistake (group_by_cause)
  findings::SeverityCounts counts;          ///< of all that was found, also past the caps
  std::vector<std::size_t> suppressed;      ///< findings taken away, by suppression of the selection
  std::size_t suppressed_by_comments = 0;
  std::size_t omitted_places = 0;  ///< past the caps, of findings that are counted
  std::size_t left_out = 0;        ///< findings of rules that count_left_out named
};

/// The passes whose results the rules of a selection read. `copies_at_run_time`: as of run_rules.
passes::PassSet passes_needed(const dataflow::Analysis& analysis, const RuleSelection& selection,
                              bool copies_at_run_time);

/// Runs all rules that the selection allows, after passes_needed. Exactly one rule words each failed precondition.
/// `copies_at_run_time`: the runtime copies between devices; rules report what that costs, and not which operands are
/// on different devices.
RuleResults run_rules(const passes::PassResults& known, const RuleSelection& selection,
                      bool copies_at_run_time = false);

}  // namespace tensorlint::rules
