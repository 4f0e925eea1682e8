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
#include "passes/structure/sorted_order.h"

namespace tensorlint::rules {
namespace {

class UseBeforeDefinition : public Rule {
 public:
  UseBeforeDefinition()
      : Rule({"TL-G607", "use-before-definition", "graph", findings::Severity::kWarning,
              "a node that comes before the node that computes its operand", kFilesOnly}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const dataflow::Analysis& analysis = view.analysis();
    const Model& model = view.model();
    // One node is too far up or too far down, however many of its neighbours show it; a graph that is not sorted is
    // one mistake.
    std::set<NodeId> users, producers;
    std::set<GraphId> graphs;
    structure::SortedOrders orders(model, view.analysis().meter());
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
      propose_order(model, orders.of(graph), finding);
    }
  }

 private:
  static void propose_order(const Model& model, const structure::SortedOrder& order, FindingBuilder& finding) {
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

const RegisterRule<UseBeforeDefinition> kRegisterUseBeforeDefinition;

}  // namespace
}  // namespace tensorlint::rules
