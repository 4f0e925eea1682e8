#include <fmt/format.h>

#include <cmath>
#include <set>

#include "analyzer/rules/casts.h"
#include "analyzer/rules/loss/prediction.h"
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
    check_twice(terms, loss, loss.target, out);
    switch (loss.kind) {
      case ops::LossKind::kNegativeLogLikelihood:
        if (loss.evidence == losses::LossEvidence::kOperator) check_logarithms(terms, loss, out);
        break;
      case ops::LossKind::kKlDivergence:
        check_logarithms(terms, loss, out);
        check_twice(terms, loss, loss.prediction, out);
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

  /// Where the loss itself is not known: logarithms of a sigmoid of probabilities.
  void check_model(const ModelView& view, Reporter& out) const override {
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    if (outputs.empty()) return;
    const losses::Terms terms(view.analysis());
    std::set<NodeId> known;
    for (const losses::LossSite& loss : view.losses()) known.insert(loss.nodes.begin(), loss.nodes.end());
    for (const ValueId output : outputs)
      for (const NodeId logarithm : summed_logarithms(terms, output))
        if (!known.contains(logarithm)) check_logarithm_of_sigmoid(terms, logarithm, known, out);
  }

 private:
  static void check_logarithm_of_sigmoid(const losses::Terms& terms, NodeId logarithm, std::set<NodeId>& known,
                                         Reporter& out) {
    const auto term = terms.log_term(terms.result(logarithm));
    if (!term || term->logit == ValueId::kAbsent || term->argument == ValueId::kAbsent) return;
    const NodeId first = normalising_node(terms, term->logit), second = terms.maker(term->argument);
    if (first == NodeId::kNone || !known.insert(second).second) return;
    const NodeCall call(terms.analysis(), second), before(terms.analysis(), first);
    out.report(second, fmt::format("{} is applied to {}, which {} has already turned into probabilities",
                                   call.op_name(), Operand(terms.analysis(), term->logit).name(), before.op_name()))
        .note_at(first, fmt::format("{} becomes probabilities here", Operand(terms.analysis(), before.result()).name()))
        .fix("normalise once");
  }

  static void check_scores(const losses::Terms& terms, const losses::LossSite& loss, ValueId scores,
                           std::string_view normaliser, Reporter& out) {
    const dataflow::Analysis& analysis = terms.analysis();
    const NodeId source = normalising_node(terms, scores);
    if (source == NodeId::kNone) {
      check_sign(terms, loss, scores, normaliser, out);
      return;
    }
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

  /// Scores that a hinge has just cut off at zero: no class gets a probability below the one of a score of 0, and what
  /// was cut off has no gradient.
  static void check_sign(const losses::Terms& terms, const losses::LossSite& loss, ValueId scores,
                         std::string_view normaliser, Reporter& out) {
    const dataflow::Analysis& analysis = terms.analysis();
    ValueId value = scores;
    constexpr int kMaxViews = 8;
    for (int step = 0; step < kMaxViews; ++step) {
      const ops::Opcode opcode = terms.op_of(value);
      if (!ops::moves_elements(opcode) && opcode != ops::Opcode::kCast && opcode != ops::Opcode::kDropout) break;
      value = terms.operand(terms.maker(value), 0);
    }
    const NodeId node = terms.maker(value);
    const ValueId before = terms.operand(node, 0);
    const ops::Opcode opcode = terms.op(node);
    const bool hinge = opcode == ops::Opcode::kClip || opcode == ops::Opcode::kMax ||
                       (opcode == ops::Opcode::kOther && has_trait(terms.entry(node), ops::OpTrait::kElementwise));
    if (!hinge || before == ValueId::kAbsent || analysis.taint(value).has(Aspect::kValue)) return;
    const Range &after = analysis.fact(value).range, &given = analysis.fact(before).range;
    if (after.lo != 0 || !std::isinf(after.hi) || given.lo >= 0) return;
    const NodeCall call(analysis, node);
    out.report(loss.meeting,
               fmt::format("{} applies {} to {}, which {} keeps from being negative", ops::to_text(loss.kind),
                           normaliser, Operand(analysis, scores).name(), call.op_name()))
        .note_at(node, "negative scores become 0 here, and get no gradient")
        .fix(fmt::format("pass {} to the loss", Operand(analysis, before).name()));
  }

  /// One side of the loss is normalised, and what it is normalised from were probabilities already.
  static void check_twice(const losses::Terms& terms, const losses::LossSite& loss, ValueId side, Reporter& out) {
    const auto second = terms.normalised(terms.source(side));
    if (!second) return;
    const NodeId first = normalising_node(terms, second->scores);
    if (first == NodeId::kNone || !NodeCall(terms.analysis(), first).is(ops::Opcode::kSoftmax)) return;
    const NodeCall call(terms.analysis(), second->node), before(terms.analysis(), first);
    out.report(second->node,
               fmt::format("{} is applied to {}, which {} has already turned into probabilities", call.op_name(),
                           Operand(terms.analysis(), second->scores).name(), before.op_name()))
        .note_at(first, fmt::format("{} becomes probabilities here", Operand(terms.analysis(), before.result()).name()))
        .note_at(loss.meeting, fmt::format("{} gets the result here", ops::to_text(loss.kind)))
        .fix("normalise once");
  }

  /// Without the logarithm the loss is minus the probability of the right class: bounded, and flat where the model is
  /// wrong.
  static void check_logarithms(const losses::Terms& terms, const losses::LossSite& loss, Reporter& out) {
    const dataflow::Analysis& analysis = terms.analysis();
    const NodeId source = normalising_node(terms, loss.prediction);
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

  /// The node that normalises what the value is a mean of: others may move its elements, drop some, clip or scale them
  /// or average them with other probabilities.
  static NodeId normalising_node(const losses::Terms& terms, ValueId value) {
    int left = kMaxSteps;
    return normalising_node(terms, value, left);
  }

  static NodeId normalising_node(const losses::Terms& terms, ValueId value, int& left) {
    while (left-- > 0 && value != ValueId::kAbsent) {
      const NodeId node = terms.maker(value);
      if (node == NodeId::kNone) return NodeId::kNone;
      const ops::Opcode opcode = terms.op(node);
      const auto is_scale = [&](std::size_t side) {
        const double scale = terms.number(terms.operand(node, side)).value_or(0);
        return scale >= 1 / kMaxScale && scale <= kMaxScale;
      };
      if (opcode == ops::Opcode::kAdd) {
        const NodeId first = normalising_node(terms, terms.operand(node, 0), left);
        return first == NodeId::kNone || normalising_node(terms, terms.operand(node, 1), left) == NodeId::kNone
                   ? NodeId::kNone
                   : first;
      }
      if (opcode == ops::Opcode::kMul && is_scale(0)) {
        value = terms.operand(node, 1);
        continue;
      }
      const bool scales = (opcode == ops::Opcode::kMul || opcode == ops::Opcode::kDiv) && is_scale(1);
      const bool passes = scales || moves_elements(opcode) || opcode == ops::Opcode::kCast ||
                          opcode == ops::Opcode::kDropout || opcode == ops::Opcode::kClip;
      if (!passes) return opcode == ops::Opcode::kSigmoid || terms.normalised(value) ? node : NodeId::kNone;
      value = terms.operand(node, 0);
    }
    return NodeId::kNone;
  }

  static constexpr int kMaxSteps = 64;
  /// Probabilities that are scaled by more are scores of their own, as with the temperature of a contrast.
  static constexpr double kMaxScale = 8;
};

const RegisterRule<ProbabilitiesIntoLogitLoss> kRegister;

}  // namespace
}  // namespace tensorlint::rules
