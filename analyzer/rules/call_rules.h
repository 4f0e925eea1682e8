#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "analyzer/findings/finding.h"
#include "analyzer/rules/consequences.h"
#include "analyzer/rules/engine.h"
#include "analyzer/rules/rule.h"
#include "base/hash.h"
#include "passes/results/pass_results.h"

namespace tensorlint::rules {

/// Runs rules in a program that grows, on each new call alone: what it violates, what the rules of its operator say,
/// and where it is a loss, those of losses. What only the whole model shows is left to run_rules. A mistake is reported
/// once, for its first place.
class CallRules {
 public:
  /// `analysis` grows, and outlives this.
  CallRules(const dataflow::Analysis& analysis, RuleSelection selection);

  /// `violations`: what was violated in the call, in the order of inference.
  std::vector<findings::Finding> check(NodeId call, std::span<const dataflow::NodeViolation> violations);
  /// What the placement of all calls shows; the pass has run.
  std::vector<findings::Finding> check_placement(const passes::PassResults& known);

  /// Nodes were taken back: their numbers will be those of others.
  void forget_nodes();

 private:
  const std::vector<const Rule*>& rules_of(OperatorId op);
  void report_violations(std::span<const dataflow::NodeViolation> violations, const losses::LossSite* loss);
  void check_loss(const losses::LossSite& loss);
  /// What is new of what was reported.
  std::vector<findings::Finding> take();

  const dataflow::Analysis& analysis_;
  const RuleSelection selection_;
  std::unique_ptr<findings::LocationResolver> locations_;
  std::unique_ptr<Reporter> reporter_;
  Consequences consequences_;
  IdVector<OperatorId, std::vector<const Rule*>> rules_;
  std::unordered_set<std::string, TextHash> said_;  // mistake_keys
};

}  // namespace tensorlint::rules
