#include "passes/dataflow/order.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace tensorlint::dataflow {
namespace {

/// The node of `graph` inside which `node` stands (itself, or the owner of a subgraph around it); kNone when outside.
NodeId ancestor_in(const Model& model, NodeId node, GraphId graph) {
  while (node != NodeId::kNone && model.node(node).graph != graph) node = model.graph(model.node(node).graph).owner;
  return node;
}

struct Use {
  NodeId user;  // in the graph itself
  ValueId value;
};

/// Of each value that a node of another graph makes, by nodes and outputs of the body.
template <typename Visit>
void for_each_capture(const Model& model, GraphId body, Visit visit) {
  const Graph& graph = model.graph(body);
  const auto visit_value = [&](ValueId id) {
    if (id == ValueId::kAbsent) return;
    const Value& value = model.value(id);
    if (value.origin == ValueOrigin::kNode && value.graph != body) visit(id, value.graph);
  };
  for (const NodeId node : graph.nodes)
    for (const ValueId id : model.operands(model.node(node))) visit_value(id);
  for (const ValueId id : graph.outputs) visit_value(id);
}

/// Uses of values that nodes of `graph` make, by nodes of it and, as `inner` has them, by bodies inside it.
template <typename Visit>
void for_each_use(const Model& model, GraphId graph, const std::vector<Use>& inner, Visit visit) {
  for (const NodeId node : model.graph(graph).nodes) {
    for (const ValueId id : model.operands(model.node(node))) {
      if (id == ValueId::kAbsent) continue;
      const Value& value = model.value(id);
      if (value.origin == ValueOrigin::kNode && value.graph == graph) visit(Use{node, id});
    }
  }
  for (const Use& use : inner) visit(use);
}

NodeOrder order_of(const Model& model, GraphId graph_id, const std::vector<Use>& inner) {
  NodeOrder order;
  const Graph& graph = model.graph(graph_id);

  bool sorted = true;
  for_each_use(model, graph_id, inner, [&](Use use) {
    if (model.value(use.value).producer >= use.user) {
      sorted = false;
      order.early_uses.push_back({use.user, use.value, false});
    }
  });
  const std::size_t count = graph.nodes.size();
  order.nodes.reserve(count);
  if (sorted) {
    order.nodes.assign(graph.nodes.begin(), graph.nodes.end());
    return order;
  }

  std::vector<std::vector<std::uint32_t>> successors(count);
  std::vector<std::uint32_t> waiting_for(count, 0);
  for_each_use(model, graph_id, inner, [&](Use use) {
    const std::size_t producer = graph.nodes.index_of(model.value(use.value).producer);
    const auto user = static_cast<std::uint32_t>(graph.nodes.index_of(use.user));
    successors[producer].push_back(user);
    ++waiting_for[user];
  });
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t n = 0; n < count; ++n)
    if (waiting_for[n] == 0) ready.push(n);
  while (!ready.empty()) {
    const std::uint32_t n = ready.top();
    ready.pop();
    order.nodes.push_back(graph.nodes[n]);
    for (const std::uint32_t next : successors[n])
      if (--waiting_for[next] == 0) ready.push(next);
  }
  for (std::uint32_t n = 0; n < count; ++n)
    if (waiting_for[n] != 0) order.cyclic.push_back(graph.nodes[n]);

  const auto is_cyclic = [&](NodeId node) {
    return std::binary_search(order.cyclic.begin(), order.cyclic.end(), node);
  };
  std::sort(order.early_uses.begin(), order.early_uses.end(), [](const EarlyUse& a, const EarlyUse& b) {
    return std::pair(a.user, a.value) < std::pair(b.user, b.value);
  });
  const auto same = [](const EarlyUse& a, const EarlyUse& b) { return a.user == b.user && a.value == b.value; };
  order.early_uses.erase(std::unique(order.early_uses.begin(), order.early_uses.end(), same), order.early_uses.end());
  for (EarlyUse& use : order.early_uses)
    use.in_cycle = is_cyclic(use.user) && is_cyclic(model.value(use.value).producer);
  return order;
}

}  // namespace

BodiesByGraph bodies_by_graph(const Model& model) {
  BodiesByGraph bodies(model.graphs.size());
  for (const GraphId id : model.graphs.ids())
    if (model.graph(id).kind == GraphKind::kSubgraph) bodies[model.graph(id).parent].push_back(id);
  return bodies;
}

NodeOrder order_nodes(const Model& model, GraphId graph, const BodiesByGraph& bodies) {
  std::vector<Use> uses;
  std::vector<GraphId> inner = bodies[graph];
  for (std::size_t i = 0; i < inner.size(); ++i) {
    const std::vector<GraphId>& deeper = bodies[inner[i]];
    inner.insert(inner.end(), deeper.begin(), deeper.end());
    const NodeId user = ancestor_in(model, model.graph(inner[i]).owner, graph);
    for_each_capture(model, inner[i], [&](ValueId value, GraphId from) {
      if (from == graph && user != NodeId::kNone) uses.push_back({user, value});
    });
  }
  return order_of(model, graph, uses);
}

NodeOrders order_all_nodes(const Model& model, Meter& meter) {
  IdVector<GraphId, std::vector<Use>> uses(model.graphs.size());
  IdVector<GraphId, NodeId> user_in(model.graphs.size(), NodeId::kNone);
  for (const GraphId body : model.graphs.ids()) {
    if (model.graph(body).kind != GraphKind::kSubgraph) continue;
    const auto for_each_graph_around = [&](const auto& visit) {
      for (NodeId user = model.graph(body).owner; user != NodeId::kNone;
           user = model.graph(model.node(user).graph).owner) {
        meter.charge(1);
        visit(model.node(user).graph, user);
      }
    };
    for_each_graph_around([&](GraphId graph, NodeId user) { user_in[graph] = user; });
    for_each_capture(model, body, [&](ValueId value, GraphId from) {
      if (user_in[from] != NodeId::kNone) uses[from].push_back({user_in[from], value});
    });
    for_each_graph_around([&](GraphId graph, NodeId) { user_in[graph] = NodeId::kNone; });
  }
  NodeOrders orders(model.graphs.size());
  for (const GraphId graph : model.graphs.ids()) orders[graph] = order_of(model, graph, uses[graph]);
  return orders;
}

}  // namespace tensorlint::dataflow
