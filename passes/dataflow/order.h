#pragma once

#include <vector>

#include "base/meter.h"
#include "ir/graph/model.h"

namespace tensorlint::dataflow {

/// An operand that is used before the node that makes it.
struct EarlyUse {
  NodeId user = NodeId::kNone;
  ValueId value = ValueId::kAbsent;
  bool in_cycle = false;  ///< the user and the value's producer depend on each other: no order would help
};

struct NodeOrder {
  std::vector<NodeId> nodes;         ///< operands first; nodes on cycles are left out
  std::vector<NodeId> cyclic;        ///< nodes on cycles or behind them, in file order
  std::vector<EarlyUse> early_uses;  ///< in file order; at most one per (user, value)
};

/// The bodies that the nodes of each graph hold directly.
using BodiesByGraph = IdVector<GraphId, std::vector<GraphId>>;
BodiesByGraph bodies_by_graph(const Model& model);

/// File order where it is sorted already (ONNX requires that), else a stable topological order.
/// A node that holds subgraphs depends on what these capture.
NodeOrder order_nodes(const Model& model, GraphId graph, const BodiesByGraph& bodies);

/// The same of each graph, in one pass over the model: bodies may lie deep in each other.
using NodeOrders = IdVector<GraphId, NodeOrder>;
NodeOrders order_all_nodes(const Model& model, Meter& meter);

}  // namespace tensorlint::dataflow
