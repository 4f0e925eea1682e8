#include "runtime/interpreter/graph_plan.h"

#include <algorithm>

#include "passes/dataflow/order.h"

namespace tensorlint::runtime {
namespace {

constexpr std::size_t kNever = static_cast<std::size_t>(-1);

bool says_what_it_does(const Model& model, const Node& node) {
  return model.op(node).function == GraphId::kNone &&
         std::ranges::all_of(model.attributes(node), [](const Attribute& attribute) {
           return attribute.graph == GraphId::kNone && attribute.graphs.empty() && attribute.reference.empty();
         });
}

}  // namespace

GraphPlan::GraphPlan(const Model& model)
    : graphs_(model.graphs.size()), fixed_nodes_(model.nodes.size()), fixed_values_(model.values.size()) {
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
  find_fixed(model);
}

void GraphPlan::find_fixed(const Model& model) {
  for (const ValueId value : ids_below(model.values.size(), static_cast<ValueId>(1))) {
    const Value& each = model.value(value);
    const bool has_default = each.origin == ValueOrigin::kInput && each.graph == GraphId::kMain;
    fixed_values_[value] = (each.initializer != nullptr || each.sparse_initializer != nullptr) &&
                           (each.origin == ValueOrigin::kInitializer || has_default);
  }
  // Bodies read values of the graphs around them, which may have higher ids: again, while there is something new.
  for (bool is_new = true; is_new;) {
    is_new = false;
    for (const Steps& steps : graphs_) {
      for (const NodeId id : steps.nodes) {
        const Node& node = model.node(id);
        if (fixed_nodes_[id] || !says_what_it_does(model, node)) continue;
        if (!std::ranges::all_of(model.operands(node), [&](ValueId operand) {
              return operand == ValueId::kAbsent || fixed_values_[operand];
            }))
          continue;
        fixed_nodes_[id] = is_new = true;
        for (const ValueId result : model.results(node))
          if (result != ValueId::kAbsent) fixed_values_[result] = model.value(result).origin == ValueOrigin::kNode;
      }
    }
  }
}

}  // namespace tensorlint::runtime
