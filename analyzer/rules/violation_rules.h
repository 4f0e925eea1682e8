#pragma once

#include <optional>

#include "analyzer/rules/engine.h"
#include "analyzer/rules/rule.h"

namespace tensorlint::rules {

/// The one rule that words a violation: the one that fits it best.
const Rule* best_match(const ViolationCase& violation);

/// The loss that an exporter says a node is part of.
std::optional<ops::LossKind> loss_named_at(findings::LocationResolver& locations, NodeId node);

/// Gives violations, in their order, each to the rule that fits it best.
class ViolationReporter {
 public:
  /// Both outlive this.
  ViolationReporter(const RuleSelection& selection, Reporter& out) : selection_(selection), out_(out) {}

  /// False where the violation gets no finding of its own: its rule does not run or has said the same of another node,
  /// or it is another side of the violation before. What it refers to outlives the next call.
  bool report(const ViolationCase& violation);

 private:
  const RuleSelection& selection_;
  Reporter& out_;
  const dataflow::NodeViolation* previous_ = nullptr;
  const Rule* previous_rule_ = nullptr;
};

}  // namespace tensorlint::rules
