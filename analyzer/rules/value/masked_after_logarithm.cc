#include <fmt/format.h>

#include <algorithm>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class MaskedAfterLogarithm : public Rule {
 public:
  MaskedAfterLogarithm()
      : Rule({"TL-V546", "masked-after-logarithm", "value", findings::Severity::kWarning,
              "a mask of the positive numbers, multiplied with the logarithm or the inverse of all of them"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (!has_node(out, {Opcode::kCompare, Opcode::kEqual}) || !has_node(out, {Opcode::kLog, Opcode::kDiv})) return;
    each_node(view, out, {Opcode::kMul}, [&](const Expressions& expressions, const NodeCall& call) {
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
        if (check_product(expressions, call, call.operand(side).value(), call.operand(1 - side).value(), out)) return;
    });
  }

 private:
  static bool check_product(const Expressions& expressions, const NodeCall& call, ValueId mask, ValueId value,
                            Reporter& out) {
    if (mask == ValueId::kAbsent || value == ValueId::kAbsent) return false;
    const ValueId data = kept_by(expressions, before_stretch(expressions, mask));
    if (data == ValueId::kAbsent) return false;
    const NodeId edge = edge_of(expressions, value, data);
    if (edge == NodeId::kNone) return false;
    const dataflow::Analysis& analysis = call.analysis();
    // Of what is never 0 nothing is hidden.
    const Range& range = analysis.fact(data).range;
    if (range.lo > 0 && !range.nan) return false;
    const bool is_log = expressions.op(edge) == Opcode::kLog;
    out.report(call.id(),
               fmt::format("where {} is 0, {} is infinite, and an infinite number times the 0 of the mask is "
                           "NaN",
                           Operand(analysis, data).name(), is_log ? "its logarithm" : "the quotient"))
        .certainty(ops::Certainty::kMay, fmt::format("{} has 0 among its elements", Operand(analysis, data).name()))
        .note_at(edge, is_log ? "the logarithm is taken here, of all elements" : "all elements divide here")
        .fix("choose before: where(x > 0, x, 1), and then the logarithm or the quotient");
    return true;
  }

  /// x for x > 0 and x != 0.
  static ValueId kept_by(const Expressions& expressions, ValueId mask) {
    NodeId node = expressions.producer(mask);
    const bool is_inverted = expressions.op(node) == Opcode::kNot;
    if (is_inverted) node = expressions.producer(expressions.operand(node, 0));
    const auto compared = with_number(expressions, node);
    if (!compared || compared->number != 0) return ValueId::kAbsent;
    const bool is_kept =
        is_inverted ? expressions.op(node) == Opcode::kEqual : expressions.op(node) == Opcode::kCompare;
    return is_kept ? before_stretch(expressions, compared->value) : ValueId::kAbsent;
  }

  /// log(x), or a quotient by x, before some elementwise steps that keep infinite numbers.
  static NodeId edge_of(const Expressions& expressions, ValueId value, ValueId data) {
    constexpr int kMaxSteps = 5;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      value = before_stretch(expressions, value);
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
      if (first == ValueId::kAbsent) return NodeId::kNone;
      if (opcode == Opcode::kLog) return before_stretch(expressions, first) == data ? node : NodeId::kNone;
      // 0 / 0 is NaN, too.
      if (opcode == Opcode::kDiv && second != ValueId::kAbsent && before_stretch(expressions, second) == data)
        return node;
      const auto numbered = with_number(expressions, node);
      if (opcode == Opcode::kNeg || opcode == Opcode::kAbs) {
        value = first;
      } else if (opcode == Opcode::kSub || opcode == Opcode::kAdd) {
        const ValueId log = second == ValueId::kAbsent ? second : before_stretch(expressions, second);
        value = expressions.op_of(log) == Opcode::kLog ? log : first;
      } else if (numbered && numbered->number != 0 && !numbered->is_first &&
                 (opcode == Opcode::kMul || opcode == Opcode::kDiv || opcode == Opcode::kPow)) {
        value = numbered->value;
      } else {
        return NodeId::kNone;
      }
    }
    return NodeId::kNone;
  }
};

const RegisterRule<MaskedAfterLogarithm> kRegisterMaskedAfterLogarithm;

}  // namespace
}  // namespace tensorlint::rules
