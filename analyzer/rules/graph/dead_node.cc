#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
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
    if (std::ranges::all_of(live.ids(), [&](NodeId id) { return live[id]; })) return;
    const Explained is_explained(model);
    const Removal removal(view.analysis(), live);
    std::vector<NodeId> left_behind;
    for (const NodeId id : live.ids()) {
      if (live[id] || is_explained(id)) continue;
      // Of a chain of dead nodes only the last one is named: without it the others are dead the same way.
      bool feeds_another = false;
      for (const ValueId value : view.analysis().results(id))
        feeds_another = feeds_another || (value != ValueId::kAbsent && liveness.is_used(value));
      if (feeds_another) continue;
      if (is_left_behind(NodeCall(view.analysis(), id)))
        left_behind.push_back(id);
      else if (is_bypassed(view.analysis(), live, id))
        out.report(findings::Severity::kWarning, id,
                   "no result of the node is used: a layer reads what goes into it instead")
            .fix("give its result to the layer, or remove the node");
      else if (FindingBuilder finding = out.report(id, "no result of the node is used"))
        finding.fix("remove the node and everything that only feeds it", findings::Applicability::kSafe,
                    removal.of(id));
    }
    if (!left_behind.empty()) report_left_behind(left_behind, removal, out);
  }

 private:
  /// Exporters leave constants and shapes behind by the dozen, and they cost next to nothing: one finding for all.
  static bool is_left_behind(const NodeCall& call) {
    return call.is(ops::Opcode::kConstant) || call.has(ops::OpTrait::kShapeOf);
  }

  /// A normalisation with weights, and a layer that reads its operand: where that is what was meant, the normalisation
  /// would not be there.
  static bool is_bypassed(const dataflow::Analysis& analysis, const IdVector<NodeId, bool>& live, NodeId id) {
    const NodeCall call(analysis, id);
    const auto has_weights = [&](const NodeCall& node) {
      for (std::size_t i = 1; i < node.operand_count(); ++i)
        if (node.operand(i).present() && analysis.model().value(node.operand(i).value()).initializer != nullptr)
          return true;
      return false;
    };
    if (!call.is(ops::Opcode::kNormalize) || !call.operand(0).present() || !has_weights(call)) return false;
    return std::ranges::any_of(analysis.users(call.operand(0).value()), [&](NodeId user) {
      const NodeCall other(analysis, user);
      return live[user] && (other.is(ops::Opcode::kMatMul) || other.is(ops::Opcode::kConv)) &&
             other.operand(0).value() == call.operand(0).value() && has_weights(other);
    });
  }

  /// Takes away dead nodes, each with the dead nodes of its graph that only feed it.
  class Removal {
   public:
    Removal(const dataflow::Analysis& analysis, const IdVector<NodeId, bool>& live)
        : analysis_(analysis), live_(live), uses_(live.size()) {
      for (const NodeId node : live.ids())
        for (const ValueId result : analysis.results(node))
          if (result != ValueId::kAbsent) uses_[node] += analysis.users(result).size();
    }

    std::vector<GraphEdit> of(NodeId dead) const {
      constexpr std::uint64_t kStepsPerOperand = 16;
      const Model& model = analysis_.model();
      std::vector<NodeId> gone{dead};
      std::unordered_map<NodeId, std::size_t> uses_gone;
      for (std::size_t i = 0; i < gone.size(); ++i) {
        // An edit is for all of them, or none.
        const std::span<const ValueId> operands = analysis_.operands(gone[i]).read();
        analysis_.meter().charge(kStepsPerOperand * operands.size());
        for (const ValueId operand : operands) {
          const NodeId producer = model.value(operand).producer;
          if (producer == NodeId::kNone || live_[producer] || model.node(producer).graph != model.node(dead).graph)
            continue;
          if (++uses_gone[producer] == uses_[producer]) gone.push_back(producer);
        }
      }
      std::vector<GraphEdit> edits;
      edits.reserve(gone.size());
      for (const NodeId node : gone) {
        edits.push_back(RemoveNode{node});
        for (const ValueId result : analysis_.results(node).read())
          if (result != ValueId::kAbsent && model.value(result).type != nullptr)
            edits.push_back(DropValueInfo{model.node(node).graph, std::string(model.name_of(result))});
      }
      return edits;
    }

   private:
    const dataflow::Analysis& analysis_;
    const IdVector<NodeId, bool>& live_;
    IdVector<NodeId, std::size_t> uses_;  ///< operands of all nodes that its results are
  };

  static void report_left_behind(const std::vector<NodeId>& nodes, const Removal& removal, Reporter& out) {
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
      std::ranges::move(removal.of(nodes[i]), std::back_inserter(edits));
    }
    finding.fix(more == 0 ? "remove the node and everything that only feeds it"
                          : "remove these nodes and everything that only feeds them",
                findings::Applicability::kSafe, std::move(edits));
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
