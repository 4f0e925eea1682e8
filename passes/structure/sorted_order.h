#pragma once

#include <cstddef>
#include <vector>

#include "base/id_vector.h"
#include "base/meter.h"
#include "ir/graph/model.h"
#include "passes/dataflow/order.h"

namespace tensorlint::structure {

/// An order of a graph's nodes in which everything is defined before it is used, and the nodes that move for it.
struct SortedOrder {
  std::vector<NodeId> nodes;
  std::vector<bool> moves;  ///< by position in `nodes`
  std::size_t move_count = 0;
};

/// Sorts the graphs of a model by moving producers up or users down, whatever moves fewer nodes.
class SortedOrders {
 public:
  SortedOrders(const Model& model, Meter& meter) : model_(model), meter_(meter) {}
  SortedOrder of(GraphId graph);

 private:
  const Model& model_;
  Meter& meter_;
  IdVector<NodeId, std::vector<NodeId>> operands_;  // made on first use, like the next
  dataflow::NodeOrders orders_;
};

}  // namespace tensorlint::structure
