#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
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
    for (const NodeId id : live.ids())
      if (live[id] && NodeCall(view.analysis(), id).is(ops::Opcode::kRecurrence))
        check_left_out(view.analysis(), live, id, out);
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
      constexpr std::uint64_t kOperandsOfStep = 8;
      analysis.facts().meter().charge(node.operand_count() / kOperandsOfStep);
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

  /// A recurrent layer whose results are only joined with those of others, and what is picked of them are the others:
  /// the state of the lower layer for that of the upper one.
  static void check_left_out(const dataflow::Analysis& analysis, const IdVector<NodeId, bool>& live, NodeId layer,
                             Reporter& out) {
    NodeId picked = NodeId::kNone;
    ValueId joined = ValueId::kAbsent;
    for (const ValueId result : analysis.results(layer)) {
      if (result == ValueId::kAbsent) continue;
      if (analysis.model().value(result).is_output) return;
      for (const NodeId user : analysis.users(result)) {
        if (!live[user]) continue;
        const NodeId other = other_part_of(analysis, live, user, result);
        if (other == NodeId::kNone) return;
        picked = other;
        joined = NodeCall(analysis, user).result();
      }
    }
    if (picked == NodeId::kNone) return;
    const NodeCall call(analysis, layer);
    out.report(
           findings::Severity::kWarning, picked,
           fmt::format("nothing picks the part of {} that {} gives: the layer has no effect, and its weights are never "
                       "trained",
                       Operand(analysis, joined).name(), call.op_name()))
        .note_at(layer, "the layer whose result is left out")
        .fix("pick the state of the last layer, h[-1]");
  }

  /// The node that picks parts of what `join` joins along its first axis, none of them `part`; kNone where one is, or
  /// that is not known.
  static NodeId other_part_of(const dataflow::Analysis& analysis, const IdVector<NodeId, bool>& live, NodeId join,
                              ValueId part) {
    const NodeCall call(analysis, join);
    const Attribute* axis = call.attribute("axis");
    if (!call.is(ops::Opcode::kConcat) || axis == nullptr || axis->i != 0 || call.result() == ValueId::kAbsent ||
        analysis.model().value(call.result()).is_output)
      return NodeId::kNone;
    constexpr std::size_t kMostParts = 64;
    std::int64_t first = -1, last = -1, total = 0;
    for (std::size_t i = 0; i < call.operand_count(); ++i) {
      const Operand operand = call.operand(i);
      if (i >= kMostParts || !operand.present() || operand.fact().kind != ValueKind::kTensor ||
          operand.fact().shape == ShapeId::kUnranked || operand.taint().has(Aspect::kShape))
        return NodeId::kNone;
      const auto dims = analysis.facts().dims_of(operand.fact().shape);
      const auto extent = dims.empty() ? std::nullopt : analysis.facts().dims().as_constant(dims.front());
      if (!extent) return NodeId::kNone;
      if (operand.value() == part) {
        if (first >= 0) return NodeId::kNone;
        first = total;
        last = total + *extent;
      }
      analysis.meter().charge(4);
      total += *extent;
    }
    NodeId found = NodeId::kNone;
    for (const NodeId user : analysis.users(call.result())) {
      if (!live[user]) continue;
      const auto picked = picked_of(NodeCall(analysis, user), call.result(), static_cast<double>(total));
      if (!picked || (picked->from < static_cast<double>(last) && picked->to > static_cast<double>(first)))
        return NodeId::kNone;
      found = user;
    }
    return found;
  }

  struct Interval {
    double from = 0, to = 0;
  };

  /// The part of the first axis, of which there are `total`, that a node takes; nullopt where that is not known.
  static std::optional<Interval> picked_of(const NodeCall& pick, ValueId joined, double total) {
    pick.analysis().meter().charge(4);
    const auto number = [&](std::size_t index) -> std::optional<double> {
      const Operand operand = pick.operand(index);
      if (!operand.present() || operand.taint().has(Aspect::kValue)) return std::nullopt;
      const Range& range = operand.fact().range;
      if (range.nan || range.lo != range.hi) return std::nullopt;
      return range.lo;
    };
    const auto from_front = [&](double at) { return std::clamp(at < 0 ? at + total : at, 0.0, total); };
    if (pick.operand(0).value() != joined) return std::nullopt;
    if (pick.is(ops::Opcode::kGather)) {
      const Attribute* axis = pick.attribute("axis");
      const auto index = number(1);
      if (!index || (axis != nullptr && axis->i != 0)) return std::nullopt;
      const double at = from_front(*index);
      return Interval{at, at + 1};
    }
    if (pick.is(ops::Opcode::kSlice)) {
      const auto from = number(1), to = number(2), axis = number(3);
      if (!from || !to || !axis || *axis != 0 || (pick.operand(4).present() && number(4) != 1)) return std::nullopt;
      return Interval{from_front(*from), from_front(*to)};
    }
    return std::nullopt;
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

const RegisterRule<DeadNode> kRegisterDeadNode;

}  // namespace
}  // namespace tensorlint::rules
