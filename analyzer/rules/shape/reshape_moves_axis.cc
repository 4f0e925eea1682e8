#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "base/checked.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::rules {
namespace {

using ops::Opcode;

class ReshapeMovesAxis : public Rule {
 public:
  ReshapeMovesAxis()
      : Rule({"TL-S211", "reshape-moves-axis", "shape", findings::Severity::kWarning,
              "a Reshape that puts an axis where only a transposition could"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    std::set<NodeId> known;  // told by what a loss makes of it
    for (const losses::AxisMistake& mistake : axis_mistakes(out)) known.insert(mistake.node);
    each_node(view, out, {Opcode::kReshape}, [&](const losses::Expressions& expressions, const NodeCall& call) {
      if (!known.contains(call.id())) check_reshape(expressions, call, out);
    });
  }

 private:
  static void check_reshape(const losses::Expressions& expressions, const NodeCall& call, Reporter& out) {
    const Operand data = call.operand(0);
    if (!data.present() || data.taint().has(Aspect::kShape)) return;
    FactStore& facts = call.facts();
    const ShapeId from = data.fact().shape, to = call.analysis().fact(call.result()).shape;
    if (!facts.is_ranked(from) || !facts.is_ranked(to) || is_shifted(call)) return;
    const auto before = facts.dims_of(from), after = facts.dims_of(to);
    if (before.size() < 3 || after.size() < 3) return;
    if (const auto axis = moved_name(facts.dims(), before, after)) return report(call, *axis, out);
    if (is_of_layer(expressions, data.value()))
      if (const auto axis = split_before(facts.dims(), before, after)) return report(call, *axis, out);
    if (const auto axis = joined_before(facts.dims(), before, after); axis && is_of_heads(expressions, data.value()))
      return report(call, *axis, out);
    if (const auto axis = exchanged(facts.dims(), before, after)) return report(call, *axis, out);
    check_patches(expressions, call, before, after, out);
  }

  /// A picture [N, C, H, W] that becomes [N, patches, C * p * p] for a layer: rows of pixels, and no patches.
  static void check_patches(const losses::Expressions& expressions, const NodeCall& call, std::span<const Dim> before,
                            std::span<const Dim> after, Reporter& out) {
    if (before.size() != 4 || after.size() != 3 || !call.facts().dims().equal(before[0], after[0])) return;
    const auto extent = [&](Dim dim) { return call.facts().dims().as_constant(dim).value_or(0); };
    const std::int64_t patches = extent(after[1]), features = extent(after[2]);
    for (const auto& [channels, height, width] :
         {std::array{extent(before[1]), extent(before[2]), extent(before[3])},
          std::array{extent(before[3]), extent(before[1]), extent(before[2])}}) {
      if ((channels != 1 && channels != 3) || height < 4 || width < 4 || patches < 4) continue;
      constexpr std::int64_t kMaxSide = 4096;
      const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(features / channels)));
      if (side < 2 || side > kMaxSide || side > height) continue;
      // Whole rows of the picture may be meant.
      if (channels * side * side != features || height % side != 0 || width % side != 0 ||
          checked::mul(height / side, width / side) != patches || (channels == 1 && features % width == 0) ||
          !is_picture(expressions, call.operand(0).value()) || !is_read_by_layer(expressions, call.result()))
        continue;
      out.report(call.id(),
                 fmt::format("{} of {} takes pixels in the order in which they lie: each of {} parts of {} is "
                             "made of rows, and is not a patch of {} x {}",
                             call.op_name(), call.operand(0).name(), patches, features, side, side))
          .origin(call.operand(0), Aspect::kShape)
          .fix("split rows and columns and move them before they are joined: reshape, permute, reshape");
      return;
    }
  }

