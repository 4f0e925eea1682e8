#include "runtime/interpreter/graph_plan.h"

#include "passes/dataflow/order.h"

namespace tensorlint::runtime {
namespace {

constexpr std::size_t kNever = static_cast<std::size_t>(-1);

}  // namespace

GraphPlan::GraphPlan(const Model& model) : graphs_(model.graphs.size()) {
  const std::vector<std::vector<GraphId>> bodies = dataflow::bodies_by_graph(model);
  std::vector<std::size_t> position(model.nodes.size(), kNever), last_use(model.values.size(), kNever);
  for (std::size_t g = 0; g < graphs_.size(); ++g) {
    const dataflow::NodeOrder order = dataflow::order_nodes(model, static_cast<GraphId>(g), bodies);
    graphs_[g].nodes = order.nodes;
    graphs_[g].is_cyclic = !order.cyclic.empty();
    graphs_[g].drops.resize(order.nodes.size());
    for (std::size_t at = 0; at < order.nodes.size(); ++at) position[static_cast<std::size_t>(order.nodes[at])] = at;
  }
  // A value that a body captures is used by the node that holds the body.
  const auto use = [&](ValueId value, NodeId user) {
    if (value == ValueId::kAbsent) return;
    const GraphId home = model.value(value).graph;
    while (user != NodeId::kNone && model.node(user).graph != home) user = model.graph(model.node(user).graph).owner;
    if (user == NodeId::kNone || position[static_cast<std::size_t>(user)] == kNever) return;
    std::size_t& last = last_use[static_cast<std::size_t>(value)];
    const std::size_t at = position[static_cast<std::size_t>(user)];
    if (last == kNever || last < at) last = at;
  };
  for (std::size_t n = 0; n < model.nodes.size(); ++n) {
    const auto id = static_cast<NodeId>(n);
    for (const ValueId operand : model.operands(model.nodes[n])) use(operand, id);
    // What nobody reads goes right after the node that makes it.
    for (const ValueId result : model.results(model.nodes[n])) use(result, id);
  }
  for (const Graph& graph : model.graphs)
    for (const ValueId output : graph.outputs)
      if (graph.owner != NodeId::kNone) use(output, graph.owner);  // of an outer value; of others nothing is used there
  for (const Graph& graph : model.graphs)
    for (const ValueId output : graph.outputs)
      if (&model.graph(model.value(output).graph) == &graph) last_use[static_cast<std::size_t>(output)] = kNever;
  for (std::size_t v = 1; v < model.values.size(); ++v)
    if (last_use[v] != kNever)
      graphs_[static_cast<std::size_t>(model.values[v].graph)].drops[last_use[v]].push_back(static_cast<ValueId>(v));
}

}  // namespace tensorlint::runtime
