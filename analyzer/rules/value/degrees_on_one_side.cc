#include <fmt/format.h>

#include <algorithm>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class DegreesOnOneSide : public Rule {
 public:
  DegreesOnOneSide()
      : Rule({"TL-V574", "degrees-on-one-side", "value", findings::Severity::kWarning,
              "the edges of a graph, scaled by the roots of the degrees of the rows twice, and of the columns never"}) {
  }

  void check_model(const ModelView& view, Reporter& out) const override {
    if (!has_node(out, {Opcode::kReduceSum})) return;
    each_node(view, out, {Opcode::kMul, Opcode::kDiv}, [&](const Expressions& expressions, const NodeCall& call) {
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        if (call.is(Opcode::kDiv) && side == 0) continue;
        if (check_factor(expressions, call, call.operand(side).value(), call.operand(1 - side).value(), out)) return;
      }
    });
  }

 private:
  static constexpr int kMaxSteps = 10;

  static bool check_factor(const Expressions& expressions, const NodeCall& call, ValueId outer, ValueId scaled,
                           Reporter& out) {
    const NodeId first = expressions.producer(scaled);
    const Opcode opcode = expressions.op(first);
    if (outer == ValueId::kAbsent || opcode != opcode_of(call.entry()) || !is_of_rows_or_columns(expressions, outer))
      return false;
    const ValueId roots = before_stretch(expressions, outer);
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      if (opcode == Opcode::kDiv && side == 0) continue;
      const ValueId inner = expressions.operand(first, side);
      if (inner == ValueId::kAbsent || before_stretch(expressions, inner) != roots ||
          !is_same_shape(expressions, inner, outer))
        continue;
      const NodeId sum = degrees_of(expressions, roots, opcode == Opcode::kMul);
      const ValueId edges = before_stretch(expressions, expressions.operand(sum, 0));
      ValueId data = before_stretch(expressions, expressions.operand(first, 1 - side));
      // The messages of the neighbours.
      if (expressions.op_of(data) == Opcode::kMatMul)
        data = before_stretch(expressions, expressions.operand(expressions.producer(data), 0));
      if (edges == ValueId::kAbsent || edges != data || !is_square(expressions, expressions.operand(sum, 0))) continue;
      out.report(call.id(), fmt::format("{} is scaled by the roots of the degrees along one axis twice, and along the "
                                        "other one never",
                                        Operand(call.analysis(), edges).name()))
          .note_at(first, "scaled along the same axis here first")
          .note_at(sum, "the degrees are counted here")
          .fix("scale rows and columns: d[:, None] * A * d[None, :]");
      return true;
    }
    return false;
  }

  /// The sum whose root, or the inverse of its root, the value is, before what keeps it finite; kNone for anything
  /// else.
  static NodeId degrees_of(const Expressions& expressions, ValueId value, bool inverse) {
    bool root = false, inverted = false;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      value = before_stretch(expressions, value);
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const auto numbered = with_number(expressions, node);
      if (opcode == Opcode::kReduceSum) return root && inverted == inverse ? node : NodeId::kNone;
      if (opcode == Opcode::kWhere) {
        // 0 for nodes without neighbours.
        const ValueId chosen = expressions.operand(node, 1);
        value = expressions.number(chosen) ? expressions.operand(node, 2) : chosen;
      } else if (opcode == Opcode::kClip) {
        value = expressions.operand(node, 0);
      } else if (numbered && (opcode == Opcode::kMax || opcode == Opcode::kAdd)) {
        value = numbered->value;
      } else if (opcode == Opcode::kSqrt && !root) {
        root = true;
        value = expressions.operand(node, 0);
      } else if (opcode == Opcode::kPow && numbered && !numbered->is_first && !root &&
                 (numbered->number == 0.5 || numbered->number == -0.5)) {
        root = true;
        inverted = inverted != (numbered->number < 0);
        value = numbered->value;
      } else if (opcode == Opcode::kDiv && numbered && numbered->is_first && numbered->number == 1) {
        inverted = !inverted;
        value = numbered->value;
      } else if (is_reciprocal(expressions, node)) {
        inverted = !inverted;
        value = expressions.operand(node, 0);
      } else {
        return NodeId::kNone;
      }
    }
    return NodeId::kNone;
  }

  /// One number for each row, or for each column.
  static bool is_of_rows_or_columns(const Expressions& expressions, ValueId value) {
    const auto dims = expressions.dims(value);
    const DimPool& pool = expressions.analysis().facts().dims();
    return dims.size() >= 2 && pool.is_constant(dims.back(), 1) != pool.is_constant(dims[dims.size() - 2], 1);
  }

  static bool is_square(const Expressions& expressions, ValueId value) {
    const auto dims = expressions.dims(value);
    const DimPool& pool = expressions.analysis().facts().dims();
    return dims.size() >= 2 && pool.equal(dims.back(), dims[dims.size() - 2]) && !pool.is_constant(dims.back(), 1);
  }

  static bool is_same_shape(const Expressions& expressions, ValueId one, ValueId other) {
    const auto a = expressions.dims(one), b = expressions.dims(other);
    const DimPool& pool = expressions.analysis().facts().dims();
    return std::ranges::equal(a, b, [&](Dim x, Dim y) { return pool.equal(x, y); });
  }
};

const RegisterRule<DegreesOnOneSide> kRegisterDegreesOnOneSide;

}  // namespace
}  // namespace tensorlint::rules
