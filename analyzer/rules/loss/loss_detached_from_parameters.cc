#include <fmt/format.h>

#include "analyzer/rules/rule.h"
#include "passes/losses/gradient_reach.h"

namespace tensorlint::rules {
namespace {

class LossDetachedFromParameters : public Rule {
 public:
  LossDetachedFromParameters()
      : Rule({"TL-L306", "loss-detached-from-parameters", "loss", findings::Severity::kWarning,
              "a loss whose gradient reaches no parameter"},
             {passes::Pass::kLosses, passes::Pass::kGradientReach, passes::Pass::kLiveness}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const dataflow::Analysis& analysis = view.analysis();
    const losses::GradientReach& gradients = view.gradient_reach();
    // Losses inside bodies and functions get their operands from somewhere else.
    if (gradients.parameters.empty() || view.losses().empty() || view.liveness().has_broken_links) return;
    for (const losses::LossSite& loss : view.losses()) {
      if (view.model().node(loss.meeting).graph != GraphId::kMain || gradients.reaches(loss.prediction) ||
          gradients.reaches(loss.target))
        continue;
      const Operand prediction(analysis, loss.prediction);
      FindingBuilder finding = out.report(loss.meeting, fmt::format("no gradient of {} reaches a parameter through {}",
                                                                    ops::to_text(loss.kind), prediction.name()));
      if (const NodeId cut = losses::where_gradients_stop(analysis, loss.prediction); cut != NodeId::kNone)
        finding.note_at(cut, stop_text(analysis, cut));
    }
  }

 private:
  /// "the gradient stops here: `labels` is int64"
  static std::string stop_text(const dataflow::Analysis& analysis, NodeId cut) {
    for (const ValueId result : analysis.model().results(analysis.model().node(cut)))
      if (result != ValueId::kAbsent)
        return fmt::format("the gradient stops here: {} is {}", Operand(analysis, result).name(),
                           analysis.fact(result).dtypes.to_text());
    return "the gradient stops here";
  }
};

const RegisterRule<LossDetachedFromParameters> kRegister;

}  // namespace
}  // namespace tensorlint::rules
