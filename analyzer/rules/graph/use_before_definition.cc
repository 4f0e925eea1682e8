#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/findings/escape.h"
#include "analyzer/rules/rule.h"

namespace tensorlint {
namespace {

class UseBeforeDefinition : public Rule {
 public:
  UseBeforeDefinition()
      : Rule({"TL-G607", "use-before-definition", "graph", Severity::kError,
              "a node that stands above the node that makes its operand"}) {}

  void check_model(ModelView& view, Reporter& out) const override {
    const Analysis& analysis = view.analysis();
    const Model& model = view.model();
    // One node stands too far up or too far down, however many of its neighbours show it.
    std::set<NodeId> users, producers;
    for (const EarlyUse& use : analysis.early_uses()) {
      if (use.in_cycle) continue;
      const NodeId producer = model.value(use.value).producer;
      const bool new_user = users.insert(use.user).second, new_producer = producers.insert(producer).second;
      if (!new_user || !new_producer) continue;
      FindingBuilder finding = out.report(
          use.user, fmt::format("{} is used before it is defined", quoted_for_people(model.name_of(use.value))));
      finding.note_at(producer, "defined here, further down");
      propose_move(analysis, use.user, producer, finding);
    }
  }

 private:
  /// Moves the producer up, with what it needs, or the user down, with what needs it: whatever moves fewer nodes.
  static void propose_move(const Analysis& analysis, NodeId user, NodeId producer, FindingBuilder& finding) {
    const Model& model = analysis.model();
    const GraphId graph = model.node(producer).graph;
    const NodeId first = in_graph(model, user, graph);  // the user, or the node whose body it stands in
    if (first == NodeId::kNone || first >= producer) return;
    const std::set<NodeId> up = needed_from(analysis, first, producer), down = needing_until(analysis, first, producer);
    std::vector<GraphEdit> edits;
    if (up.size() <= down.size()) {
      for (const NodeId node : up) edits.push_back(MoveNode{node, first});
      finding.fix(fmt::format("move node {} above this one; ONNX wants nodes in the order of their execution",
                              quoted_for_people(model.label(producer))),
                  Applicability::kSafe, std::move(edits));
      return;
    }
    const auto next = static_cast<std::uint32_t>(producer) + 1;
    const bool is_last = next >= model.graph(graph).first_node + model.graph(graph).node_count;
    for (const NodeId node : down) edits.push_back(MoveNode{node, is_last ? NodeId::kNone : static_cast<NodeId>(next)});
    finding.fix(fmt::format("move this node below {}; ONNX wants nodes in the order of their execution",
                            quoted_for_people(model.label(producer))),
                Applicability::kSafe, std::move(edits));
  }

  static NodeId in_graph(const Model& model, NodeId node, GraphId graph) {
    while (node != NodeId::kNone && model.node(node).graph != graph) node = model.graph(model.node(node).graph).owner;
    return node;
  }

  /// The producer and those of the nodes from `first` on that it needs, also for its bodies, in file order.
  static std::set<NodeId> needed_from(const Analysis& analysis, NodeId first, NodeId producer) {
    const Model& model = analysis.model();
    const GraphId graph = model.node(producer).graph;
    // What the nodes in between hand to each other, bodies included, told from the side of the users.
    std::map<NodeId, std::vector<NodeId>> makers;
    for (NodeId node = first; node <= producer; node = following(node))
      for (const NodeId user : users_of(analysis, node, graph))
        if (user >= first && user <= producer) makers[user].push_back(node);
    return reached(producer, makers);
  }

  /// The first node and those of the nodes up to the producer that need it.
  static std::set<NodeId> needing_until(const Analysis& analysis, NodeId first, NodeId producer) {
    const GraphId graph = analysis.model().node(producer).graph;
    std::map<NodeId, std::vector<NodeId>> users;
    for (NodeId node = first; node < producer; node = following(node))
      for (const NodeId user : users_of(analysis, node, graph))
        if (user > first && user < producer) users[node].push_back(user);
    return reached(first, users);
  }

  static NodeId following(NodeId node) { return static_cast<NodeId>(static_cast<std::uint32_t>(node) + 1); }

  static std::vector<NodeId> users_of(const Analysis& analysis, NodeId node, GraphId graph) {
    const Model& model = analysis.model();
    std::vector<NodeId> users;
    for (const ValueId result : model.results(model.node(node)))
      if (result != ValueId::kAbsent)
        for (const NodeId user : analysis.users(result))
          if (const NodeId known = in_graph(model, user, graph); known != NodeId::kNone) users.push_back(known);
    return users;
  }

  static std::set<NodeId> reached(NodeId from, const std::map<NodeId, std::vector<NodeId>>& edges) {
    std::set<NodeId> known{from};
    std::vector<NodeId> pending{from};
    while (!pending.empty()) {
      const auto next = edges.find(pending.back());
      pending.pop_back();
      if (next == edges.end()) continue;
      for (const NodeId node : next->second)
        if (known.insert(node).second) pending.push_back(node);
    }
    return known;
  }
};

const RegisterRule<UseBeforeDefinition> kRegister;

}  // namespace
}  // namespace tensorlint
