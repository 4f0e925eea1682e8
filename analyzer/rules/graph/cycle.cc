#include <fmt/format.h>

#include <set>

#include "analyzer/findings/escape.h"
#include "analyzer/rules/rule.h"

namespace tensorlint {
namespace {

class Cycle : public Rule {
 public:
  Cycle() : Rule({"TL-G606", "cycle", "graph", Severity::kError, "nodes that need each other's results"}) {}

  void check_model(ModelView& view, Reporter& out) const override {
    const Model& model = view.model();
    std::set<NodeId> said;
    for (const EarlyUse& use : view.analysis().early_uses()) {
      if (!use.in_cycle) continue;
      const std::vector<NodeId> path = way_back(view.analysis(), use);
      if (path.empty()) continue;  // behind a cycle, not on it
      bool known = false;
      for (const NodeId node : path) known = !said.insert(node).second || known;
      if (known) continue;
      const std::string value = quoted_for_people(model.name_of(use.value));
      FindingBuilder finding = out.report(
          use.user, path.size() == 1 ? fmt::format("the node needs its own result {}", value)
                                     : fmt::format("the node needs {}, which is computed from its own result", value));
      for (const NodeId node : path)
        if (node != use.user) finding.note_at(node, "stands on the cycle");
    }
  }

 private:
  /// Nodes on a shortest way from the user of an early value to its producer, along results; empty when there is none.
  static std::vector<NodeId> way_back(const Analysis& analysis, const EarlyUse& use) {
    const Model& model = analysis.model();
    const NodeId goal = model.value(use.value).producer;
    const GraphId graph = model.node(use.user).graph;
    std::map<NodeId, NodeId> from{{use.user, NodeId::kNone}};
    std::deque<NodeId> pending{use.user};
    while (!pending.empty() && !from.contains(goal)) {
      const NodeId at = pending.front();
      pending.pop_front();
      for (const ValueId result : model.results(model.node(at))) {
        if (result == ValueId::kAbsent) continue;
        for (NodeId user : analysis.users(result)) {
          while (user != NodeId::kNone && model.node(user).graph != graph) user = model.graph(model.node(user).graph).owner;
          if (user != NodeId::kNone && from.emplace(user, at).second) pending.push_back(user);
        }
      }
    }
    std::vector<NodeId> path;
    if (from.contains(goal))
      for (NodeId at = goal; at != NodeId::kNone; at = from.at(at)) path.push_back(at);
    return path;
  }
};

const RegisterRule<Cycle> kRegister;

}  // namespace
}  // namespace tensorlint
