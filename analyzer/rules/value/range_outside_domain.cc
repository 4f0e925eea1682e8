#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/formula.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using losses::Formula;
using ops::Opcode;

/// Scores as layers make them.
constexpr std::array kScores{-8.0, -4.0, -2.0, -1.0, -0.5, -0.25, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0};
/// Less than that is rounding.
constexpr double kClearly = 1e-4;

class RangeOutsideDomain : public Rule {
 public:
  RangeOutsideDomain()
      : Rule({"TL-V526", "range-outside-domain", "value", findings::Severity::kWarning,
              "a logarithm, root, power or quotient of what a bounded function makes outside of its domain"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    // Of logarithms and quotients in training steps, invalid-domain tells more.
    const bool is_step = !has_no_loss_output(view.analysis());
    static constexpr std::initializer_list<Opcode> kWanted{Opcode::kLog, Opcode::kLog1p, Opcode::kSqrt, Opcode::kPow,
                                                           Opcode::kDiv};
    each_node(view, out, kWanted, [&](const Expressions& expressions, const NodeCall& call) {
      if (!is_step || call.is(Opcode::kSqrt) || call.is(Opcode::kPow)) check_domain(expressions, call, out);
      if (call.is(Opcode::kSqrt)) check_variance(expressions, call, out);
    });
    // What an operator is defined on is the same for each of its nodes.
    enum class Kind : std::uint8_t { kUnknown, kArc, kElse };
    IdVector<OperatorId, Kind> kinds(view.model().operators.size(), Kind::kUnknown);
    each_node(view, out, {Opcode::kOther}, [&](const Expressions& expressions, const NodeCall& call) {
      Kind& kind = kinds[call.node().op];
      if (kind == Kind::kUnknown) kind = is_of_unit_interval(expressions, call.id()) ? Kind::kArc : Kind::kElse;
      if (kind == Kind::kArc) check_arc(expressions, call, out);
    });
  }

 private:
  /// The angle between two vectors as they are given: their product is a cosine where both have the length 1 alone.
  static void check_arc(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const ValueId product = before_stretch(expressions, call.operand(0).value());
    const NodeId sum = expressions.producer(product);
    NodeId node = sum;
    if (expressions.op(sum) == Opcode::kReduceSum) {
      node = expressions.producer(before_stretch(expressions, expressions.operand(sum, 0)));
      if (expressions.op(node) != Opcode::kMul) return;
    } else if (expressions.op(sum) != Opcode::kMatMul) {
      return;
    }
    const dataflow::Analysis& analysis = expressions.analysis();
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId factor = expressions.operand(node, side);
      if (factor == ValueId::kAbsent || !is_input(analysis, before_stretch(expressions, factor))) return;
    }
    if (analysis.taint(product).has(Aspect::kValue) || analysis.fact(product).range.hi <= 1) return;
    out.report(call.id(),
               fmt::format("{} of {}, a product of vectors that nothing has divided by their lengths: beyond "
                           "-1 and 1 it is NaN",
                           call.op_name(), Operand(analysis, product).name()))
        .note_at(sum, "the product is computed here")
        .fix(
            "divide both vectors by their lengths, and clip the product to [-1, 1]: rounding alone may lead beyond it");
  }

  enum class Result { kDefined, kInfinite, kNan };

  /// What the node makes of one number. `exponent`: of Pow.
  static Result result_at(Opcode opcode, double x, double exponent) {
    switch (opcode) {
      case Opcode::kLog:
        return x < -kClearly ? Result::kNan : x == 0 ? Result::kInfinite : Result::kDefined;
      case Opcode::kLog1p:
        return x < -1 - kClearly ? Result::kNan : x == -1 ? Result::kInfinite : Result::kDefined;
      case Opcode::kDiv:
        return x == 0 ? Result::kInfinite : Result::kDefined;
      case Opcode::kPow:
        if (x < -kClearly && exponent != std::floor(exponent)) return Result::kNan;
        return x == 0 && exponent < 0 ? Result::kInfinite : Result::kDefined;
      default:
        return x < -kClearly ? Result::kNan : Result::kDefined;
    }
  }

  static bool is_unbounded(const Range& range) { return range.lo == -HUGE_VAL && range.hi == HUGE_VAL; }

  /// A function that is there to bound scores of both signs. Exponentials, magnitudes and squares are bounded too, but
  /// who inverts them knows more of the data: log(exp(x) - 1), sqrt(x * x - 1).
  static bool is_activation(const Expressions& expressions, const Formula::Part& part) {
    if (part.kind != Formula::PartKind::kElement || part.value == ValueId::kAbsent || part.node == NodeId::kNone)
      return false;
    const Opcode opcode = expressions.op(part.node);
    if (opcode == Opcode::kExp || opcode == Opcode::kAbs || opcode == Opcode::kCosh) return false;
    const dataflow::Analysis& analysis = expressions.analysis();
    const ValueId before = expressions.operand(part.node, 0);
    return before != ValueId::kAbsent && is_unbounded(analysis.fact(before).range) &&
           !is_unbounded(analysis.fact(part.value).range);
  }

  /// The leaf that alone decides the operand, if an activation bounds it; nothing else is followed.
  static std::optional<std::size_t> bounded_leaf(const Expressions& expressions, const Formula& formula) {
    std::optional<std::size_t> leaf;
    bool is_bounded = false;
    for (std::size_t at = 0; at < formula.parts().size(); ++at) {
      const Formula::Part& part = formula.parts()[at];
      is_bounded = is_bounded || is_activation(expressions, part);
      if (part.kind != Formula::PartKind::kLeaf) continue;
      if (leaf || part.value == ValueId::kAbsent || !is_unbounded(expressions.analysis().fact(part.value).range))
        return std::nullopt;
      leaf = at;
    }
    return is_bounded ? leaf : std::nullopt;
  }

