#include <fmt/format.h>

#include <cmath>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/dataflow/element_function.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class ClipLeavesNothing : public Rule {
 public:
  ClipLeavesNothing()
      : Rule({"TL-V511", "clip-leaves-nothing", "value", findings::Severity::kWarning,
              "a bound on the wrong side, which makes nearly all values equal"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
      if (call.is(Opcode::kClip) || call.is(Opcode::kMin) || call.is(Opcode::kMax)) check_bound(expressions, call, out);
      check_hinge(expressions, call, out);
    });
  }

 private:
  /// More than programs keep probabilities off 0 and 1 by, at most.
  static constexpr double kGuard = 1e-3;

  static void check_bound(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    Operand operand = call.operand(0);
    if (!call.is(Opcode::kClip)) {
      const auto numbered = with_number(expressions, call.id());
      if (!numbered) return;
      operand = Operand(analysis, numbered->value);
    }
    if (!operand.present() || operand.taint().has(Aspect::kValue) || operand.fact().kind != ValueKind::kTensor ||
        !operand.fact().dtypes.proves(DTypeSet::floats()))
      return;
    const Range &before = operand.fact().range, &after = analysis.fact(call.result()).range;
    if (before.lo < 0) check_ceiling(expressions, call, operand, out);
    if (before.lo < 0 || !(after.hi - after.lo <= kGuard) || after.lo > after.hi) return;
    const bool shares = before.hi <= 1 + kGuard && before.hi - before.lo > 1 - kGuard;
    const bool counted = std::isinf(before.hi) && after.hi > 0 && is_logarithm_or_divisor(expressions, call.result());
    if (!shares && !counted) return;
    // A product of masks is 0 or 1.
    if (shares && !comes_from_probabilities(expressions, operand.value())) return;
    const bool is_ceiling = after.hi <= kGuard;
    out.report(call.id(),
               fmt::format("{} of {} makes {:.4g} of nearly every element: the bound is {} one", call.op_name(),
                           operand.name(), is_ceiling ? after.hi : after.lo, is_ceiling ? "an upper" : "a lower"))
        .fix(is_ceiling ? "make the bound a lower one (min), which keeps the numbers off 0"
                        : "make the bound an upper one (max), which keeps the numbers off 1");
  }

  /// A tiny number as the upper bound alone, under a logarithm: of what that is defined for, hardly anything is less. A
  /// lower bound beside it, or before it, says that a range is meant.
  static void check_ceiling(const Expressions& expressions, const NodeCall& call, const Operand& operand,
                            Reporter& out) {
    const bool has_lower = call.is(Opcode::kMax) || (call.is(Opcode::kClip) && call.operand(1).present());
    const Range &before = operand.fact().range, &after = call.analysis().fact(call.result()).range;
    constexpr double kFar = 100;
    if (has_lower || !(after.hi > 0 && after.hi <= kGuard) || !(before.hi > kFar * after.hi) ||
        expressions.producer(operand.value()) == NodeId::kNone)
      return;
    NodeId logarithm = NodeId::kNone;
    for (const NodeId user : expressions.users(call.result()))
      if (expressions.op(user) == Opcode::kLog) logarithm = user;
    if (logarithm == NodeId::kNone) return;
    out.report(call.id(),
               fmt::format("{} makes {:.4g} of every element of {} that is larger: the bound is an upper one",
                           call.op_name(), after.hi, operand.name()))
        .note_at(logarithm, "the logarithm is taken here")
        .fix("make the bound a lower one (min), which keeps the numbers off 0");
  }

  /// A hinge that cosines and probabilities never come to, such as relu(cosine - 1.5).
  static void check_hinge(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    if (!is_hinge(expressions, call)) return;
    ValueId value = call.operand(0).value();
    if (call.is(Opcode::kMax)) value = with_number(expressions, call.id())->value;
    if (value == ValueId::kAbsent || call.analysis().taint(value).has(Aspect::kValue)) return;
    bool bounded = false;
    const Interval reached = reached_by(expressions, value, bounded, 0);
    if (!bounded || !(reached.hi <= 0) || reached.lo == reached.hi) return;
    out.report(call.id(), fmt::format("{} of {} is always 0: it is at most {:.4g}", call.op_name(),
                                      Operand(call.analysis(), value).name(), reached.hi))
        .fix("use a margin within the range of what is compared");
  }

  /// What keeps nothing below 0, and everything above.
  static bool is_hinge(const Expressions& expressions, const NodeCall& call) {
    if (call.is(Opcode::kMax)) {
      const auto numbered = with_number(expressions, call.id());
      return call.node().operand_count == 2 && numbered && numbered->number == 0;
    }
    if (call.is(Opcode::kClip)) {
      const Range& after = call.analysis().fact(call.result()).range;
      return expressions.operand(call.id(), 1) != ValueId::kAbsent &&
             expressions.is_number(expressions.operand(call.id(), 1), 0) && after.lo <= 0;
    }
    if (!has_trait(call.entry(), ops::OpTrait::kElementwise)) return false;
    const ops::ElementValue element = dataflow::element_function(call.analysis(), call.id(), 1);
    if (element == nullptr) return false;
    const auto attributes = call.attributes().read();
    const auto at = [&](double x) {
      const double operands[] = {x};
      return element({operands, attributes});
    };
    return at(-2) == 0 && at(-1e-3) == 0 && at(1e-3) == 1e-3 && at(2) == 2;
  }

  struct Interval {
    double lo, hi;
  };

  /// `bounded`: a cosine or a probability is in it.
  static Interval reached_by(const Expressions& expressions, ValueId value, bool& bounded, int depth) {
    constexpr int kMaxDepth = 8;
    constexpr std::uint64_t kStepsOfValue = 16;
    const dataflow::Analysis& analysis = expressions.analysis();
    expressions.charge(kStepsOfValue);
    if (const auto number = expressions.number(value)) return {*number, *number};
    const Range& range = analysis.fact(value).range;
    const Interval known = range.lo <= range.hi ? Interval{range.lo, range.hi} : Interval{-HUGE_VAL, HUGE_VAL};
    const NodeId node = expressions.producer(value);
    const Opcode opcode = expressions.op(node);
    if (depth > kMaxDepth || node == NodeId::kNone) return known;
    const ValueId a = expressions.operand(node, 0), b = expressions.operand(node, 1);
    const auto of = [&](ValueId operand) { return reached_by(expressions, operand, bounded, depth + 1); };
    if (opcode == Opcode::kNeg) {
      const Interval x = of(a);
      return {-x.hi, -x.lo};
    }
    if (ops::moves_elements(opcode) || opcode == Opcode::kCast) return of(a);
    if (opcode == Opcode::kAdd || opcode == Opcode::kSub) {
      const Interval x = of(a), y = of(b);
      return opcode == Opcode::kAdd ? Interval{x.lo + y.lo, x.hi + y.hi} : Interval{x.lo - y.hi, x.hi - y.lo};
    }
    const auto factor = with_number(expressions, node);
    if (factor && (opcode == Opcode::kMul || (opcode == Opcode::kDiv && !factor->is_first && factor->number != 0))) {
      const Interval x = of(factor->value);
      const double scale = opcode == Opcode::kMul ? factor->number : 1 / factor->number;
      return scale < 0 ? Interval{x.hi * scale, x.lo * scale} : Interval{x.lo * scale, x.hi * scale};
    }
    const auto cosine = cosine_of(expressions, value);
    if (cosine && cosine->both_divided && cosine->node == node) {
      bounded = true;
      return {-1, 1};
    }
    bounded |= opcode == Opcode::kSigmoid || opcode == Opcode::kSoftmax || is_bounded_function(expressions, node);
    return known;
  }

  /// A function of one score, such as a hyperbolic tangent.
  static bool is_bounded_function(const Expressions& expressions, NodeId node) {
    const Range& range = expressions.analysis().fact(expressions.result(node)).range;
    return expressions.op(node) == Opcode::kOther && expressions.analysis().model().node(node).operand_count == 1 &&
           has_trait(expressions.entry(node), ops::OpTrait::kElementwise) && std::isfinite(range.lo) &&
           std::isfinite(range.hi);
  }

  static bool comes_from_probabilities(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 4;
    for (int step = 0; step < kMaxSteps; ++step) {
      value = before_moves(expressions, value);
      const auto softmax = expressions.normalised(value);
      if ((softmax && !softmax->logarithm) || expressions.op_of(value) == Opcode::kSigmoid) return true;
      const ValueId rest = expressions.complement(value);
      if (rest == ValueId::kAbsent) return false;
      value = rest;
    }
    return false;
  }

  static bool is_logarithm_or_divisor(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 4;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      ValueId next = ValueId::kAbsent;
      for (const NodeId user : expressions.users(value)) {
        const Opcode opcode = expressions.op(user);
        if (opcode == Opcode::kLog || (opcode == Opcode::kDiv && expressions.operand(user, 1) == value)) return true;
        if (ops::repeats_elements(opcode)) next = expressions.result(user);
      }
      value = next;
    }
    return false;
  }
};

const RegisterRule<ClipLeavesNothing> kRegisterClipLeavesNothing;

}  // namespace
}  // namespace tensorlint::rules
