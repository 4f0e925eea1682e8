#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/findings/finding.h"
#include "analyzer/findings/rule_codes.h"
#include "analyzer/findings/rule_names.h"
#include "analyzer/rules/rule.h"
#include "base/copy_on_write.h"
#include "passes/results/pass_results.h"

namespace tensorlint::rules {

/// What people call the rules that are registered.
const findings::RuleNames& rule_names();

/// Which rules may report, all of them unless chosen, and as what.
class RuleSelection {
 public:
  /// Patterns are those of RuleNames::codes_of. False when nothing matches.
  bool select(std::string_view pattern);
  bool ignore(std::string_view pattern);
  /// The pattern that means fewer rules wins, else the later one.
  bool set_severity(std::string_view pattern, findings::Severity severity);
  /// Keeps up to `limit` findings of one rule instead of Reporter::kMaxFindingsPerRule: for those who compare them all.
  void keep(std::size_t limit) { limit_ = limit; }
  /// Where the lines of the user's program are read besides the model's folder and the working folder.
  void read_sources_below(std::string folder) { source_root_ = std::move(folder); }

  /// Only rules of this door run: files, unless another one is named.
  void enter_by(Door door) { door_ = door; }

  bool allows(const RuleInfo& rule) const { return rule.doors.has(door_) && allows(rule.code); }
  bool allows(std::string_view code) const {
    return (!chosen_ || selected_.contains(code)) && !ignored_.contains(code);
  }
  /// All of them.
  bool allows(const findings::RuleCodes& codes) const {
    return (!chosen_ || codes.is_subset_of(selected_)) && !codes.intersects(ignored_);
  }
  /// Runs a rule that is not selected, or ignored, to count what it would have reported.
  void count_left_out(std::string_view code) { left_out_.insert(code); }
  bool runs(const RuleInfo& rule) const { return allows(rule) || left_out_.contains(rule.code); }
  std::optional<findings::Severity> severity(std::string_view code) const;
  std::size_t limit() const { return limit_; }
  bool is_restricted() const { return chosen_ || !ignored_.empty(); }
  const std::string& source_root() const { return source_root_; }

 private:
  struct Override {
    findings::Severity severity{};
    std::size_t rules = 0;  ///< that the pattern means
  };
  Door door_ = Door::kFile;
  bool chosen_ = false;
  findings::RuleCodes selected_, ignored_, left_out_;
  SharedMap<std::string_view, Override> severities_;
  std::size_t limit_ = Reporter::kMaxFindingsPerRule;
  std::string source_root_;
};

/// A node whose violation follows from that of another one.
struct Follower {
  NodeId node = NodeId::kNone;
  NodeId source = NodeId::kNone;
};

/// What the rules found, also those that only count_left_out named.
struct RuleResults {
  std::vector<findings::Finding> findings;  ///< sorted, each once
  std::vector<Follower> followers;
  findings::SeverityCounts omitted;  ///< past the caps, or the work that the input may cost
  std::size_t omitted_places = 0;    ///< past the caps, of findings that are counted
  bool is_partial = false;           ///< PassResults::is_partial
};

/// The passes whose results the rules of a selection read. `copies_at_run_time`: as of run_rules.
passes::PassSet passes_needed(const dataflow::Analysis& analysis, const RuleSelection& selection,
                              bool copies_at_run_time);

/// Runs all rules that the selection allows, after passes_needed. Exactly one rule words each failed precondition.
/// `copies_at_run_time`: the runtime copies between devices; rules report what that costs, and not which operands are
/// on different devices.
RuleResults run_rules(const passes::PassResults& known, const RuleSelection& selection,
                      bool copies_at_run_time = false);

/// Takes away what follows from a violation that is among the findings.
void drop_followers(const std::vector<Follower>& followers, std::vector<findings::Finding>& findings);

}  // namespace tensorlint::rules
