#pragma once

#include <cstdint>
#include <vector>

#include "base/id_vector.h"
#include "ir/graph/model.h"

namespace tensorlint::runtime {

/// In which order the nodes of each graph run, which values nobody needs after a node, and which nodes give the same
/// whenever they run.
class GraphPlan {
 public:
  explicit GraphPlan(const Model& model);

  struct Steps {
    std::vector<NodeId> nodes;                ///< operands first
    std::vector<std::vector<ValueId>> drops;  ///< by position in `nodes`: values of this graph, used last there
    /// By position: a bit for each of the first 64 operands that nothing reads afterwards, also not the node as a later
    /// operand or in its graphs.
    std::vector<std::uint64_t> leaves;
    std::vector<ValueId> kept;  ///< outputs that nodes of this graph compute, each once
    bool is_cyclic = false;     ///< some nodes depend on each other: the graph cannot run
  };
  const Steps& steps(GraphId graph) const { return graphs_[graph]; }

  /// One of its attributes is a graph.
  bool has_graphs(NodeId node) const { return has_graphs_[node]; }
  /// A bit for each operand, of the first 64, that is fixed.
  std::uint64_t fixed_operands(NodeId node) const { return fixed_operands_[node]; }

  /// It reads constants alone, and its attributes are not those of a function's call. Says nothing of random numbers.
  bool is_fixed(NodeId node) const { return fixed_nodes_[node]; }
  /// An initializer, as long as no input overrides it, or a result of such a node.
  bool is_fixed(ValueId value) const { return fixed_values_[value]; }

 private:
  void find_fixed(const Model& model);
  void find_leaves(const Model& model);

  IdVector<GraphId, Steps> graphs_;
  IdVector<NodeId, char> has_graphs_, fixed_nodes_;
  IdVector<NodeId, std::uint64_t> fixed_operands_;
  IdVector<ValueId, char> fixed_values_;
};

}  // namespace tensorlint::runtime
