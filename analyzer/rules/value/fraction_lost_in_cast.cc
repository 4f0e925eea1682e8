#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/dataflow/element_function.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class FractionLostInCast : public Rule {
 public:
  FractionLostInCast()
      : Rule({"TL-V508", "fraction-lost-in-cast", "value", findings::Severity::kWarning,
              "values in [0, 1] cast to integers or bool, so that nearly all become equal"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
      const Operand operand = call.operand(0);
      if (!operand.present() || operand.taint().has(Aspect::kValue) || operand.fact().kind != ValueKind::kTensor)
        return;
      if (call.is(Opcode::kCast)) check_cast(expressions, call, out);
      if (call.is(Opcode::kRound)) check_floor(expressions, call, out);
    });
    each_node(view, out, {Opcode::kDiv}, [&](const Expressions& expressions, const NodeCall& call) {
      const Operand operand = call.operand(0);
      if (operand.present() && !operand.taint().has(Aspect::kValue) && operand.fact().kind == ValueKind::kTensor)
        check_quotient(expressions, call, out);
    });
  }

 private:
  static constexpr int kMaxSteps = 12;
  /// Rounding leaves a quotient of 255 by 255 a little above 1 in what is known of its range.
  static constexpr double kRounding = 1e-4;
  static constexpr double kLargestByte = 255;

  /// What makes numbers between 0 and 1.
  struct Fractions {
    NodeId maker = NodeId::kNone;
    bool of_bytes = false;    ///< 0 and 1 are among them, as the ends of the bytes
    bool never_zero = false;  ///< but for rounding
  };

  static bool is_share(const Range& range) { return !(range.lo < -kRounding) && range.hi <= 1 + kRounding; }

  static bool is_bytes(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return false;
    const ValueId source = before_moves(expressions, value);
    return expressions.analysis().fact(source).dtypes == DTypeSet(DType::kUint8) &&
           expressions.analysis().fact(source).range.hi >= kLargestByte;
  }

  static std::optional<Fractions> fractions_in(const Expressions& expressions, ValueId value) {
    const dataflow::Analysis& analysis = expressions.analysis();
    bool never_zero = true;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const Fact& fact = analysis.fact(value);
      if (fact.kind != ValueKind::kTensor || !fact.dtypes.proves(DTypeSet::floats()) || !is_share(fact.range))
        return std::nullopt;
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (node == NodeId::kNone) return std::nullopt;
      if (opcode == Opcode::kSigmoid || is_noise(analysis, node)) return Fractions{node, false, never_zero};
      if (const auto softmax = expressions.normalised(value)) {
        if (softmax->logarithm || !is_over_several(expressions, *softmax)) return std::nullopt;
        return Fractions{node, false, never_zero && !has_minus_infinity(expressions, softmax->scores)};
      }
      if (ops::picks_elements(opcode) || opcode == Opcode::kTopK || opcode == Opcode::kReduceMax ||
          opcode == Opcode::kReduceMin || opcode == Opcode::kCast) {
        if (opcode == Opcode::kDropout) never_zero = false;
        value = expressions.operand(node, 0);
      } else if (const ValueId rest = expressions.complement(value); rest != ValueId::kAbsent) {
        never_zero = false;
        value = rest;
      } else if (opcode == Opcode::kDiv) {
        if (expressions.is_number(expressions.operand(node, 1), kLargestByte) &&
            is_bytes(expressions, expressions.operand(node, 0)))
          return Fractions{node, true, false};
        return std::nullopt;
      } else if (opcode == Opcode::kMul) {
        const auto scaled = with_number(expressions, node);
        if (!scaled) return std::nullopt;
        if (std::abs(scaled->number * kLargestByte - 1) < 1e-3 && is_bytes(expressions, scaled->value))
          return Fractions{node, true, false};
        if (!(scaled->number > 0 && scaled->number <= 1)) return std::nullopt;
        value = scaled->value;
      } else {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  /// Drawn evenly between two bounds.
  static bool is_noise(const dataflow::Analysis& analysis, NodeId node) {
    const OpSchema* schema = NodeCall(analysis, node).op().schema;
    return schema != nullptr && schema->attribute("seed") != nullptr && schema->attribute("high") != nullptr;
  }

  /// Of one score the softmax is 1.
  static bool is_over_several(const Expressions& expressions, const losses::Normalised& softmax) {
    if (softmax.axes.size() != 1) return false;
    const auto dims = expressions.dims(softmax.scores);
    return softmax.axes[0] < dims.size() &&
           !expressions.analysis().facts().dims().is_constant(dims[softmax.axes[0]], 1);
  }

  static void check_cast(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const Operand operand = call.operand(0);
    const DTypeSet target = call.analysis().fact(call.result()).dtypes;
    const bool to_bool = target == DTypeSet(DType::kBool);
    if (!operand.fact().dtypes.proves(DTypeSet::floats()) || (!to_bool && !target.proves(DTypeSet::integers()))) return;
    const auto found = fractions_in(expressions, operand.value());
    if (!found) {
      if (!to_bool) check_below_one(expressions, call, out);
      return;
    }
    if (to_bool) {
      if (!found->never_zero) return;
      out.report(call.id(),
                 fmt::format("{} becomes true wherever it is not 0, which is nearly everywhere", operand.name()))
          .note_at(found->maker, "numbers between 0 and 1 are made here")
          .fix("compare with a threshold, such as 0.5, or use the probabilities as they are");
      return;
    }
    if (found->of_bytes && !wants_levels(expressions, call.result())) return;
    say(call, operand, target.single().value_or(DType::kInt64), *found, out);
  }

  /// What was multiplied so that nothing reaches 1, as smoothed labels.
  static void check_below_one(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const Operand operand = call.operand(0);
    const Range& range = operand.fact().range;
    const NodeId product = expressions.producer(before_stretch(expressions, operand.value()));
    if (range.lo < 0 || range.hi <= 0 || range.hi >= 1 - kRounding || range.nan ||
        (expressions.op(product) != Opcode::kMul && expressions.op(product) != Opcode::kAdd))
      return;
    out.report(call.id(), fmt::format("the cast of {} is always 0: it is in {}", operand.name(), range.to_text()))
        .note_at(product, "the fractions are computed here")
        .fix("keep the floating-point numbers");
  }

  static void say(const NodeCall& call, const Operand& operand, DType to, const Fractions& found, Reporter& out) {
    out.report(call.id(), fmt::format("the cast to {} makes 0 of every element of {} but 1: it is between 0 and 1",
                                      to_text(to), operand.name()))
        .note_at(found.maker,
                 found.of_bytes ? "bytes are divided by 255 here" : "numbers between 0 and 1 are made here")
        .fix(found.of_bytes ? "take the levels from the bytes, or scale the numbers before the cast"
                            : "round or compare with a threshold, or keep the floating-point numbers");
  }

  static void check_floor(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const ops::ElementValue element = dataflow::element_function(call.analysis(), call.id(), 1);
    if (element == nullptr || element({std::array{0.75}, {}}) != 0) return;
    const auto found = fractions_in(expressions, call.operand(0).value());
    if (!found || (found->of_bytes && !wants_levels(expressions, call.result()))) return;
    out.report(call.id(), fmt::format("{} makes 0 of every element of {} but 1: it is between 0 and 1", call.op_name(),
                                      call.operand(0).name()))
        .note_at(found->maker,
                 found->of_bytes ? "bytes are divided by 255 here" : "numbers between 0 and 1 are made here")
        .fix("round or compare with a threshold, or keep the floating-point numbers");
  }

  /// Bytes divided by 255 without a fraction. Of a mask of 0 and 255 that is the mask; a network looks at pictures.
  static void check_quotient(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    if (!call.operand(0).fact().dtypes.proves(DTypeSet::integers()) ||
        !expressions.is_number(call.operand(1).value(), kLargestByte) ||
        !is_bytes(expressions, call.operand(0).value()) || !wants_levels(expressions, call.result()))
      return;
    out.report(call.id(), fmt::format("integer division makes 0 of every element of {} but 255: it holds bytes",
                                      call.operand(0).name()))
        .fix("divide floating-point numbers, with /");
  }

  /// Numbers between 0 and 1, as pictures are on the average: 0.485, 0.456, 0.406.
  static bool is_mean_of_shares(const dataflow::Analysis& analysis, const Operand& operand) {
    if (!operand.present() || operand.taint().has(Aspect::kValue) || operand.fact().kind != ValueKind::kTensor ||
        analysis.model().value(operand.value()).initializer == nullptr)
      return false;
    const Range& range = operand.fact().range;
    return range.lo > 0 && range.hi < 1 && !range.nan;
  }

  /// What comes of bytes is used for more than two levels: it chooses among more rows or classes, has the mean of
  /// pictures subtracted, or alone is what a layer looks at.
  static bool wants_levels(const Expressions& expressions, ValueId levels) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const auto is_more_than_two = [&](ValueId data, std::size_t axis) {
      const auto dims = expressions.dims(data);
      const auto extent = axis < dims.size() ? analysis.facts().dims().as_constant(dims[axis]) : std::nullopt;
      return extent && *extent > 2;
    };
    bool found = false;
    for (int step = 0; step < kMaxSteps && levels != ValueId::kAbsent; ++step) {
      ValueId next = ValueId::kAbsent;
      for (const NodeId user : expressions.users(levels)) {
        const NodeCall use(analysis, user);
        const Opcode opcode = expressions.op(user);
        const bool is_first = use.operand(0).value() == levels, is_second = use.operand(1).value() == levels;
        if (opcode == Opcode::kGather && is_second) {
          const Attribute* axis = use.attribute("axis");
          found = found || ((axis == nullptr || axis->i == 0) && is_more_than_two(use.operand(0).value(), 0));
        } else if (use.entry() != nullptr && use.entry()->loss() && takes_class_indices(*use.entry()->loss())) {
          found = found || (is_second && is_more_than_two(use.operand(0).value(), 1));
        } else if (opcode == Opcode::kConv || opcode == Opcode::kMatMul) {
          found = found || is_first;
        } else if (opcode == Opcode::kSub && is_first && is_mean_of_shares(analysis, use.operand(1))) {
          found = true;
        } else if (is_first && (ops::repeats_elements(opcode) || opcode == Opcode::kCast)) {
          next = use.result();
        } else {
          return false;
        }
      }
      levels = next;
    }
    return found;
  }
};

const RegisterRule<FractionLostInCast> kRegisterFractionLostInCast;

}  // namespace
}  // namespace tensorlint::rules