  /// An input, perhaps scaled and shifted.
  static bool is_picture(const losses::Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 8;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      if (is_input(expressions.analysis(), value)) return true;
      const NodeId node = expressions.producer(value);
      if (expressions.op(node) != Opcode::kCast && !has_trait(expressions.entry(node), ops::OpTrait::kElementwise))
        return false;
      value = expressions.operand(node, 0);
    }
    return false;
  }

  struct Moved {
    std::size_t from, to;
  };

  static void report(const NodeCall& call, Moved axis, Reporter& out) {
    const Operand data = call.operand(0);
    out.report(call.id(),
               fmt::format("{} of {} takes axis {} for axis {}: {} becomes {}, and the numbers stay in their order",
                           call.op_name(), data.name(), axis.from, axis.to, call.facts().shape_text(data.fact().shape),
                           call.facts().shape_text(call.analysis().fact(call.result()).shape)))
        .origin(data, Aspect::kShape)
        .fix("split and join neighbouring axes alone, and move an axis with Transpose");
  }

  /// An axis of a name of its own that is whole on both sides, with another number of rows before it.
  static std::optional<Moved> moved_name(DimPool& pool, std::span<const Dim> before, std::span<const Dim> after) {
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (!pool.is_symbol(before[i]) || std::ranges::count(before, before[i]) != 1) continue;
      const auto found = std::ranges::find(after, before[i]);
      if (found == after.end() || std::ranges::count(after, before[i]) != 1) continue;
      const auto to = static_cast<std::size_t>(found - after.begin());
      if (std::ranges::equal(before.first(i), after.first(to))) continue;
      const Dim rows_before = ops::element_count(pool, before.first(i));
      const Dim rows_after = ops::element_count(pool, after.first(to));
      if (pool.differ(rows_before, rows_after)) return Moved{i, to};
    }
    return std::nullopt;
  }

  /// The same extents in another order, [1, H, W, C] and [1, C, H, W].
  static std::optional<Moved> exchanged(const DimPool& pool, std::span<const Dim> before, std::span<const Dim> after) {
    if (before.size() != after.size() || before.size() < 4) return std::nullopt;
    std::vector<std::int64_t> x, y;
    for (const Dim dim : before)
      if (const auto extent = pool.as_constant(dim)) x.push_back(*extent);
    for (const Dim dim : after)
      if (const auto extent = pool.as_constant(dim)) y.push_back(*extent);
    // Past axes of one element, or with one, nothing moves.
    const auto without_ones = [](std::vector<std::int64_t> extents) {
      std::erase(extents, 1);
      return extents;
    };
    if (x.size() < 3 || x.size() != y.size() || without_ones(x) == without_ones(y)) return std::nullopt;
    // The last axis becomes the first of the others, or the other way round.
    std::vector<std::int64_t> forward = x, backward = x;
    std::rotate(forward.end() - 3, forward.end() - 1, forward.end());
    std::rotate(backward.end() - 3, backward.end() - 2, backward.end());
    const std::size_t rank = before.size();
    if (y == forward) return Moved{rank - 1, rank - 3};
    if (y == backward) return Moved{rank - 3, rank - 1};
    return std::nullopt;
  }

  /// Features that a product with weights makes, before an addend: not extents that are joined to be split again.
  static bool is_of_layer(const losses::Expressions& expressions, ValueId value) {
    if (expressions.op_of(value) == Opcode::kAdd) {
      const NodeId sum = expressions.producer(value);
      const ValueId first = expressions.operand(sum, 0);
      value = expressions.op_of(first) == Opcode::kMatMul ? first : expressions.operand(sum, 1);
    }
    return expressions.op_of(value) == Opcode::kMatMul;
  }

  /// [N, T, H * D] to [N, H, T, D]: heads before steps.
  static std::optional<Moved> split_before(const DimPool& pool, std::span<const Dim> before,
                                           std::span<const Dim> after) {
    if (before.size() + 1 != after.size()) return std::nullopt;
    const std::size_t last = before.size() - 1;
    for (std::size_t i = 0; i + 1 < last; ++i)
      if (!pool.equal(before[i], after[i])) return std::nullopt;
    const auto steps = pool.as_constant(before[last - 1]), features = pool.as_constant(before[last]);
    const auto heads = pool.as_constant(after[last - 1]), whole = pool.as_constant(after[last]),
               part = pool.as_constant(after[last + 1]);
    if (!steps || !features || !heads || !whole || !part || *whole != *steps || *heads == *steps || *heads < 2 ||
        *steps < 2 || *part < 2 || *heads * *part != *features)
      return std::nullopt;
    return Moved{last - 1, last};
  }

  /// [N, H, T, D] to [N, T, H * D]: steps before heads.
  static std::optional<Moved> joined_before(const DimPool& pool, std::span<const Dim> before,
                                            std::span<const Dim> after) {
    if (before.size() != after.size() + 1) return std::nullopt;
    const std::size_t at = after.size() - 2;
    for (std::size_t i = 0; i < at; ++i)
      if (!pool.equal(before[i], after[i])) return std::nullopt;
    const auto heads = pool.as_constant(before[at]), steps = pool.as_constant(before[at + 1]),
               part = pool.as_constant(before[at + 2]);
    const auto whole = pool.as_constant(after[at]), features = pool.as_constant(after[at + 1]);
    if (!heads || !steps || !part || !whole || !features || *whole != *steps || *heads == *steps || *heads < 2 ||
        *steps < 2 || *part < 2 || checked::mul(*heads, *part) != *features)
      return std::nullopt;
    return Moved{at + 1, at};
  }

  /// The result of attention, whose heads are before its steps. Without attention, chunks of steps may be meant.
  static bool is_of_heads(const losses::Expressions& expressions, ValueId value) {
    constexpr int kMaxViews = 4;
    for (int step = 0; step < kMaxViews; ++step) {
      const NodeId view = expressions.producer(value);
      if (expressions.op(view) != Opcode::kCast && !ops::keeps_elements(expressions.op(view))) break;
      value = expressions.operand(view, 0);
    }
    const NodeId product = expressions.producer(value);
    return expressions.op(product) == Opcode::kMatMul && is_softmax(expressions, expressions.operand(product, 0)) &&
           is_moved_before_steps(expressions, expressions.operand(product, 1));
  }

  /// Perhaps with a choice for rows that are masked everywhere.
  static bool is_softmax(const losses::Expressions& expressions, ValueId weights) {
    weights = before_moves(expressions, weights);
    if (expressions.op_of(weights) == Opcode::kWhere) {
      const NodeId choice = expressions.producer(weights);
      const ValueId first = expressions.operand(choice, 1);
      weights = before_moves(expressions, expressions.number(first) ? expressions.operand(choice, 2) : first);
    }
    if (weights == ValueId::kAbsent) return false;
    const auto softmax = expressions.normalised(weights);
    return softmax && !softmax->logarithm;
  }

  /// A Transpose has put another axis before the steps that came after them.
  static bool is_moved_before_steps(const losses::Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 8;
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kTranspose) {
        const Attribute* order = expressions.analysis().attribute(node, "perm");
        if (order == nullptr || order->ints.size() < 3) return false;
        const auto last = order->ints.last(3);
        return last[0] > last[1];
      }
      // Keys and values of earlier steps come first.
      if (opcode != Opcode::kCast && opcode != Opcode::kConcat && !ops::picks_elements(opcode)) return false;
      value = expressions.operand(node, opcode == Opcode::kConcat ? 1 : 0);
    }
    return false;
  }

  /// Constants; and rows that were made longer by one, which are shifted against each other so: relative positions.
  static bool is_shifted(const NodeCall& call) {
    const Value& data = call.model().value(call.operand(0).value());
    if (data.producer == NodeId::kNone) return data.initializer != nullptr;
    const Opcode opcode = opcode_of(NodeCall(call.analysis(), data.producer).entry());
    return opcode == Opcode::kPad || opcode == Opcode::kConcat || opcode == Opcode::kSlice ||
           opcode == Opcode::kConstant;
  }
};

const RegisterRule<ReshapeMovesAxis> kRegisterReshapeMovesAxis;

}  // namespace
}  // namespace tensorlint::rules
