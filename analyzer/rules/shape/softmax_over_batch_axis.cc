#include <fmt/format.h>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

/// Only in front of a loss is it known which axis holds the classes: elsewhere a softmax over axis 0 may be meant.
class SoftmaxOverBatchAxis : public Rule {
 public:
  SoftmaxOverBatchAxis()
      : Rule({"TL-S208", "softmax-over-batch-axis", "shape", findings::Severity::kWarning,
              "probabilities of a loss that are normalised over the batch"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (loss.evidence != losses::LossEvidence::kOperator || loss.kind != ops::LossKind::kNegativeLogLikelihood) return;
    const NodeId maker = producer_behind_identities(analysis, loss.prediction);
    if (maker == NodeId::kNone) return;
    const NodeCall call(analysis, maker);
    const Fact& scores = call.operand(0).fact();
    if (!(call.is(ops::Opcode::kSoftmax) || call.is(ops::Opcode::kLogSoftmax)) || scores.shape == ShapeId::kUnranked ||
        call.op().opset < 13)
      return;
    const auto rank = static_cast<std::int64_t>(call.facts().dims_of(scores.shape).size());
    const Attribute* axis = call.attribute("axis");
    if (rank < 2 || axis == nullptr || axis->kind != AttributeKind::kInt || (axis->i != 0 && axis->i != -rank)) return;
    out.report(maker, fmt::format("{} normalises {} over axis 0, the batch; the classes of the loss are along axis 1",
                                  call.op_name(), call.operand(0).name()))
        .note_at(loss.meeting, "the loss takes its classes from axis 1 here")
        .fix("normalise over axis 1", findings::Applicability::kUnsafe,
             {SetAttribute{maker, {.name = "axis", .kind = AttributeKind::kInt, .i = 1}}});
  }
};

const RegisterRule<SoftmaxOverBatchAxis> kRegister;

}  // namespace
}  // namespace tensorlint::rules
