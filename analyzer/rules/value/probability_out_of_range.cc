#include <fmt/format.h>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class ProbabilityOutOfRange : public Rule {
 public:
  ProbabilityOutOfRange()
      : Rule({"TL-V503", "probability-out-of-range", "value", findings::Severity::kError,
              "a loss of probabilities that gets values below 0 or above 1"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (loss.kind == ops::LossKind::kBinaryCrossEntropy) check_prediction(analysis, loss, out);
  }

 private:
  static void check_prediction(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) {
    const Operand prediction(analysis, loss.prediction);
    if (!prediction.present() || prediction.taint().has(Aspect::kValue)) return;
    const Range& range = prediction.fact().range;
    if (range.lo > range.hi || (range.lo >= 0 && range.hi <= 1) || is_clamped(analysis, loss.prediction)) return;
    if (range.hi < 0 || range.lo > 1) {
      out.report(loss.anchor, fmt::format("{} takes probabilities, {} lies in {}", ops::to_text(loss.kind),
                                          prediction.name(), range.to_text()))
          .origin(prediction, Aspect::kValue);
      return;
    }
    const NodeId producer = producer_behind_identities(analysis, loss.prediction);
    if (producer == NodeId::kNone) return;
    const NodeCall call(analysis, producer);
    // Tanh of what is never negative gives probabilities.
    const bool keeps_sign = call.has(ops::OpTrait::kKeepsSign) && call.operand(0).fact().range.lo < 0;
    const bool below = range.lo < 0 && (call.is(ops::Opcode::kLogSoftmax) || keeps_sign);
    const bool above = range.hi > 1 && call.has(ops::OpTrait::kUnboundedAbove);
    if (!below && !above) return;
    out.report(findings::Severity::kWarning, loss.anchor,
               fmt::format("{} takes probabilities, {} comes from {}, which also gives values {}",
                           ops::to_text(loss.kind), prediction.name(), call.op_name(), below ? "below 0" : "above 1"))
        .certainty(ops::Certainty::kMay,
                   fmt::format("{} has {} among its elements", prediction.name(), below ? "-0.5" : "1.5"))
        .note_at(producer, fmt::format("{} is computed here", prediction.name()))
        .fix("use a Sigmoid");
  }
};

const RegisterRule<ProbabilityOutOfRange> kRegister;

}  // namespace
}  // namespace tensorlint::rules
