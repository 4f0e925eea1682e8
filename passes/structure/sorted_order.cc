#include "passes/structure/sorted_order.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tensorlint::structure {
namespace {

/// Marks all but a longest increasing subsequence (patience sorting, n log n): as few nodes move as that order allows.
SortedOrder with_fewest_moves(std::vector<NodeId> nodes) {
  SortedOrder sorted{.nodes = std::move(nodes), .moves = {}, .move_count = 0};
  const std::vector<NodeId>& order = sorted.nodes;
  std::vector<std::size_t> tails, before(order.size());
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto at = std::ranges::lower_bound(tails, order[i], {}, [&](std::size_t tail) { return order[tail]; });
    before[i] = at == tails.begin() ? kNone : *std::prev(at);
    if (at == tails.end()) {
      tails.push_back(i);
    } else {
      *at = i;
    }
  }
  sorted.moves.assign(order.size(), true);
  for (std::size_t i = tails.empty() ? kNone : tails.back(); i != kNone; i = before[i]) sorted.moves[i] = false;
  sorted.move_count = order.size() - tails.size();
  return sorted;
}

/// The nodes of its graph that make what a node reads, or what its bodies read.
IdVector<NodeId, std::vector<NodeId>> operand_nodes(const Model& model) {
  IdVector<NodeId, std::vector<NodeId>> operands(model.nodes.size());
  const auto add = [&](NodeId reader, ValueId value) {
    if (value == ValueId::kAbsent || model.value(value).producer == NodeId::kNone) return;
    const NodeId producer = model.value(value).producer;
    while (reader != NodeId::kNone && model.node(reader).graph != model.node(producer).graph)
      reader = model.graph(model.node(reader).graph).owner;
    if (reader != NodeId::kNone && reader != producer) operands[reader].push_back(producer);
  };
  for (const NodeId node : ids_below<NodeId>(model.nodes.size()))
    for (const ValueId value : model.operands(model.node(node))) add(node, value);
  for (const Graph& graph : model.graphs)
    for (const ValueId value : graph.outputs) add(graph.owner, value);
  return operands;
}

/// File order, with what a node reads pulled up to it.
std::vector<NodeId> operands_first(const Graph& graph, const IdVector<NodeId, std::vector<NodeId>>& operands) {
  std::vector<NodeId> order;
  std::vector<bool> seen(graph.nodes.size());
  struct Step {
    NodeId node;
    std::size_t next = 0;
  };
  std::vector<Step> steps;
  const auto enter = [&](NodeId node) {
    const auto at = graph.nodes.index_of(node);
    if (seen[at]) return;
    seen[at] = true;
    steps.push_back({node});
  };
  for (const NodeId node : graph.nodes) {
    enter(node);
    while (!steps.empty()) {
      Step& step = steps.back();
      const std::vector<NodeId>& needed = operands[step.node];
      if (step.next < needed.size()) {
        enter(needed[step.next++]);
        continue;
      }
      order.push_back(step.node);
      steps.pop_back();
    }
  }
  return order;
}

}  // namespace

SortedOrder SortedOrders::of(GraphId graph) {
  if (operands_.empty()) {
    operands_ = operand_nodes(model_);
    orders_ = dataflow::order_all_nodes(model_, meter_);
  }
  dataflow::NodeOrder waiting = orders_[graph];
  waiting.nodes.insert(waiting.nodes.end(), waiting.cyclic.begin(), waiting.cyclic.end());
  SortedOrder up = with_fewest_moves(operands_first(model_.graph(graph), operands_)),
              down = with_fewest_moves(std::move(waiting.nodes));
  return up.move_count <= down.move_count ? std::move(up) : std::move(down);
}

}  // namespace tensorlint::structure
