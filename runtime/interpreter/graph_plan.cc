#include "runtime/interpreter/graph_plan.h"

#include <algorithm>

#include "base/meter.h"
#include "passes/dataflow/order.h"

namespace tensorlint::runtime {
namespace {

constexpr std::size_t kNever = static_cast<std::size_t>(-1);
constexpr std::size_t kMaskBits = 64;

bool says_what_it_does(const Model& model, const Node& node) {
  return model.op(node).function == GraphId::kNone &&
         std::ranges::all_of(model.attributes(node), [](const Attribute& attribute) {
           return !attribute.has_graphs() && attribute.reference.empty();
         });
}

}  // namespace

GraphPlan::GraphPlan(const Model& model)
    : graphs_(model.graphs.size()),
      has_graphs_(model.nodes.size()),
      fixed_nodes_(model.nodes.size()),
      fixed_operands_(model.nodes.size()),
      fixed_values_(model.values.size()) {
  Meter meter;  // a run has limits of its own
  const dataflow::NodeOrders orders = dataflow::order_all_nodes(model, meter);
  IdVector<NodeId, std::size_t> position(model.nodes.size(), kNever);
  IdVector<ValueId, std::size_t> last_use(model.values.size(), kNever);
  for (const GraphId graph : ids_below<GraphId>(model.graphs.size())) {
    const dataflow::NodeOrder& order = orders[graph];
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
  IdVector<ValueId, bool> is_kept(model.values.size());
  for (const GraphId id : model.graphs.ids())
    for (const ValueId output : model.graph(id).outputs) {
      if (model.value(output).graph != id) continue;
      last_use[output] = kNever;
      if (model.value(output).origin != ValueOrigin::kNode || is_kept[output]) continue;
      is_kept[output] = true;
      graphs_[id].kept.push_back(output);
    }
  for (const ValueId value : ids_below(model.values.size(), static_cast<ValueId>(1)))
    if (last_use[value] != kNever) graphs_[model.value(value).graph].drops[last_use[value]].push_back(value);
  find_leaves(model);
  find_fixed(model);
}

void GraphPlan::find_leaves(const Model& model) {
  for (const NodeId node : ids_below<NodeId>(model.nodes.size()))
    has_graphs_[node] = std::ranges::any_of(model.attributes(model.node(node)), [](const Attribute& attribute) {
      // What a call gives for a reference may be a graph.
      return attribute.has_graphs() || (!attribute.reference.empty() && (attribute.kind == AttributeKind::kGraph ||
                                                                         attribute.kind == AttributeKind::kUndefined));
    });
  for (Steps& steps : graphs_) {
    steps.leaves.resize(steps.nodes.size());
    for (std::size_t at = 0; at < steps.nodes.size(); ++at) {
      if (has_graphs_[steps.nodes[at]]) continue;  // a body may read values of the graphs around it
      const std::vector<ValueId>& drops = steps.drops[at];
      const std::span<const ValueId> operands = model.operands(model.node(steps.nodes[at]));
      for (std::size_t i = 0; i < std::min(operands.size(), kMaskBits); ++i)
        if (model.value(operands[i]).origin == ValueOrigin::kNode &&
            std::ranges::find(drops, operands[i]) != drops.end() &&
            std::ranges::find(operands.subspan(i + 1), operands[i]) == operands.end())
          steps.leaves[at] |= std::uint64_t{1} << i;
    }
  }
}

void GraphPlan::find_fixed(const Model& model) {
  for (const ValueId value : ids_below(model.values.size(), static_cast<ValueId>(1))) {
    const Value& each = model.value(value);
    const bool may_be_given = each.origin == ValueOrigin::kInput && each.graph == GraphId::kMain;
    fixed_values_[value] = each.has_default() && (each.origin == ValueOrigin::kInitializer || may_be_given);
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
  for (const NodeId node : ids_below<NodeId>(model.nodes.size())) {
    const std::span<const ValueId> operands = model.operands(model.node(node));
    for (std::size_t i = 0; i < std::min(operands.size(), kMaskBits); ++i)
      if (operands[i] != ValueId::kAbsent && fixed_values_[operands[i]]) fixed_operands_[node] |= std::uint64_t{1} << i;
  }
}

}  // namespace tensorlint::runtime
