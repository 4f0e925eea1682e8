#include <fmt/format.h>

#include <optional>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class TemperatureMultiplied : public Rule {
 public:
  TemperatureMultiplied()
      : Rule({"TL-L339", "temperature-multiplied", "loss", findings::Severity::kWarning,
              "cosines that are made smaller before a softmax, where a temperature is to make them larger"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (!ops::takes_class_indices(loss.kind) || analysis.has_failed(loss.anchor)) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    ValueId scores = loss.prediction;
    if (const auto softmax = scores == ValueId::kAbsent ? std::nullopt : expressions.normalised(scores))
      scores = softmax->scores;
    if (scores == ValueId::kAbsent) return;
    double scale = 1;
    NodeId scaled = NodeId::kNone;
    constexpr int kMaxSteps = 4;
    for (int step = 0; step < kMaxSteps; ++step) {
      scores = before_stretch(expressions, scores);
      const NodeId node = expressions.producer(scores);
      const auto numbered = with_number(expressions, node);
      const bool multiplies = expressions.op(node) == Opcode::kMul,
                 divides = expressions.op(node) == Opcode::kDiv && numbered && !numbered->is_first;
      if (!numbered || (!multiplies && !divides) || !(numbered->number > 0)) break;
      scale *= multiplies ? numbered->number : 1 / numbered->number;
      scores = numbered->value;
      scaled = node;
    }
    // With 0.3 the likeliest of two classes gets no more than 65 %.
    constexpr double kSmall = 0.3;
    if (scaled == NodeId::kNone || scale > kSmall) return;
    const auto cosine = cosine_of(expressions, scores);
    if (!cosine || !cosine->both_divided) return;
    out.report(scaled,
               fmt::format("scores are between -{0:.4g} and {0:.4g}: {1} are cosines, and a softmax of so small "
                           "numbers is almost even",
                           scale, Operand(analysis, scores).name()))
        .note_at(cosine->node, "the cosines are computed here")
        .fix("divide by the temperature");
  }
};

const RegisterRule<TemperatureMultiplied> kRegisterTemperatureMultiplied;

}  // namespace
}  // namespace tensorlint::rules
