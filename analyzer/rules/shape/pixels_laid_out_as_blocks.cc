#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "base/checked.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class PixelsLaidOutAsBlocks : public Rule {
 public:
  PixelsLaidOutAsBlocks()
      : Rule({"TL-S216", "pixels-laid-out-as-blocks", "shape", findings::Severity::kWarning,
              "parts of channels that are merged in front of the rows and columns of a picture, and make blocks of "
              "it"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (!has_node(out, {Opcode::kConv})) return;
    each_node(view, out, {Opcode::kTranspose},
              [&](const Expressions& expressions, const NodeCall& call) { check_order(expressions, call, out); });
  }

 private:
  static void check_order(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const Attribute* order = call.attribute("perm");
    const NodeId split = expressions.producer(call.operand(0).value());
    if (order == nullptr || order->ints.size() != 6 || expressions.op(split) != Opcode::kReshape) return;
    const auto picture = expressions.dims(expressions.operand(split, 0)),
               parts = expressions.dims(call.operand(0).value());
    if (picture.size() != 4 || parts.size() != 6 ||
        expressions.op_of(before_activation(expressions, expressions.operand(split, 0))) != Opcode::kConv)
      return;
    const DimPool& pool = call.facts().dims();
    // [N, C * r * r, H, W] to [N, C, r, r, H, W] or [N, r, r, C, H, W].
    if (!pool.equal(parts[0], picture[0]) || !pool.equal(parts[4], picture[2]) || !pool.equal(parts[5], picture[3]))
      return;
    const auto users = expressions.users(call.result());
    if (users.size() != 1 || expressions.op(users[0]) != Opcode::kReshape) return;
    const auto merged = expressions.dims(expressions.result(users[0]));
    if (merged.size() != 4) return;
    const auto at = [&](std::size_t i) { return order->ints[i]; };
    const auto extent = [&](std::int64_t axis) { return pool.as_constant(parts[static_cast<std::size_t>(axis)]); };
    for (const std::size_t i :
         {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}, std::size_t{5}})
      if (at(i) < 0 || at(i) > 5) return;
    // Rows of a part of the channels in front of the rows of the picture, and columns as well.
    const bool blocks = at(0) == 0 && at(2) >= 1 && at(2) <= 3 && at(3) == 4 && at(4) >= 1 && at(4) <= 3 && at(5) == 5;
    const auto rows = extent(at(2)), columns = extent(at(4));
    const auto height = extent(4), width = extent(5);
    if (!blocks || !rows || !columns || *rows < 2 || *rows != *columns || !height || !width ||
        !pool.is_constant(merged[2], checked::mul(*rows, *height).value_or(-1)) ||
        !pool.is_constant(merged[3], checked::mul(*columns, *width).value_or(-1)))
      return;
    out.report(call.id(), fmt::format("the {0} x {0} parts of each place become {0} x {0} pictures side by side: they "
                                      "are merged in front of rows and columns, not after them",
                                      *rows))
        .note_at(split, "the channels are separated here")
        .note_at(users[0], "the axes are merged here")
        .fix("put the parts after rows and columns: permute(0, 1, 4, 2, 5, 3) of [N, C, r, r, H, W]");
  }

  static ValueId before_activation(const Expressions& expressions, ValueId value) {
    for (int step = 0; step < 4 && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      if (expressions.op(node) == Opcode::kConv || !has_trait(expressions.entry(node), ops::OpTrait::kElementwise))
        break;
      value = expressions.operand(node, 0);
    }
    return value;
  }
};

const RegisterRule<PixelsLaidOutAsBlocks> kRegisterPixelsLaidOutAsBlocks;

}  // namespace
}  // namespace tensorlint::rules
