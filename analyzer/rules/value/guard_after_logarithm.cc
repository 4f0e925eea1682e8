#include <fmt/format.h>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class GuardAfterLogarithm : public Rule {
 public:
  GuardAfterLogarithm()
      : Rule({"TL-V554", "guard-after-logarithm", "value", findings::Severity::kWarning,
              "a small number that is added to a logarithm, not to what it is taken of"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kLog}, [&](const Expressions& expressions, const NodeCall& call) {
      constexpr double kSmall = 1e-4;
      const ValueId inside = call.operand(0).value();
      // Where 0 cannot come up, the summand does nothing at all.
      if (inside == ValueId::kAbsent || call.analysis().fact(inside).range.lo > 0 ||
          before_guard(expressions, inside) != before_stretch(expressions, inside))
        return;
      for (const NodeId user : expressions.users(call.result())) {
        const auto added = with_number(expressions, user);
        if (expressions.op(user) != Opcode::kAdd || !added || added->number <= 0 || added->number > kSmall) continue;
        out.report(user,
                   fmt::format("{:.3g} is added to the logarithm of {}, which is -inf where that is 0 all the same",
                               added->number, Operand(call.analysis(), inside).name()))
            .note_at(call.id(), "the logarithm is taken here")
            .fix("add it before: log(x + eps)");
        return;
      }
    });
  }
};

const RegisterRule<GuardAfterLogarithm> kRegisterGuardAfterLogarithm;

}  // namespace
}  // namespace tensorlint::rules
