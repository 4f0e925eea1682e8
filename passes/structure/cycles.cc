#include "passes/structure/cycles.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/id_vector.h"

namespace tensorlint::structure {
namespace {

constexpr std::size_t kWalksPerComponent = 16;  // ways looked for among nodes that all need each other

/// Calls `visit` with the nodes of the same graph that use a result of `node`, directly or in a body.
template <typename Visit>
void for_each_user(const dataflow::Analysis& analysis, NodeId node, Visit visit) {
  const Model& model = analysis.model();
  const GraphId graph = model.node(node).graph;
  // To the end even where the meter is spent: a way back has to arrive.
  for (const ValueId result : analysis.results(node).read()) {
    if (result == ValueId::kAbsent) continue;
    for (NodeId user : analysis.users(result).read()) {
      while (user != NodeId::kNone && model.node(user).graph != graph) {
        analysis.meter().charge(1);
        user = model.graph(model.node(user).graph).owner;
      }
      if (user != NodeId::kNone) visit(user);
    }
  }
}

/// Strongly connected components (Tarjan 1972, with a stack of its own), of the nodes that are asked about and behind
/// them.
class StronglyConnectedComponents {
 public:
  explicit StronglyConnectedComponents(const dataflow::Analysis& analysis) : analysis_(analysis) {}

  /// Equal for two nodes exactly when each needs the other, or they are one.
  std::uint32_t of(NodeId node) {
    if (!seen_.contains(node)) explore(node);
    return seen_.at(node).component;
  }

 private:
  static constexpr std::uint32_t kOpen = 0xffffffff;
  struct State {
    std::uint32_t number, lowest, component = kOpen;
  };
  struct Step {
    NodeId node;
    std::vector<NodeId> users;
    std::size_t next = 0;
  };

  void enter(NodeId node) {
    const auto number = static_cast<std::uint32_t>(seen_.size());
    seen_.emplace(node, State{number, number});
    open_.push_back(node);
    Step step{node, {}, 0};
    for_each_user(analysis_, node, [&](NodeId user) { step.users.push_back(user); });
    steps_.push_back(std::move(step));
  }

  void explore(NodeId root) {
    enter(root);
    while (!steps_.empty()) {
      Step& step = steps_.back();
      if (step.next < step.users.size()) {
        const NodeId user = step.users[step.next++];
        const auto known = seen_.find(user);
        if (known == seen_.end()) {
          enter(user);
        } else if (known->second.component == kOpen) {
          State& self = seen_.at(step.node);
          self.lowest = std::min(self.lowest, known->second.number);
        }
        continue;
      }
      const NodeId done = step.node;
      const State self = seen_.at(done);
      steps_.pop_back();
      if (!steps_.empty()) {
        State& before = seen_.at(steps_.back().node);
        before.lowest = std::min(before.lowest, self.lowest);
      }
      if (self.lowest != self.number) continue;
      for (NodeId node = NodeId::kNone; node != done; open_.pop_back()) {
        node = open_.back();
        seen_.at(node).component = components_;
      }
      ++components_;
    }
  }

  const dataflow::Analysis& analysis_;
  std::unordered_map<NodeId, State> seen_;
  std::vector<NodeId> open_;
  std::vector<Step> steps_;
  std::uint32_t components_ = 0;
};

/// The calls between the functions of a model.
class Calls {
 public:
  explicit Calls(const Model& model) : calls_(model.graphs.size()), states_(model.graphs.size()) {
    IdVector<GraphId, GraphId> roots(model.graphs.size(), GraphId::kNone);
    for (const Node& node : model.nodes) {
      const GraphId callee = model.op(node).function;
      if (callee == GraphId::kNone) continue;
      GraphId& root = roots[node.graph];
      if (root == GraphId::kNone)
        for (root = node.graph; model.graph(root).kind == GraphKind::kSubgraph;) root = model.graph(root).parent;
      if (model.graph(root).kind == GraphKind::kFunction) calls_[root].push_back({model.id_of(node), callee});
    }
  }

