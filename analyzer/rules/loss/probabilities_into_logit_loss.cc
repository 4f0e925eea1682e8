#include <fmt/format.h>

#include "analyzer/rules/casts.h"
#include "analyzer/rules/rule.h"
#include "passes/losses/terms.h"

namespace tensorlint::rules {
namespace {

class ProbabilitiesIntoLogitLoss : public Rule {
 public:
  ProbabilitiesIntoLogitLoss()
      : Rule({"TL-L305", "probabilities-into-logit-loss", "loss", findings::Severity::kWarning,
              "a loss of scores, or of logarithms, gets probabilities"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    const losses::Terms terms(analysis);
    switch (loss.kind) {
      case ops::LossKind::kNegativeLogLikelihood:
        if (loss.evidence == losses::LossEvidence::kOperator) check_logarithms(analysis, loss, out);
        break;
      case ops::LossKind::kCrossEntropy:
      case ops::LossKind::kFocal:
        check_scores(terms, loss, loss.prediction, "softmax", out);
        break;
      case ops::LossKind::kBinaryCrossEntropyWithLogits:
        check_scores(terms, loss, loss.prediction, "a sigmoid", out);
        break;
      case ops::LossKind::kBinaryCrossEntropy:
      case ops::LossKind::kBinaryFocal:
        // A loss of probabilities with a separate Sigmoid node before it.
        if (terms.op_of(loss.prediction) == ops::Opcode::kSigmoid)
          check_scores(terms, loss, terms.operand(terms.maker(loss.prediction), 0), "a sigmoid", out);
        break;
      default:
        break;
    }
  }

 private:
  static void check_scores(const losses::Terms& terms, const losses::LossSite& loss, ValueId scores,
                           std::string_view normaliser, Reporter& out) {
    const dataflow::Analysis& analysis = terms.analysis();
    const NodeId source = maker(analysis, scores);
    if (source == NodeId::kNone) return;
    const NodeCall call(analysis, source);
    // LogSoftmax is left as it is by a second one; Softmax and Sigmoid are not.
    const auto softmax = terms.normalised(call.result());
    if (!call.is(ops::Opcode::kSigmoid) && (!softmax || softmax->logarithm)) return;
    const ValueId before = softmax ? softmax->scores : call.operand(0).value();
    const Operand prediction(analysis, scores);
    out.report(loss.meeting, fmt::format("{} applies {} to {}, which {} has already turned into probabilities",
                                         ops::to_text(loss.kind), normaliser, prediction.name(), call.op_name()))
        .note_at(source, fmt::format("{} becomes probabilities here", Operand(analysis, call.result()).name()))
        .fix(fmt::format("pass {} to the loss", Operand(analysis, before).name()), findings::Applicability::kUnsafe,
             scores == loss.prediction && call.operand(0).value() == before ? hand_over(analysis, loss, call)
                                                                            : std::vector<GraphEdit>{});
  }

  /// Without the logarithm the loss is minus the probability of the right class: bounded, and flat where the model is
  /// wrong.
  static void check_logarithms(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) {
    const NodeId source = maker(analysis, loss.prediction);
    if (source == NodeId::kNone || !NodeCall(analysis, source).is(ops::Opcode::kSoftmax)) return;
    const NodeCall call(analysis, source);
    out.report(loss.meeting, fmt::format("{} takes logarithms of probabilities, {} holds the probabilities",
                                         ops::to_text(loss.kind), Operand(analysis, loss.prediction).name()))
        .note_at(source, fmt::format("{} becomes probabilities here", Operand(analysis, call.result()).name()))
        .fix("use LogSoftmax instead of Softmax");
  }

  /// Without the normalising node in between; only where nothing else stands between it and the loss.
  static std::vector<GraphEdit> hand_over(const dataflow::Analysis& analysis, const losses::LossSite& loss,
                                          const NodeCall& normaliser) {
    const Model& model = analysis.model();
    if (normaliser.result() != loss.prediction || model.node(loss.meeting).graph != normaliser.node().graph) return {};
    std::vector<GraphEdit> edits;
    const std::span<const ValueId> operands = model.operands(model.node(loss.meeting));
    for (std::uint32_t i = 0; i < operands.size(); ++i)
      if (operands[i] == loss.prediction)
        edits.push_back(SetOperand{loss.meeting, i, std::string(model.name_of(normaliser.operand(0).value()))});
    if (!edits.empty()) remove_with_last_reader(analysis, normaliser.id(), loss.meeting, edits);
    return edits;
  }

  /// The node that computed the value before others moved its elements, dropped some or clipped them.
  static NodeId maker(const dataflow::Analysis& analysis, ValueId value) {
    const Model& model = analysis.model();
    for (std::size_t steps = 0; steps < model.nodes.size() && value != ValueId::kAbsent; ++steps) {
      const NodeId producer = model.value(value).producer;
      if (producer == NodeId::kNone) return NodeId::kNone;
      const NodeCall call(analysis, producer);
      const ops::Opcode opcode = opcode_of(call.entry());
      const bool passes = moves_elements(opcode) || opcode == ops::Opcode::kCast || opcode == ops::Opcode::kDropout ||
                          opcode == ops::Opcode::kClip;
      if (!passes) return producer;
      value = call.operand(0).value();
    }
    return NodeId::kNone;
  }
};

const RegisterRule<ProbabilitiesIntoLogitLoss> kRegister;

}  // namespace
}  // namespace tensorlint::rules
