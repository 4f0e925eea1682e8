#include <fmt/format.h>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/parameters.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;

class SwappedLossSides : public Rule {
 public:
  SwappedLossSides()
      : Rule({"TL-L314", "swapped-loss-sides", "loss", findings::Severity::kWarning,
              "a loss that takes data for its prediction, and what is computed with parameters for its target"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (!has_sides(loss.kind) || analysis.has_failed(loss.anchor) ||
        analysis.model().node(loss.anchor).graph != GraphId::kMain)
      return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    ValueId data = before_stretch(expressions, loss.prediction);
    // A loss of probabilities is one of scores with the sigmoid in front of it.
    const NodeId squash = expressions.producer(data);
    if (loss.kind == losses::LossKind::kBinaryCrossEntropy) {
      if (expressions.op(squash) != ops::Opcode::kSigmoid) return;
      data = before_stretch(expressions, expressions.operand(squash, 0));
    }
    if (data == ValueId::kAbsent || !is_input(analysis, data)) return;
    // The target of a distillation comes from parameters, too; then the prediction does as well.
    losses::Parameters& parameters = out.shared<losses::Parameters>();
    if (parameters.reach(data) || !parameters.reach(loss.target)) return;
    const std::string given = Operand(analysis, data).name(), computed = Operand(analysis, loss.target).name();
    out.report(loss.anchor, fmt::format("{} takes {} for its prediction, and {}, which is computed with parameters, "
                                        "for its target",
                                        ops::to_text(loss.kind), given, computed))
        .origin(Operand(analysis, loss.target), Aspect::kValue)
        .fix(fmt::format("exchange them: the prediction is {}, the target is {}", computed, given));
  }

 private:
  /// Linear in one of its sides: the scores are free to fall without bound, or nothing but a factor. The divergence of
  /// a model from given probabilities may be meant either way.
  static bool has_sides(losses::LossKind kind) {
    using Kind = losses::LossKind;
    return kind == Kind::kBinaryCrossEntropyWithLogits || kind == Kind::kBinaryCrossEntropy || kind == Kind::kPoisson;
  }
};

const RegisterRule<SwappedLossSides> kRegisterSwappedLossSides;

}  // namespace
}  // namespace tensorlint::rules
