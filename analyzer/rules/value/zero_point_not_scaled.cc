#include <fmt/format.h>

#include <optional>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class ZeroPointNotScaled : public Rule {
 public:
  ZeroPointNotScaled()
      : Rule({"TL-V552", "zero-point-not-scaled", "value", findings::Severity::kWarning,
              "a quantized number whose zero point is subtracted after the scale"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (!has_node(out, {Opcode::kRound})) return;
    each_node(view, out, {Opcode::kSub}, [&](const Expressions& expressions, const NodeCall& call) {
      const NodeId product = expressions.producer(call.operand(0).value());
      const ValueId subtracted = call.operand(1).value();
      if (expressions.op(product) != Opcode::kMul || subtracted == ValueId::kAbsent) return;
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        const ValueId zero_point = zero_point_of(expressions, expressions.operand(product, side));
        if (zero_point == ValueId::kAbsent || !is_same(expressions, zero_point, subtracted)) continue;
        out.report(call.id(), fmt::format("{} is subtracted after the scale, and was added before it: every number is "
                                          "off by it, less the part that is scaled",
                                          Operand(call.analysis(), subtracted).name()))
            .note_at(product, "multiplied with the scale here")
            .fix("subtract first: (q - zero_point) * scale");
        return;
      }
    });
  }

 private:
  /// z of round(x / scale) + z, perhaps bounded.
  static ValueId zero_point_of(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return value;
    NodeId node = expressions.producer(before_stretch(expressions, value));
    for (int step = 0; step < 3; ++step) {
      const Opcode opcode = expressions.op(node);
      if (opcode != Opcode::kClip && opcode != Opcode::kMin && opcode != Opcode::kMax) break;
      const auto bounded = opcode == Opcode::kClip ? std::nullopt : with_number(expressions, node);
      const ValueId inner = opcode == Opcode::kClip ? expressions.operand(node, 0)
                            : bounded               ? bounded->value
                                                    : ValueId::kAbsent;
      if (inner == ValueId::kAbsent) return inner;
      node = expressions.producer(before_stretch(expressions, inner));
    }
    if (expressions.op(node) != Opcode::kAdd) return ValueId::kAbsent;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
      if (const ValueId rounded = expressions.operand(node, side);
          rounded != ValueId::kAbsent && expressions.op_of(before_stretch(expressions, rounded)) == Opcode::kRound)
        return expressions.operand(node, 1 - side);
    return ValueId::kAbsent;
  }

  static bool is_same(const Expressions& expressions, ValueId a, ValueId b) {
    const auto x = expressions.number(a), y = expressions.number(b);
    if (x || y) return x == y && x != 0;
    return before_stretch(expressions, a) == before_stretch(expressions, b);
  }
};

const RegisterRule<ZeroPointNotScaled> kRegisterZeroPointNotScaled;

}  // namespace
}  // namespace tensorlint::rules