  template <typename Found>
  void for_each_recursion(Found found) {
    for (const GraphId graph : ids_below<GraphId>(calls_.size()))
      if (!calls_[graph].empty() && states_[graph] == State::kNew) explore(graph, found);
  }

 private:
  enum class State : std::uint8_t { kNew, kOpen, kDone };
  struct Call {
    NodeId node;
    GraphId callee;
  };
  struct Step {
    GraphId graph;
    std::size_t next = 0;
  };

  template <typename Found>
  void explore(GraphId root, Found found) {
    std::vector<Step> steps{{root}};
    states_[root] = State::kOpen;
    while (!steps.empty()) {
      Step& step = steps.back();
      if (step.next == calls_[step.graph].size()) {
        states_[step.graph] = State::kDone;
        steps.pop_back();
        continue;
      }
      const Call call = calls_[step.graph][step.next++];
      const GraphId callee = call.callee;
      if (states_[callee] == State::kOpen) {
        found(call.node, callee, callee == step.graph);
      } else if (states_[callee] == State::kNew) {
        states_[callee] = State::kOpen;
        steps.push_back({callee});  // `step` is gone
      }
    }
  }

  IdVector<GraphId, std::vector<Call>> calls_;  // of functions
  IdVector<GraphId, State> states_;
};

/// Nodes on a shortest way from the user of an early value to its producer, along results, the producer first.
std::vector<NodeId> way_back(const dataflow::Analysis& analysis, NodeId from, NodeId producer,
                             StronglyConnectedComponents& components) {
  const std::uint32_t component = components.of(from);
  std::unordered_map<NodeId, NodeId> before{{from, NodeId::kNone}};
  std::deque<NodeId> pending{from};
  while (!pending.empty() && !before.contains(producer)) {
    const NodeId at = pending.front();
    pending.pop_front();
    for_each_user(analysis, at, [&](NodeId user) {
      if (components.of(user) == component && before.emplace(user, at).second) pending.push_back(user);
    });
  }
  std::vector<NodeId> path;
  for (NodeId at = producer; at != NodeId::kNone; at = before.at(at)) path.push_back(at);
  return path;
}

std::vector<Cycle> find_node_cycles(const dataflow::Analysis& analysis) {
  const Model& model = analysis.model();
  std::vector<Cycle> cycles;
  StronglyConnectedComponents components(analysis);
  std::vector<bool> known(model.nodes.size());
  std::map<std::uint32_t, std::size_t> walks;
  const auto is_known = [&](NodeId node) -> std::vector<bool>::reference {
    return known[static_cast<std::size_t>(node)];
  };
  for (const dataflow::EarlyUse& use : analysis.early_uses()) {
    if (!use.in_cycle) continue;
    const NodeId producer = model.value(use.value).producer;
    const std::uint32_t component = components.of(use.user);
    if (component != components.of(producer)) continue;  // after a cycle, not on it
    if (is_known(use.user) || is_known(producer) || ++walks[component] > kWalksPerComponent) continue;
    Cycle cycle{use.user, use.value, way_back(analysis, use.user, producer, components)};
    const bool is_new = std::ranges::none_of(cycle.nodes, is_known);
    for (const NodeId node : cycle.nodes) is_known(node) = true;
    if (is_new) cycles.push_back(std::move(cycle));
  }
  return cycles;
}

}  // namespace

Cycles find_cycles(const dataflow::Analysis& analysis) {
  const Model& model = analysis.model();
  Cycles found;
  if (std::ranges::any_of(model.operators, [](const Operator& op) { return op.function != GraphId::kNone; }))
    Calls(model).for_each_recursion([&](NodeId call, GraphId function, bool is_direct) {
      found.recursions.push_back({call, function, is_direct});
    });
  found.cycles = find_node_cycles(analysis);
  return found;
}

}  // namespace tensorlint::structure
