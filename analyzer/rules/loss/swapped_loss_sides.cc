#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/parameters.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class SwappedLossSides : public Rule {
 public:
  SwappedLossSides()
      : Rule({"TL-L314", "swapped-loss-sides", "loss", findings::Severity::kWarning,
              "a loss that takes data for its prediction, and what is computed with parameters for its target"},
             {passes::Pass::kLosses}) {}

  /// -sum(p * log(q)) that is written out, with q from data and p from what is computed with parameters.
  void check_model(const ModelView& view, Reporter& out) const override {
    if (!has_node(out, {Opcode::kSoftmax}) || one_float_outputs(view.analysis()).empty()) return;
    each_node(view, out, {Opcode::kSoftmax}, [&](const Expressions& expressions, const NodeCall& call) {
      for (const NodeId user : expressions.users(call.result()))
        if (expressions.op(user) == Opcode::kMul) check_product(expressions, call, user, out);
    });
  }

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (!has_sides(loss.kind) || analysis.has_failed(loss.anchor) ||
        analysis.model().node(loss.anchor).graph != GraphId::kMain)
      return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    ValueId data = before_stretch(expressions, loss.prediction);
    // A loss of probabilities is one of scores with the sigmoid in front of it.
    const NodeId squash = expressions.producer(data);
    if (loss.kind == losses::LossKind::kBinaryCrossEntropy) {
      if (expressions.op(squash) != Opcode::kSigmoid) return;
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
  static void check_product(const Expressions& expressions, const NodeCall& softmax, NodeId product, Reporter& out) {
    const dataflow::Analysis& analysis = softmax.analysis();
    ValueId logarithms = expressions.beside(product, softmax.result());
    if (expressions.op_of(logarithms) == Opcode::kNeg)
      logarithms = expressions.operand(expressions.producer(logarithms), 0);
    const NodeId node = logarithms == ValueId::kAbsent ? NodeId::kNone : expressions.producer(logarithms);
    const Opcode opcode = expressions.op(node);
    ValueId data = ValueId::kAbsent;
    if (opcode == Opcode::kLogSoftmax) data = before_scale(expressions, expressions.operand(node, 0));
    if (opcode == Opcode::kLog) {
      data = before_guard(expressions, expressions.operand(node, 0));
      if (expressions.op_of(data) == Opcode::kSoftmax)
        data = before_scale(expressions, expressions.operand(expressions.producer(data), 0));
    }
    if (data == ValueId::kAbsent || !is_input(analysis, before_stretch(expressions, data))) return;
    // Beside the logarithm of what the model gives, it is a divergence, which may be meant either way.
    const auto axes = expressions.axes_of(softmax.id());
    const auto users = expressions.users(expressions.result(product));
    const bool is_summed = std::ranges::any_of(users, [&](NodeId user) {
      const NodeId sum = expressions.op(user) == Opcode::kNeg && !expressions.users(expressions.result(user)).empty()
                             ? expressions.users(expressions.result(user))[0]
                             : user;
      return expressions.op(sum) == Opcode::kReduceSum && expressions.axes_of(sum) == axes;
    });
    if (!is_summed || expressions.users(softmax.result()).size() != 1 ||
        !out.shared<losses::Parameters>().reach(softmax.operand(0).value()))
      return;
    const std::string given = Operand(analysis, before_stretch(expressions, data)).name();
    out.report(product, fmt::format("the logarithms are those of {}, which is given, and the weights are computed with "
                                    "parameters: the loss is least where one class has all of them",
                                    given))
        .note_at(softmax.id(), "the probabilities are computed here")
        .fix(fmt::format("exchange them: the logarithms are those of the prediction, the weights those of {}", given));
  }

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
