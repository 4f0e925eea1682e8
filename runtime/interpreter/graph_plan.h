#pragma once

#include <map>
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
    bool is_cyclic = false;                   ///< some nodes depend on each other: the graph cannot run
  };
  const Steps& steps(GraphId graph) const { return graphs_[graph]; }

  /// It reads constants alone, and its attributes are not those of a function's call. Says nothing of random numbers.
  bool is_fixed(NodeId node) const { return fixed_nodes_[node]; }
  /// An initializer, as long as no input overrides it, or a result of such a node.
  bool is_fixed(ValueId value) const { return fixed_values_[value]; }

 private:
  void find_fixed(const Model& model);

  IdVector<GraphId, Steps> graphs_;
  IdVector<NodeId, char> fixed_nodes_;
  IdVector<ValueId, char> fixed_values_;
};

}  // namespace tensorlint::runtime
