#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class TrainingModeWithoutLoss : public Rule {
 public:
  TrainingModeWithoutLoss()
      // A program that runs in training mode trains, whatever it calls afterwards; a file is what is deployed.
      : Rule({"TL-G622", "training-mode-without-loss", "graph", findings::Severity::kWarning,
              "a node in training mode in a model that computes no loss", kFilesOnly},
             {passes::Pass::kLosses, passes::Pass::kGradientReach, passes::Pass::kLiveness}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    std::vector<bool> has_mode;  // most models know no such operator: the nodes need not be looked at then
    for (const Operator& op : view.model().operators) has_mode.push_back(has_training_mode(op));
    if (std::ranges::find(has_mode, true) == has_mode.end()) return;
    std::vector<NodeId> training;
    for (const NodeId id : view.analysis().nodes())
      if (has_mode[static_cast<std::size_t>(view.model().node(id).op)] && trains(NodeCall(view.analysis(), id)))
        training.push_back(id);
    if (training.empty() || serves_training(view, training)) return;
    for (const NodeId id : training)
      out.report(id, fmt::format("{} is in training mode, but the model computes no loss",
                                 NodeCall(view.analysis(), id).op_name()))
          .cause("training mode")
          .fix("export the model in inference mode, for example after `model.eval()`");
  }

 private:
  /// BatchNormalization has the mode as an attribute, Dropout as an operand.
  static bool has_training_mode(const Operator& op) {
    return op.schema != nullptr && op.function == GraphId::kNone &&
           (op.schema->attribute("training_mode") != nullptr || op.schema->input_index("training_mode") >= 0);
  }

  static bool trains(const NodeCall& call) {
    if (!call.analysis().is_visited(call.id())) return false;
    if (call.op().schema->attribute("training_mode") != nullptr) {
      const Attribute* mode = call.attribute("training_mode");
      return mode != nullptr && mode->kind == AttributeKind::kInt && mode->i != 0;
    }
    const Operand mode = operand_named(call, "training_mode"), ratio = operand_named(call, "ratio");
    if (!mode.present() || !holds(mode.fact().range, 1, 1)) return false;
    // Nothing is dropped.
    return !ratio.present() || !holds(ratio.fact().range, 0, 0);
  }

  static Operand operand_named(const NodeCall& call, std::string_view name) {
    const int index = call.op().schema->input_index(name);
    return index < 0 ? Operand(call.analysis(), ValueId::kAbsent) : call.operand(static_cast<std::size_t>(index));
  }

  /// There are elements, and all of them are in [lo, hi].
  static bool holds(const Range& range, double lo, double hi) {
    return !range.nan && range.lo <= range.hi && range.lo >= lo && range.hi <= hi;
  }

  /// Whether the model may be a step of training, or the part of one that a framework completes.
  static bool serves_training(const ModelView& view, const std::vector<NodeId>& training) {
    const Model& model = view.model();
    if (!view.losses().empty() || !view.gradient_reach().parameters.empty() || view.liveness().has_broken_links)
      return true;
    // Somebody keeps the running statistics, or hands the mask to the gradient.
    for (const NodeId id : training) {
      const std::span<const ValueId> results = view.analysis().results(id).read();
      for (std::size_t r = 1; r < results.size(); ++r)
        if (results[r] != ValueId::kAbsent && view.liveness().is_used(results[r])) return true;
    }
    // An operator is there because a node is.
    for (const Operator& op : model.operators)
      if (model.text(op.domain) == "ai.onnx.preview.training") return true;
    return std::ranges::any_of(view.analysis().outputs(GraphId::kMain),
                               [&](ValueId output) { return may_be_loss(view.analysis(), output); });
  }

  /// A loss that no pattern knows is a number still.
  static bool may_be_loss(const dataflow::Analysis& analysis, ValueId output) {
    if (output == ValueId::kAbsent) return true;
    const Fact& fact = analysis.fact(output);
    if (fact.kind != ValueKind::kTensor) return fact.kind == ValueKind::kUnknown;
    if (!fact.dtypes.intersects(DTypeSet::floats())) return false;
    const FactStore& facts = analysis.facts();
    if (!facts.is_ranked(fact.shape)) return true;
    return std::ranges::all_of(facts.dims_of(fact.shape), [&](Dim dim) { return facts.dims().is_constant(dim, 1); });
  }
};

const RegisterRule<TrainingModeWithoutLoss> kRegisterTrainingModeWithoutLoss;

}  // namespace
}  // namespace tensorlint::rules
