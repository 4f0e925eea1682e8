#include <fmt/format.h>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class SquareOfSumSubtracted : public Rule {
 public:
  SquareOfSumSubtracted()
      : Rule({"TL-V557", "square-of-sum-subtracted", "value", findings::Severity::kWarning,
              "products of all pairs as half of the sum of squares less the square of the sum, which is their "
              "negative"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (!has_node(out, {Opcode::kReduceSum})) return;
    each_node(view, out, {Opcode::kSub}, [&](const Expressions& expressions, const NodeCall& call) {
      const ValueId squares = call.operand(0).value(), square = call.operand(1).value();
      if (squares == ValueId::kAbsent || square == ValueId::kAbsent) return;
      const ValueId of = summed_squares(expressions, squares), root = expressions.square_base(square);
      const NodeId sum = root == ValueId::kAbsent ? NodeId::kNone
                                                  : expressions.producer(before_stretch(expressions, root)),
                   other = expressions.producer(before_stretch(expressions, squares));
      if (of == ValueId::kAbsent || expressions.op(sum) != Opcode::kReduceSum ||
          before_stretch(expressions, expressions.operand(sum, 0)) != before_stretch(expressions, of))
        return;
      const auto axes = expressions.axes_of(sum);
      if (!axes || axes != expressions.axes_of(other) || !is_halved(expressions, call.result())) return;
      out.report(call.id(), fmt::format("the products of all pairs of {} come out with a minus: half of the sum of "
                                        "squares less the square of the sum",
                                        Operand(call.analysis(), of).name()))
          .note_at(sum, "the sum that is squared")
          .fix("exchange both sides: ((sum x)^2 - sum x^2) / 2");
    });
  }

 private:
  static bool is_halved(const Expressions& expressions, ValueId value) {
    for (int step = 0; step < 4; ++step) {
      const auto users = expressions.users(value);
      if (users.size() != 1) return false;
      const Opcode opcode = expressions.op(users[0]);
      if (opcode == Opcode::kMul || opcode == Opcode::kDiv) {
        const auto scaled = with_number(expressions, users[0]);
        return scaled && (opcode == Opcode::kMul ? scaled->number == 0.5 : !scaled->is_first && scaled->number == 2);
      }
      if (opcode != Opcode::kReduceSum && opcode != Opcode::kReduceMean && !ops::keeps_elements(opcode)) return false;
      value = expressions.result(users[0]);
    }
    return false;
  }
};

const RegisterRule<SquareOfSumSubtracted> kRegisterSquareOfSumSubtracted;

}  // namespace
}  // namespace tensorlint::rules
