#include <fmt/format.h>

#include <vector>

#include "analyzer/rules/reported_nodes.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class UnsignedDifferenceWraps : public Rule {
 public:
  UnsignedDifferenceWraps()
      : Rule({"TL-V509", "unsigned-difference-wraps", "value", findings::Severity::kWarning,
              "a difference of unsigned integers, which is large where it should be negative"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kSub},
              [&](const Expressions& expressions, const NodeCall& call) { check_difference(expressions, call, out); });
  }

 private:
  static void check_difference(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const auto dtype = call.analysis().fact(call.result()).dtypes.single();
    if (out.shared<ReportedNodes>().has("TL-D102", call.id())) return;
    if (!dtype || !DTypeSet::integers().contains(*dtype) || range_of(DTypeSet(*dtype)).lo < 0) return;
    const Operand from = call.operand(0), taken = call.operand(1);
    // What is computed from one another may well be the smaller one: a remainder, a mask, a minimum.
    if (!is_data(expressions, from) || !is_data(expressions, taken) || from.value() == taken.value()) return;
    if (from.fact().range.lo >= taken.fact().range.hi || from.fact().range.hi <= 1 || taken.fact().range.hi <= 1)
      return;
    const NodeId use = signed_use(expressions, call.result());
    if (use == NodeId::kNone) return;
    out.report(call.id(),
               fmt::format("the difference of {} and {} is {}, which has no negative numbers: 3 - 5 is {}", from.name(),
                           taken.name(), to_text(*dtype), bound_text(range_of(DTypeSet(*dtype)).hi - 1)))
        .certainty(ops::Certainty::kMay,
                   fmt::format("an element of {} is less than the one of {}", from.name(), taken.name()))
        .note_at(use, "used as a number here")
        .fix("cast both to a floating-point or wider signed dtype before the subtraction");
  }

  /// An input, or a part of one.
  static bool is_data(const Expressions& expressions, const Operand& operand) {
    if (!operand.present() || operand.taint().has(Aspect::kValue)) return false;
    return is_input(expressions.analysis(), before_moves(expressions, operand.value()));
  }

  /// Where the difference becomes a number of which the sign matters, or its size; kNone where a Where chooses among
  /// differences, or it is only looked at in its own dtype.
  static NodeId signed_use(const Expressions& expressions, ValueId difference) {
    const dataflow::Analysis& analysis = expressions.analysis();
    constexpr std::size_t kMaxValues = 8;
    std::vector<ValueId> values{difference};
    NodeId found = NodeId::kNone;
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const NodeId user : expressions.users(values[i])) {
        const Opcode opcode = expressions.op(user);
        const ValueId result = expressions.result(user);
        if (opcode == Opcode::kWhere || opcode == Opcode::kMin || opcode == Opcode::kMax) return NodeId::kNone;
        if (opcode == Opcode::kCast && analysis.fact(result).dtypes.proves(DTypeSet::floats())) found = user;
        const bool squares = opcode == Opcode::kMul && expressions.operand(user, 0) == expressions.operand(user, 1);
        if (opcode == Opcode::kAbs || opcode == Opcode::kPow || squares) found = user;
        if (ops::moves_elements(opcode) && values.size() < kMaxValues) values.push_back(result);
      }
    return found;
  }
};

const RegisterRule<UnsignedDifferenceWraps> kRegisterUnsignedDifferenceWraps;

}  // namespace
}  // namespace tensorlint::rules
