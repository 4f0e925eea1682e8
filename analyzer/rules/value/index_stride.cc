#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "base/checked.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class IndexStride : public Rule {
 public:
  IndexStride()
      : Rule({"TL-V514", "index-stride", "value", findings::Severity::kWarning,
              "a place in a flattened table that counts rows by something else than their length"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
      if (call.is(Opcode::kGather) || call.is(Opcode::kGatherElements)) check_lookup(expressions, call, out);
    });
  }

 private:
  static constexpr int kMaxSteps = 8;

  static void check_lookup(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const Operand data = call.operand(0), index = call.operand(1);
    if (!data.present() || !index.present() || data.taint().has(Aspect::kShape)) return;
    const auto stride = stride_of(expressions, index.value());
    const auto dims = expressions.dims(data.value());
    const Attribute* given = call.attribute("axis");
    const auto rank = static_cast<std::int64_t>(dims.size());
    std::int64_t axis = given == nullptr ? 0 : given->i;
    if (axis < 0) axis += rank;
    if (!stride || axis < 0 || axis >= rank) return;
    const auto extent = analysis.facts().dims().as_constant(dims[static_cast<std::size_t>(axis)]);
    const auto merged = extent ? merged_axes(expressions, data.value(), *extent) : std::nullopt;
    if (!merged || merged->rows == merged->columns || stride->number != static_cast<double>(merged->rows)) return;
    out.report(stride->node, fmt::format("places in {} count {} to a row, but its rows have {} elements", data.name(),
                                         merged->rows, merged->columns))
        .note_at(merged->node, fmt::format("{} rows of {} are flattened here", merged->rows, merged->columns))
        .note_at(call.id(), "the places are looked up here")
        .fix(fmt::format("multiply the row by {}, the length of a row", merged->columns));
  }

  struct Stride {
    NodeId node;
    double number;
  };

  /// The constant factor of one of two summands.
  static std::optional<Stride> stride_of(const Expressions& expressions, ValueId index) {
    const NodeId sum = expressions.producer(before_places(expressions, index));
    if (expressions.op(sum) != Opcode::kAdd || with_number(expressions, sum)) return std::nullopt;
    std::optional<Stride> found;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const NodeId product = expressions.producer(before_places(expressions, expressions.operand(sum, side)));
      if (expressions.op(product) != Opcode::kMul) continue;
      const auto scaled = with_number(expressions, product);
      if (!scaled || found) return std::nullopt;
      found = Stride{product, scaled->number};
    }
    return found;
  }

  /// Before a value was stretched or tiled.
  static ValueId before_places(const Expressions& expressions, ValueId value) {
    for (int step = 0; step < kMaxSteps; ++step) {
      value = before_stretch(expressions, value);
      if (expressions.op_of(value) != Opcode::kTile) break;
      value = expressions.operand(expressions.producer(value), 0);
    }
    return value;
  }

  struct Merged {
    NodeId node;
    std::int64_t rows, columns;
  };

  /// Two neighbouring axes of which a Reshape made the one that is looked up in.
  static std::optional<Merged> merged_axes(const Expressions& expressions, ValueId data, std::int64_t extent) {
    const dataflow::Analysis& analysis = expressions.analysis();
    for (int step = 0; step < kMaxSteps && data != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(data);
      const Opcode opcode = expressions.op(node);
      if (opcode != Opcode::kReshape && opcode != Opcode::kTranspose && opcode != Opcode::kIdentity &&
          opcode != Opcode::kCast)
        return std::nullopt;
      const ValueId before = expressions.operand(node, 0);
      if (opcode == Opcode::kReshape) {
        const auto dims = expressions.dims(before), after = expressions.dims(data);
        if (dims.size() != after.size() + 1) return std::nullopt;
        std::size_t at = 0;
        while (at < after.size() && analysis.facts().dims().equal(dims[at], after[at])) ++at;
        if (at >= after.size()) return std::nullopt;
        const auto rows = analysis.facts().dims().as_constant(dims[at]);
        const auto columns = analysis.facts().dims().as_constant(dims[at + 1]);
        if (!rows || !columns || *rows < 2 || *columns < 2 || checked::mul(*rows, *columns) != extent)
          return std::nullopt;
        return Merged{node, *rows, *columns};
      }
      data = before;
    }
    return std::nullopt;
  }
};

const RegisterRule<IndexStride> kRegisterIndexStride;

}  // namespace
}  // namespace tensorlint::rules
