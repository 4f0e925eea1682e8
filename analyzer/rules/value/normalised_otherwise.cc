#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/dataflow/element_function.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class NormalisedOtherwise : public Rule {
 public:
  NormalisedOtherwise()
      : Rule({"TL-V544", "normalised-otherwise", "value", findings::Severity::kWarning,
              "a normalisation that is written out, with the variance for the deviation, the square of the mean for "
              "the mean of the squares, or two different axes"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (!has_node(out, {Opcode::kReduceMean})) return;
    each_node(view, out, {Opcode::kDiv, Opcode::kMul}, [&](const Expressions& expressions, const NodeCall& call) {
      if (call.is(Opcode::kDiv))
        check_quotient(expressions, call, call.operand(0).value(), Divisor{call.operand(1).value()}, out);
      if (call.is(Opcode::kMul))
        for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
          if (const auto inverse = inverted(expressions, call.operand(side).value()))
            check_quotient(expressions, call, call.operand(1 - side).value(), *inverse, out);
    });
  }

 private:
  struct Divisor {
    ValueId value = ValueId::kAbsent;
    bool is_root = false;  ///< the square root of the value
  };

  static bool may_invert(Opcode opcode) {
    return opcode == Opcode::kDiv || opcode == Opcode::kPow || opcode == Opcode::kMul || opcode == Opcode::kOther;
  }

  /// 1 / x, 1 / sqrt(x) and x ** -0.5, in every spelling.
  static std::optional<Divisor> inverted(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return std::nullopt;
    NodeId node = expressions.producer(value);
    if (node == NodeId::kNone) return std::nullopt;
    node = expressions.producer(before_stretch(expressions, value));
    if (!may_invert(expressions.op(node))) return std::nullopt;
    // 1 * (1 / x), as an exporter writes 1 / x.
    if (expressions.op(node) == Opcode::kMul) {
      const auto same = with_number(expressions, node);
      if (!same || same->number != 1) return std::nullopt;
      node = expressions.producer(before_stretch(expressions, same->value));
    }
    const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
    if (first == ValueId::kAbsent) return std::nullopt;
    const Opcode opcode = expressions.op(node);
    if (opcode == Opcode::kDiv && expressions.is_number(first, 1)) return Divisor{second};
    if (opcode == Opcode::kPow && expressions.is_number(second, -0.5)) return Divisor{first, true};
    if (opcode != Opcode::kOther || second != ValueId::kAbsent) return std::nullopt;
    const ops::ElementValue element = dataflow::element_function(expressions.analysis(), node, 1);
    if (element == nullptr) return std::nullopt;
    const auto at = [&](double number) { return element({std::array{number}, {}}); };
    if (at(4) == 0.25 && at(16) == 0.0625) return Divisor{first};
    return at(4) == 0.5 && at(16) == 0.25 ? std::optional(Divisor{first, true}) : std::nullopt;
  }

  static void check_quotient(const Expressions& expressions, const NodeCall& call, ValueId numerator, Divisor divisor,
                             Reporter& out) {
    if (numerator == ValueId::kAbsent || divisor.value == ValueId::kAbsent) return;
    const dataflow::Analysis& analysis = call.analysis();
    bool is_scaled = false;
    const ValueId inner = before_guards(expressions, divisor, is_scaled);
    if (inner == ValueId::kAbsent) return;
    const ValueId data = before_stretch(expressions, numerator);
    // sqrt(mean(x) ** 2)
    if (const ValueId mean = expressions.square_base(inner);
        mean != ValueId::kAbsent && divisor.is_root && !is_scaled) {
      const NodeId averages = expressions.producer(before_stretch(expressions, mean));
      if (expressions.op(averages) != Opcode::kReduceMean ||
          before_stretch(expressions, expressions.operand(averages, 0)) != data)
        return;
      out.report(call.id(), fmt::format("{} is divided by the root of the square of its mean, which is about 0 where "
                                        "numbers have both signs",
                                        Operand(analysis, data).name()))
          .note_at(averages, "the mean is taken before the square here")
          .fix("square first: the mean of the squares");
      return;
    }
    const NodeId variance = expressions.producer(inner);
    if (expressions.op(variance) != Opcode::kReduceMean) return;
    const ValueId centred = expressions.square_base(before_stretch(expressions, expressions.operand(variance, 0)));
    if (centred == ValueId::kAbsent) return;
    const NodeId mean = mean_taken_from(expressions, centred), own_mean = mean_taken_from(expressions, data);
    if (mean == NodeId::kNone || own_mean == NodeId::kNone ||
        before_stretch(expressions, expressions.operand(mean, 0)) !=
            before_stretch(expressions, expressions.operand(own_mean, 0)))
      return;
    const auto along = expressions.axes_of(own_mean), of_variance = expressions.axes_of(variance);
    if (!along || !of_variance) return;
    // A variance that is centred along its own axes is one, whatever the numerator is centred along.
    const auto of_centre = mean == own_mean ? along : expressions.axes_of(mean);
    const bool keeps_rank = expressions.dims(expressions.operand(own_mean, 0)).size() ==
                            expressions.dims(expressions.operand(variance, 0)).size();
    if (keeps_rank && *along != *of_variance && of_centre && *of_centre == *along) {
      out.report(call.id(), fmt::format("{} is centred along axes {} and divided by a deviation along axes {}",
                                        Operand(analysis, data).name(), text(*along), text(*of_variance)))
          .note_at(own_mean, "the mean is taken here")
          .note_at(variance, "the variance is taken here")
          .fix("take both along the same axes");
    } else if (!divisor.is_root) {
      out.report(call.id(), fmt::format("{} is divided by its variance, not by the root of it: results shrink as the "
                                        "numbers grow",
                                        Operand(analysis, data).name()))
          .note_at(variance, "the variance is taken here")
          .fix("divide by sqrt(variance + eps)");
    }
  }

  static std::string text(const std::vector<std::size_t>& axes) { return fmt::format("[{}]", fmt::join(axes, ", ")); }

  /// Before a root, a small summand, a bound and the factor n / (n - 1).
  static ValueId before_guards(const Expressions& expressions, Divisor& divisor, bool& is_scaled) {
    constexpr int kMaxSteps = 10;
    ValueId value = divisor.value;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      value = before_stretch(expressions, value);
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const bool is_half = opcode == Opcode::kPow && expressions.is_number(expressions.operand(node, 1), 0.5);
      if (opcode == Opcode::kSqrt || is_half) {
        // The fourth root is nobody's deviation.
        if (divisor.is_root) return ValueId::kAbsent;
        divisor.is_root = true;
        value = expressions.operand(node, 0);
        continue;
      }
      if (opcode == Opcode::kClip) {
        value = expressions.operand(node, 0);
        continue;
      }
      const auto numbered = with_number(expressions, node);
      if (!numbered) return value;
      if ((opcode == Opcode::kMax || opcode == Opcode::kAdd) && std::abs(numbered->number) < 0.1) {
        value = numbered->value;
      } else if (!numbered->is_first && numbered->number >= 1 && (opcode == Opcode::kMul || opcode == Opcode::kDiv)) {
        is_scaled = true;
        value = numbered->value;
      } else {
        return value;
      }
    }
    return ValueId::kAbsent;
  }

  /// The mean m for x - m, m of x.
  static NodeId mean_taken_from(const Expressions& expressions, ValueId centred) {
    const NodeId difference = expressions.producer(before_stretch(expressions, centred));
    const ValueId subtracted = expressions.operand(difference, 1);
    if (expressions.op(difference) != Opcode::kSub || subtracted == ValueId::kAbsent) return NodeId::kNone;
    const NodeId mean = expressions.producer(before_stretch(expressions, subtracted));
    const ValueId from = expressions.operand(mean, 0);
    return expressions.op(mean) == Opcode::kReduceMean && from != ValueId::kAbsent &&
                   before_stretch(expressions, from) == before_stretch(expressions, expressions.operand(difference, 0))
               ? mean
               : NodeId::kNone;
  }
};

const RegisterRule<NormalisedOtherwise> kRegisterNormalisedOtherwise;

}  // namespace
}  // namespace tensorlint::rules
