#include <fmt/format.h>

#include <string>

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

class VectorsNotNormalised : public Rule {
 public:
  VectorsNotNormalised()
      : Rule({"TL-L411", "vectors-not-normalised", "loss", findings::Severity::kWarning,
              "scores of pairs of samples, of which one side or both were not divided by their lengths"},
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
    double temperature = 1;
    const NodeId product = expressions.producer(before_factor(expressions, scores, temperature));
    const Opcode opcode = expressions.op(product);
    const dataflow::Analysis& analysis = expressions.analysis();
    if ((opcode != Opcode::kMatMul && opcode != Opcode::kEinsum) || analysis.operands(product).size() != 2)
      return false;
    ValueId sides[2];
    bool divided[2];
    NodeId layers[2];
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      sides[side] = before_factor(expressions, expressions.operand(product, side), temperature);
      if (sides[side] == ValueId::kAbsent) return false;
      divided[side] = is_of_unit_length(expressions, sides[side]);
      layers[side] = expressions.producer(before_bias(expressions, sides[side]));
      // What a layer gives, with nothing behind it that keeps its length.
      if (!divided[side] &&
          (expressions.op(layers[side]) != Opcode::kMatMul || !out.shared<losses::Parameters>().reach(sides[side])))
        return false;
    }
    // As they are, products say how near two vectors are without a temperature, too.
    constexpr double kSharp = 0.21;
    if ((divided[0] && divided[1]) || (!divided[0] && !divided[1] && !(temperature < kSharp))) return false;
    const std::size_t free = divided[0] ? 1 : 0;
    const Operand other(analysis, sides[free]), first(analysis, sides[1 - free]);
    const std::string mistake =
        divided[1 - free]
            ? fmt::format("{} was divided by its length, and {} was not: a score rises with the length of one side",
                          first.name(), other.name())
            : fmt::format("{} and {} are compared at a temperature of {:.4g}, and were not divided by their lengths",
                          other.name(), first.name(), temperature);
    out.report(product, mistake)
        .note_at(layers[free], "what this layer gives may be of any length")
        .note_at(divided[1 - free] ? expressions.producer(sides[1 - free]) : layers[1 - free],
                 divided[1 - free] ? "the other side is divided here" : "what this one gives, too")
        .fix("divide both: F.normalize(x, dim=-1)");
    return true;
  }

  /// Before products with numbers, which make a temperature, and with one number that the model learns.
  static ValueId before_factor(const Expressions& expressions, ValueId value, double& temperature) {
    constexpr int kMaxSteps = 6;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      value = before_stretch(expressions, value);
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (opcode != Opcode::kMul && opcode != Opcode::kDiv) return value;
      if (const auto scaled = with_number(expressions, node);
          scaled && scaled->number > 0 && (opcode == Opcode::kMul || !scaled->is_first)) {
        temperature *= opcode == Opcode::kMul ? 1 / scaled->number : scaled->number;
        value = scaled->value;
        continue;
      }
      ValueId next = ValueId::kAbsent;
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        const ValueId factor = expressions.operand(node, 1 - side);
        if (factor != ValueId::kAbsent && is_one_float(expressions.analysis(), factor) &&
            is_learned(expressions, factor) && (opcode == Opcode::kMul || side == 0))
          next = expressions.operand(node, side);
      }
      if (next == ValueId::kAbsent) return value;
      value = next;
    }
    return value;
  }

  /// A parameter, or its exponential, perhaps bounded.
  static bool is_learned(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 4;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      value = before_stretch(expressions, value);
      if (is_constant(expressions, value)) return true;
      const Opcode opcode = expressions.op_of(value);
      if (opcode != Opcode::kExp && opcode != Opcode::kClip && opcode != Opcode::kMin && opcode != Opcode::kMax &&
          opcode != Opcode::kSoftplus)
        return false;
      value = expressions.operand(expressions.producer(value), 0);
    }
    return false;
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

const RegisterRule<VectorsNotNormalised> kRegisterVectorsNotNormalised;

}  // namespace
}  // namespace tensorlint::rules
