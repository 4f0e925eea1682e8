#include <fmt/format.h>

#include "analyzer/rules/casts.h"
#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class ProbabilitiesIntoLogitLoss : public Rule {
 public:
  ProbabilitiesIntoLogitLoss()
      : Rule({"TL-L305", "probabilities-into-logit-loss", "loss", findings::Severity::kWarning,
              "a loss of scores, or of logarithms, gets probabilities"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (loss.kind == ops::LossKind::kNegativeLogLikelihood && loss.evidence == losses::LossEvidence::kOperator)
      check_logarithms(analysis, loss, out);
    if (loss.kind != ops::LossKind::kCrossEntropy && loss.kind != ops::LossKind::kBinaryCrossEntropyWithLogits) return;
    check_scores(analysis, loss, out);
  }

 private:
  static void check_scores(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) {
    const NodeId source = maker(analysis, loss.prediction);
    if (source == NodeId::kNone) return;
    const NodeCall call(analysis, source);
    const bool binary = loss.kind == ops::LossKind::kBinaryCrossEntropyWithLogits;
    // LogSoftmax is left as it is by a second one; Softmax and Sigmoid are not.
    if (!call.is(binary ? ops::Opcode::kSigmoid : ops::Opcode::kSoftmax)) return;
    const Operand prediction(analysis, loss.prediction);
    out.report(loss.meeting, fmt::format("{} applies {} to {}, which {} has already turned into probabilities",
                                         ops::to_text(loss.kind), binary ? "a sigmoid" : "softmax", prediction.name(),
                                         call.op_name()))
        .note_at(source, fmt::format("{} becomes probabilities here", Operand(analysis, call.result()).name()))
        .fix(fmt::format("pass {} to the loss", call.operand(0).name()), findings::Applicability::kUnsafe,
             hand_over(analysis, loss, call));
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

  /// The node that computed the value, behind nodes that only move its elements.
  static NodeId maker(const dataflow::Analysis& analysis, ValueId value) {
    const Model& model = analysis.model();
    for (std::size_t steps = 0; steps < model.nodes.size() && value != ValueId::kAbsent; ++steps) {
      const NodeId producer = model.value(value).producer;
      if (producer == NodeId::kNone) return NodeId::kNone;
      const NodeCall call(analysis, producer);
      const ops::Opcode opcode = opcode_of(call.entry());
      if (!keeps_elements(opcode) && opcode != ops::Opcode::kTranspose && opcode != ops::Opcode::kCast) return producer;
      value = call.operand(0).value();
    }
    return NodeId::kNone;
  }
};

const RegisterRule<ProbabilitiesIntoLogitLoss> kRegister;

}  // namespace
}  // namespace tensorlint::rules
