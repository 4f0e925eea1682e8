#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/rules/rule.h"
#include "base/escape.h"
#include "passes/dataflow/order.h"

namespace tensorlint::rules {
namespace {

/// An order of a graph's nodes in which everything is defined before it is used, and the nodes that move for it.
struct SortedOrder {
  std::vector<NodeId> nodes;
  std::vector<bool> moves;  ///< by position in `nodes`
  std::size_t move_count = 0;
};

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

class UseBeforeDefinition : public Rule {
 public:
  UseBeforeDefinition()
      : Rule({"TL-G607", "use-before-definition", "graph", findings::Severity::kWarning,
              "a node that comes before the node that computes its operand"}) {}

  void check_model(ModelView& view, Reporter& out) const override {
    const dataflow::Analysis& analysis = view.analysis();
    const Model& model = view.model();
    // One node stands too far up or too far down, however many of its neighbours show it; a graph that is not sorted is
    // one mistake.
    std::set<NodeId> users, producers;
    std::set<GraphId> graphs;
    std::vector<std::vector<NodeId>> operands;
    for (const dataflow::EarlyUse& use : analysis.early_uses()) {
      if (use.in_cycle) continue;
      const NodeId producer = model.value(use.value).producer;
      const bool new_user = users.insert(use.user).second, new_producer = producers.insert(producer).second;
      if (!new_user || !new_producer) continue;
      const GraphId graph = model.node(producer).graph;
      FindingBuilder finding = out.report(
          use.user, fmt::format("{} is used before it is defined", quoted_for_people(model.name_of(use.value))));
      finding.note_at(producer, "defined here, further down")
          .cause(fmt::format("order of graph {}", static_cast<std::uint32_t>(graph)));
      if (!finding || !graphs.insert(graph).second) continue;
      if (operands.empty()) operands = operand_nodes(model);
      propose_order(model, graph, operands, finding);
    }
  }

 private:
  /// By node: the nodes of its graph that make what it reads, or what its bodies read.
  static std::vector<std::vector<NodeId>> operand_nodes(const Model& model) {
    std::vector<std::vector<NodeId>> operands(model.nodes.size());
    const auto add = [&](NodeId reader, ValueId value) {
      if (value == ValueId::kAbsent || model.value(value).producer == NodeId::kNone) return;
      const NodeId producer = model.value(value).producer;
      while (reader != NodeId::kNone && model.node(reader).graph != model.node(producer).graph)
        reader = model.graph(model.node(reader).graph).owner;
      if (reader != NodeId::kNone && reader != producer) operands[static_cast<std::size_t>(reader)].push_back(producer);
    };
    for (std::size_t n = 0; n < model.nodes.size(); ++n)
      for (const ValueId value : model.operands(model.nodes[n])) add(static_cast<NodeId>(n), value);
    for (const Graph& graph : model.graphs)
      for (const ValueId value : graph.outputs) add(graph.owner, value);
    return operands;
  }

  /// File order, with what a node reads pulled up to it.
  static std::vector<NodeId> operands_first(const Graph& graph, const std::vector<std::vector<NodeId>>& operands) {
    std::vector<NodeId> order;
    std::vector<bool> seen(graph.node_count);
    struct Step {
      NodeId node;
      std::size_t next = 0;
    };
    std::vector<Step> steps;
    const auto enter = [&](NodeId node) {
      const auto at = static_cast<std::uint32_t>(node) - graph.first_node;
      if (seen[at]) return;
      seen[at] = true;
      steps.push_back({node});
    };
    for (std::uint32_t n = 0; n < graph.node_count; ++n) {
      enter(static_cast<NodeId>(graph.first_node + n));
      while (!steps.empty()) {
        Step& step = steps.back();
        const std::vector<NodeId>& needed = operands[static_cast<std::size_t>(step.node)];
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

  /// Moves producers up or users down, whatever moves fewer nodes.
  static void propose_order(const Model& model, GraphId graph, const std::vector<std::vector<NodeId>>& operands,
                            FindingBuilder& finding) {
    dataflow::NodeOrder waiting = dataflow::order_nodes(model, graph, dataflow::bodies_by_graph(model));
    waiting.nodes.insert(waiting.nodes.end(), waiting.cyclic.begin(), waiting.cyclic.end());
    const SortedOrder up = with_fewest_moves(operands_first(model.graph(graph), operands)),
                      down = with_fewest_moves(std::move(waiting.nodes));
    const SortedOrder& order = up.move_count <= down.move_count ? up : down;
    std::vector<GraphEdit> edits;
    edits.reserve(order.move_count);
    NodeId next = NodeId::kNone;
    for (std::size_t i = order.nodes.size(); i-- > 0;) {
      if (order.moves[i]) {
        edits.push_back(MoveNode{order.nodes[i], next});
      } else {
        next = order.nodes[i];
      }
    }
    if (edits.empty()) return;
    // Nodes that move to one place stand there in the order of their edits.
    std::ranges::reverse(edits);
    std::string message = fmt::format("sort the nodes of the graph ({} of {} move)", edits.size(), order.nodes.size());
    if (const auto* move = std::get_if<MoveNode>(&edits.front()); edits.size() == 1)
      message = move->before == NodeId::kNone
                    ? fmt::format("move node {} to the end", quoted_for_people(model.label(move->node)))
                    : fmt::format("move node {} above node {}", quoted_for_people(model.label(move->node)),
                                  quoted_for_people(model.label(move->before)));
    finding.fix(message + "; ONNX requires the order of execution", findings::Applicability::kSafe, std::move(edits));
  }
};

const RegisterRule<UseBeforeDefinition> kRegister;

}  // namespace
}  // namespace tensorlint::rules
