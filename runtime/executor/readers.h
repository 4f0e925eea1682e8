#pragma once

#include <span>
#include <vector>

#include "ir/graph/model.h"

namespace tensorlint::runtime {

/// Who reads a value: nodes of its own graph, each for the graphs that it holds, too.
class Readers {
 public:
  explicit Readers(const Model& model);

  /// In no particular order; a node that reads a value twice may come twice.
  std::span<const NodeId> of(ValueId value) const { return readers_[value]; }
  /// Of its own graph.
  bool is_output(ValueId value) const { return is_output_[value]; }
  /// Values of the node's own graph that its bodies read.
  std::span<const ValueId> captured(NodeId node) const { return captured_[node]; }

 private:
  IdVector<ValueId, std::vector<NodeId>> readers_;
  IdVector<ValueId, bool> is_output_;
  IdVector<NodeId, std::vector<ValueId>> captured_;
};

}  // namespace tensorlint::runtime