  static void check_domain(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const Operand operand = call.operand(call.is(Opcode::kDiv) ? 1 : 0);
    if (!operand.present() || operand.taint().has(Aspect::kValue) || !operand.fact().dtypes.proves(DTypeSet::floats()))
      return;
    // Cheap, and true of nearly all: no bound is known, or the domain is kept.
    const Range& range = operand.fact().range;
    if (range.lo > 0 || is_unbounded(range)) return;
    double exponent = 0;
    if (call.is(Opcode::kPow)) {
      const auto given = expressions.number(call.operand(1).value());
      if (!given) return;
      exponent = *given;
      if (exponent >= 0 && exponent == std::floor(exponent)) return;  // defined everywhere
    }
    if (is_kept_finite(expressions, call.result())) return;
    const Formula formula(expressions, operand.value());
    const auto leaf = formula.is_complete() ? bounded_leaf(expressions, formula) : std::nullopt;
    if (!leaf || is_operand_as_written(out, expressions, call.id(), operand.value(),
                                       before_stretch(expressions, operand.value())) == AsWritten::kNo)
      return;
    std::array<double, kScores.size()> reached{};
    for (std::size_t i = 0; i < kScores.size(); ++i) {
      const Formula::Assignment assigned[] = {{*leaf, kScores[i]}};
      reached[i] = formula.evaluate(assigned, 0);
      if (std::isnan(reached[i])) return;
    }
    // What falls and rises again is inside of its domain for the data that it is written for.
    if (!std::ranges::is_sorted(reached) && !std::ranges::is_sorted(reached, std::greater<>())) return;
    // A single sample may hit the edge by chance.
    std::array<int, 3> counts{};
    for (const double x : reached)
      ++counts[static_cast<std::size_t>(result_at(expressions.op(call.id()), x, exponent))];
    const auto of = [&](Result result) { return counts[static_cast<std::size_t>(result)]; };
    if (of(Result::kDefined) == 0 || of(Result::kDefined) > static_cast<int>(kScores.size()) - 2) return;
    const Result worst = of(Result::kNan) > 0 ? Result::kNan : Result::kInfinite;
    // The score nearest to 0 is the easiest to believe.
    std::size_t witness = kScores.size();
    for (std::size_t i = 0; i < kScores.size(); ++i)
      if (result_at(expressions.op(call.id()), reached[i], exponent) == worst &&
          (witness == kScores.size() || std::abs(kScores[i]) < std::abs(kScores[witness])))
        witness = i;
    const dataflow::Analysis& analysis = expressions.analysis();
    const Formula::Part& score = formula.parts()[*leaf];
    out.report(call.id(),
               fmt::format("{} of {}, which is {:.3g} for some scores: the result is {}", call.op_name(),
                           operand.name(), reached[witness] + 0.0, worst == Result::kNan ? "NaN" : "infinite"))
        .certainty(ops::Certainty::kMay, fmt::format("{} has {:.3g} among its elements",
                                                     Operand(analysis, score.value).name(), kScores[witness]))
        .note_at(expressions.producer(operand.value()), fmt::format("{} is computed here", operand.name()))
        .fix(worst == Result::kNan
                 ? "bound the operand to where the function is defined, or take another activation"
                 : "keep the operand above 0, as with Softplus for Relu, or a Clip or summand of 1e-6");
  }

  /// sqrt(mean(x * x) - mean(x) * mean(x)): rounding makes the difference negative where the variance is small.
  static void check_variance(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const Operand operand = call.operand(0);
    if (!operand.present() || operand.taint().has(Aspect::kValue) || is_kept_finite(expressions, call.result())) return;
    const ValueId difference = before_stretch(expressions, operand.value());
    const NodeId subtracts = expressions.producer(difference);
    if (expressions.op(subtracts) != Opcode::kSub) return;
    const ValueId squares = mean_of(expressions, expressions.operand(subtracts, 0));
    const ValueId mean = squared(expressions, expressions.operand(subtracts, 1));
    if (squares == ValueId::kAbsent || mean == ValueId::kAbsent) return;
    const ValueId data = squared(expressions, squares);
    if (data == ValueId::kAbsent || mean_of(expressions, mean) != data ||
        is_operand_as_written(out, expressions, call.id(), operand.value(), difference) == AsWritten::kNo)
      return;
    out.report(call.id(), fmt::format("{} of {}, which rounding makes negative where all elements are nearly the same: "
                                      "the result is NaN",
                                      call.op_name(), operand.name()))
        .certainty(ops::Certainty::kMay,
                   fmt::format("the elements of {} are nearly the same", Operand(expressions.analysis(), data).name()))
        .note_at(subtracts, "the mean of squares, less the square of the mean")
        .fix(
            "average the squares of what is left of the elements after subtracting their mean, or bound the variance "
            "from below");
  }

  static ValueId mean_of(const Expressions& expressions, ValueId value) {
    const NodeId node = expressions.producer(before_stretch(expressions, value));
    return expressions.op(node) == Opcode::kReduceMean ? expressions.operand(node, 0) : ValueId::kAbsent;
  }
  static ValueId squared(const Expressions& expressions, ValueId value) {
    return value == ValueId::kAbsent ? value : expressions.square_base(before_stretch(expressions, value));
  }
};

const RegisterRule<RangeOutsideDomain> kRegisterRangeOutsideDomain;

}  // namespace
}  // namespace tensorlint::rules
