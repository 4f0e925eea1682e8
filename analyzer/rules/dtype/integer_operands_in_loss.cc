#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyzer/rules/casts.h"
#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/reported_nodes.h"
#include "passes/losses/gradient_way.h"

namespace tensorlint::rules {
namespace {

class IntegerOperandsInLoss : public Rule {
 public:
  IntegerOperandsInLoss()
      : Rule({"TL-D102", "integer-operands-in-loss", "dtype", findings::Severity::kError,
              "a loss gets integers where it needs floating-point predictions or weights"},
             {passes::Pass::kLosses}) {}

  Specificity match(const ViolationCase& violation) const override {
    const bool types = violation.kind() == ops::ConstraintKind::kMixedDtypes ||
                       violation.kind() == ops::ConstraintKind::kTypeConstraint;
    return types && violation.loss_kind() && integer_operand(violation) ? Specificity::kForLoss : Specificity::kNone;
  }

  /// A loss that takes integers without a word: a mean of int64 is int64, and truncates; PyTorch refuses it.
  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (loss.anchor == NodeId::kNone || !ops::is_regression(loss.kind) || !takes_mean(analysis, loss) ||
        !computes_integers(analysis, loss) || is_metric(analysis, loss, out))
      return;
    const Operand prediction(analysis, loss.prediction), target(analysis, loss.target);
    out.shared<ReportedNodes>().add("TL-D102", loss.anchor);
    out.report(loss.anchor,
               fmt::format("{} of {} and {}, both {}: it needs floating-point operands", ops::to_text(loss.kind),
                           prediction.name(), target.name(), prediction.fact().dtypes.to_text()))
        .origin(prediction, Aspect::kDtype)
        .origin(target, Aspect::kDtype)
        .fix(fmt::format("cast {} and {} to float32", prediction.name(), target.name()));
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    const Operand operand = *integer_operand(violation);
    FindingBuilder finding = report_violation(
        violation,
        fmt::format("{} gets {} of dtype {}, it needs floating-point operands", ops::to_text(*violation.loss_kind()),
                    operand.name(), operand.fact().dtypes.to_text()),
        out);
    if (const auto fix = cast_to_float(violation)) {
      propose_cast(finding, violation, *fix);
    } else {
      finding.fix(fmt::format("cast {} to float32", operand.name()), findings::Applicability::kUnsafe,
                  insert_cast(violation.analysis, violation.at.node, operand.value(), DType::kFloat32));
    }
  }

 private:
  /// Another output of the model is a number that trains weights: what no gradient passes is reported beside it.
  static bool is_metric(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) {
    if (loss.output == ValueId::kAbsent) return false;
    const std::vector<ValueId> outputs = one_float_outputs(analysis);
    return std::ranges::any_of(outputs, [&](ValueId output) {
      return output != loss.output && out.shared<losses::GradientWays>().of_loss(output).reaches_weight;
    });
  }

  /// A sum of integer sizes is exact, and may be a count; a mean is not, and nobody counts squares.
  static bool takes_mean(const dataflow::Analysis& analysis, const losses::LossSite& loss) {
    if (loss.evidence == losses::LossEvidence::kOperator || loss.evidence == losses::LossEvidence::kMetadata)
      return true;
    if (loss.output != ValueId::kAbsent && loss.kind != ops::LossKind::kL1) return true;
    return std::ranges::any_of(loss.nodes,
                               [&](NodeId node) { return NodeCall(analysis, node).is(ops::Opcode::kReduceMean); });
  }

  /// Prediction and target are integers, and no node of the loss fails for it.
  static bool computes_integers(const dataflow::Analysis& analysis, const losses::LossSite& loss) {
    const auto is_integer = [&](ValueId value) {
      if (value == ValueId::kAbsent || analysis.taint(value).has(Aspect::kDtype)) return false;
      const Fact& fact = analysis.fact(value);
      return fact.kind == ValueKind::kTensor && fact.dtypes.proves(DTypeSet::integers() | DType::kBool);
    };
    return is_integer(loss.prediction) && is_integer(loss.target) &&
           std::ranges::none_of(loss.nodes, [&](NodeId node) { return analysis.has_failed(node); });
  }

  static std::optional<Operand> integer_operand(const ViolationCase& violation) {
    const bool has_labels = violation.loss != nullptr && ops::takes_class_indices(violation.loss->kind) &&
                            violation.loss->evidence == losses::LossEvidence::kOperator;
    for (const Operand& operand : violation.operands())
      if (!(has_labels && operand.value() == violation.loss->target) && operand.fact().kind == ValueKind::kTensor &&
          operand.fact().dtypes.proves(DTypeSet::integers() | DType::kBool))
        return operand;
    return std::nullopt;
  }
};

const RegisterRule<IntegerOperandsInLoss> kRegisterIntegerOperandsInLoss;

}  // namespace
}  // namespace tensorlint::rules
