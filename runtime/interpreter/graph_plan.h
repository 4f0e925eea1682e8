#pragma once

#include <map>
#include <vector>

#include "base/id_vector.h"
#include "ir/graph/model.h"

namespace tensorlint::runtime {

/// In which order the nodes of each graph run, and which values nobody needs after a node.
class GraphPlan {
 public:
  explicit GraphPlan(const Model& model);

  struct Steps {
    std::vector<NodeId> nodes;                ///< operands first
    std::vector<std::vector<ValueId>> drops;  ///< by position in `nodes`: values of this graph, used last there
    bool is_cyclic = false;                   ///< some nodes depend on each other: the graph cannot run
  };
  const Steps& steps(GraphId graph) const { return graphs_[graph]; }

 private:
  IdVector<GraphId, Steps> graphs_;
};

}  // namespace tensorlint::runtime
