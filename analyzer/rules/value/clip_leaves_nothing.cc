#include <fmt/format.h>

#include <cmath>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class ClipLeavesNothing : public Rule {
 public:
  ClipLeavesNothing()
      : Rule({"TL-V511", "clip-leaves-nothing", "value", findings::Severity::kWarning,
              "a bound on the wrong side, which makes one number of nearly all"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
      if (call.is(Opcode::kClip) || call.is(Opcode::kMin) || call.is(Opcode::kMax)) check_bound(expressions, call, out);
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

const RegisterRule<ClipLeavesNothing> kRegister;

}  // namespace
}  // namespace tensorlint::rules
