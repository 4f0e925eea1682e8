#include <fmt/format.h>

#include <optional>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/parameters.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class OneSideNormalised : public Rule {
 public:
  OneSideNormalised()
      : Rule({"TL-L411", "one-side-normalised", "loss", findings::Severity::kWarning,
              "scores of pairs of samples, of which one side was divided by its length and the other was not"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const dataflow::Analysis& analysis = view.analysis();
    for (const losses::LossSite& loss : view.losses()) {
      if (loss.kind != losses::LossKind::kCrossEntropy || loss.anchor == NodeId::kNone ||
          analysis.has_failed(loss.anchor) || loss.target == ValueId::kAbsent || loss.prediction == ValueId::kAbsent)
        continue;
      const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
      // The partner of each sample is at its own place.
      if (are_steps(expressions, loss.target) && check_scores(expressions, loss.prediction, out)) return;
    }
    // The diagonal of the logarithms, which exporters write as a product.
    each_node(view, out, {Opcode::kLogSoftmax}, [&](const Expressions& expressions, const NodeCall& call) {
      for (const NodeId user : expressions.users(call.result()))
        if (const ValueId mask = expressions.beside(user, call.result());
            expressions.op(user) == Opcode::kMul && mask != ValueId::kAbsent && is_identity_matrix(expressions, mask))
          check_scores(expressions, call.operand(0).value(), out);
    });
  }

 private:
  static bool check_scores(const Expressions& expressions, ValueId scores, Reporter& out) {
    const NodeId product = expressions.producer(before_factor(expressions, scores));
    const Opcode opcode = expressions.op(product);
    const dataflow::Analysis& analysis = expressions.analysis();
    if ((opcode != Opcode::kMatMul && opcode != Opcode::kEinsum) || analysis.operands(product).size() != 2)
      return false;
    losses::Parameters& parameters = out.shared<losses::Parameters>();
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId divided = before_factor(expressions, expressions.operand(product, side)),
                    other = before_factor(expressions, expressions.operand(product, 1 - side));
      if (divided == ValueId::kAbsent || other == ValueId::kAbsent || !is_of_unit_length(expressions, divided))
        continue;
      // A layer gives the other one, with nothing behind it that keeps its length.
      const NodeId layer = expressions.producer(before_bias(expressions, other));
      if (expressions.op(layer) != Opcode::kMatMul || !parameters.reach(other)) return false;
      out.report(product, fmt::format("{} was divided by its length, and {} was not: a score rises with the length of "
                                      "one side",
                                      Operand(analysis, divided).name(), Operand(analysis, other).name()))
          .note_at(layer, "what this layer gives may be of any length")
          .note_at(expressions.producer(divided), "the other side is divided here")
          .fix("divide both: F.normalize(x, dim=-1)");
      return true;
    }
    return false;
  }

  /// Before products with numbers, and with one number that the model learns.
  static ValueId before_factor(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 6;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      value = before_scale(expressions, before_stretch(expressions, value));
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (opcode != Opcode::kMul && opcode != Opcode::kDiv) return value;
      ValueId next = ValueId::kAbsent;
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        const ValueId factor = expressions.operand(node, 1 - side);
        if (factor != ValueId::kAbsent && is_one_float(expressions.analysis(), factor) &&
            (opcode == Opcode::kMul || side == 0))
          next = expressions.operand(node, side);
      }
      if (next == ValueId::kAbsent) return value;
      value = next;
    }
    return value;
  }

  static ValueId before_bias(const Expressions& expressions, ValueId value) {
    const NodeId node = expressions.producer(value);
    if (expressions.op(node) != Opcode::kAdd) return value;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
      if (const ValueId bias = expressions.operand(node, side);
          bias != ValueId::kAbsent && is_constant(expressions, bias))
        return before_stretch(expressions, expressions.operand(node, 1 - side));
    return value;
  }
};

const RegisterRule<OneSideNormalised> kRegisterOneSideNormalised;

}  // namespace
}  // namespace tensorlint::rules
