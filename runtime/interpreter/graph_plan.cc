#include "runtime/interpreter/graph_plan.h"

#include "passes/dataflow/order.h"

namespace tensorlint::runtime {
namespace {

constexpr std::size_t kNever = static_cast<std::size_t>(-1);

}  // namespace

GraphPlan::GraphPlan(const Model& model) : graphs_(model.graphs.size()) {
  const auto bodies = dataflow::bodies_by_graph(model);
  IdVector<NodeId, std::size_t> position(model.nodes.size(), kNever);
  IdVector<ValueId, std::size_t> last_use(model.values.size(), kNever);
  for (const GraphId graph : ids_below<GraphId>(model.graphs.size())) {
    const dataflow::NodeOrder order = dataflow::order_nodes(model, graph, bodies);
    graphs_[graph].nodes = order.nodes;
    graphs_[graph].is_cyclic = !order.cyclic.empty();
    graphs_[graph].drops.resize(order.nodes.size());
    for (std::size_t at = 0; at < order.nodes.size(); ++at) position[order.nodes[at]] = at;
  }
  // A value that a body captures is used by the node that holds the body.
  const auto use = [&](ValueId value, NodeId user) {
    if (value == ValueId::kAbsent) return;
    const GraphId home = model.value(value).graph;
    while (user != NodeId::kNone && model.node(user).graph != home) user = model.graph(model.node(user).graph).owner;
    if (user == NodeId::kNone || position[user] == kNever) return;
    if (last_use[value] == kNever || last_use[value] < position[user]) last_use[value] = position[user];
  };
  for (const NodeId node : ids_below<NodeId>(model.nodes.size())) {
    for (const ValueId operand : model.operands(model.node(node))) use(operand, node);
    // What nobody reads goes right after the node that makes it.
    for (const ValueId result : model.results(model.node(node))) use(result, node);
  }
  for (const Graph& graph : model.graphs)
    for (const ValueId output : graph.outputs)
      if (graph.owner != NodeId::kNone) use(output, graph.owner);  // of an outer value; of others nothing is used there
  for (const Graph& graph : model.graphs)
    for (const ValueId output : graph.outputs)
      if (&model.graph(model.value(output).graph) == &graph) last_use[output] = kNever;
  for (const ValueId value : ids_below(model.values.size(), static_cast<ValueId>(1)))
    if (last_use[value] != kNever) graphs_[model.value(value).graph].drops[last_use[value]].push_back(value);
}

}  // namespace tensorlint::runtime
