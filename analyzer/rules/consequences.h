#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "passes/dataflow/analysis.h"

namespace tensorlint::rules {

/// Which violations follow from an earlier one. Results of what fails for certain are tainted, so that nothing more is
/// said of them; what fails for some extents only goes on with the shape that it asks for, and where this is wrong, all
/// that is computed from it seems to be. Empty, at no cost, where nothing may fail.
class Consequences {
 public:
  /// Of no node yet.
  explicit Consequences(const dataflow::Analysis& analysis) : analysis_(analysis) {}

  /// Of all nodes.
  void follow_all();
  /// Of one more node, the next one, with what is violated there.
  void follow(NodeId node, std::span<const dataflow::NodeViolation> violations);

  /// The node that failed first where `violation` follows from another one; kNone for a mistake of its own.
  NodeId source_of(const dataflow::NodeViolation& violation) const;

 private:
  bool fixes_shape(NodeId node) const;
  NodeId source(ValueId value) const {
    return value == ValueId::kAbsent || !sources_.contains(value) ? NodeId::kNone : sources_[value];
  }

  const dataflow::Analysis& analysis_;
  IdVector<ValueId, NodeId> sources_;  ///< the node for which its shape may be wrong; empty where nothing may fail
};

}  // namespace tensorlint::rules
