#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class DeadNode : public Rule {
 public:
  DeadNode()
      : Rule({"TL-G612", "dead-node", "graph", findings::Severity::kInfo, "a node whose results reach no output"},
             {passes::Pass::kLiveness}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const structure::Liveness& liveness = view.liveness();
    if (liveness.has_broken_links) return;
    const Model& model = view.model();
    const IdVector<NodeId, bool>& live = liveness.live;
    const Explained is_explained(model);
    std::vector<NodeId> left_behind;
    for (const NodeId id : live.ids()) {
      if (live[id] || is_explained(id)) continue;
      // Of a chain of dead nodes only the last one is named: without it the others are dead the same way.
      bool feeds_another = false;
      for (const ValueId value : model.results(model.node(id)))
        feeds_another = feeds_another || (value != ValueId::kAbsent && liveness.is_used(value));
      if (feeds_another) continue;
      if (is_left_behind(NodeCall(view.analysis(), id)))
        left_behind.push_back(id);
      else
        out.report(id, "no result of the node is used")
            .fix("remove the node and everything that only feeds it", findings::Applicability::kSafe,
                 removal(view.analysis(), id, live));
    }
    if (!left_behind.empty()) report_left_behind(view.analysis(), left_behind, live, out);
  }

 private:
  /// Exporters leave constants and shapes behind by the dozen, and they cost next to nothing: one finding for all.
  static bool is_left_behind(const NodeCall& call) {
    return call.is(ops::Opcode::kConstant) || call.has(ops::OpTrait::kShapeOf);
  }

  static void report_left_behind(const dataflow::Analysis& analysis, const std::vector<NodeId>& nodes,
                                 const IdVector<NodeId, bool>& live, Reporter& out) {
    constexpr std::size_t kNoted = 8;
    const std::size_t more = nodes.size() - 1;
    FindingBuilder finding = out.report(
        nodes.front(),
        more == 0 ? std::string("no result of the node is used")
                  : fmt::format("no result of the node is used, nor of {} more that only {} constants or shapes", more,
                                more == 1 ? "gives" : "give"));
    std::vector<GraphEdit> edits;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (i > 0 && i <= kNoted) finding.note_at(nodes[i], "no result of this node either");
      std::ranges::move(removal(analysis, nodes[i], live), std::back_inserter(edits));
    }
    finding.fix(more == 0 ? "remove the node and everything that only feeds it"
                          : "remove these nodes and everything that only feeds them",
                findings::Applicability::kSafe, std::move(edits));
  }

  /// Takes away the node and, before it, the dead nodes of its graph that nothing else uses.
  static std::vector<GraphEdit> removal(const dataflow::Analysis& analysis, NodeId dead,
                                        const IdVector<NodeId, bool>& live) {
    const Model& model = analysis.model();
    std::vector<NodeId> gone{dead};
    std::set<NodeId> known{dead};
    const auto only_feeds_gone = [&](NodeId node) {
      for (const ValueId result : model.results(model.node(node)))
        if (result != ValueId::kAbsent)
          for (const NodeId user : analysis.users(result))
            if (!known.contains(user)) return false;
      return true;
    };
    for (std::size_t i = 0; i < gone.size(); ++i) {
      std::set<NodeId> asked;  // a node may read one value any number of times
      for (const ValueId operand : model.operands(model.node(gone[i]))) {
        const NodeId producer = model.value(operand).producer;
        if (producer == NodeId::kNone || live[producer] || known.contains(producer) || !asked.insert(producer).second)
          continue;
        if (model.node(producer).graph != model.node(dead).graph || !only_feeds_gone(producer)) continue;
        known.insert(producer);
        gone.push_back(producer);
      }
    }
    std::vector<GraphEdit> edits;
    for (const NodeId node : gone) {
      edits.push_back(RemoveNode{node});
      for (const ValueId result : model.results(model.node(node)))
        if (result != ValueId::kAbsent)
          edits.push_back(DropValueInfo{model.node(node).graph, std::string(model.name_of(result))});
    }
    return edits;
  }

  /// Another mistake is why nothing uses the results: an output of the graph has a wrong name, or somebody else has
  /// theirs.
  class Explained {
   public:
    explicit Explained(const Model& model) : model_(model), lacks_output_(model.graphs.size()) {
      for (const GraphId id : model.graphs.ids())
        lacks_output_[id] = std::ranges::any_of(model.graph(id).outputs, [&](ValueId output) {
          return output == ValueId::kAbsent || model.value(output).origin == ValueOrigin::kUndefined;
        });
      for (const StructureFault& fault : model.faults) faulty_.insert(fault.node);
    }
    bool operator()(NodeId node) const { return lacks_output_[model_.node(node).graph] || faulty_.contains(node); }

   private:
    const Model& model_;
    IdVector<GraphId, bool> lacks_output_;
    std::set<NodeId> faulty_;
  };
};

const RegisterRule<DeadNode> kRegister;

}  // namespace
}  // namespace tensorlint::rules
