#include <algorithm>

#include "passes/losses/axis_finders.h"

namespace tensorlint::losses {
namespace {

using Kind = AxisMistake::Kind;

constexpr int kMaxWayToFlattening = 24;

bool are_same(const AxisOrigins& origins, const AxisFactor& a, const AxisFactor& b) {
  if (a.is_copied || b.is_copied) return false;
  return (a.is_batch && b.is_batch) || origins.have_common(a.sources, b.sources);
}

bool has_copies(const AxisFactors::Factors& factors) { return std::ranges::any_of(factors, &AxisFactor::is_copied); }

}  // namespace

std::optional<AxisMistake> FlattenedOrder::at(NodeId node) {
  const Opcode opcode = expressions_.op(node);
  if (opcode == Opcode::kReshape) return viewed_back(node);
  if (opcode == Opcode::kMatMul || opcode == Opcode::kEinsum) return contracted(node);
  const ops::OpEntry* entry = expressions_.entry(node);
  if (entry == nullptr) return std::nullopt;
  const auto operands = cone_.operands(node);
  if (operands.size() < 2) return std::nullopt;
  const ValueId a = expressions_.operand(node, 0), b = expressions_.operand(node, 1);
  if (entry->loss()) {
    // Scores have their classes along axis 1, where class indices have no axis.
    if (auto found = met(node, a, 0, b, 0)) return found;
    const ValueId weight = expressions_.operand(node, 2);
    return cone_.dims(a).size() == cone_.dims(b).size() && weight != ValueId::kAbsent ? met(node, a, 0, weight, 0)
                                                                                      : std::nullopt;
  }
  if (!entry->has(ops::OpTrait::kElementwise)) return std::nullopt;
  for (std::size_t i = 1; i < std::min<std::size_t>(operands.size(), 4); ++i) {
    const ValueId left = opcode == Opcode::kWhere && i == 2 ? b : a, right = operands[i];
    const std::size_t x = cone_.dims(left).size(), y = cone_.dims(right).size();
    for (std::size_t k = 0; k < std::min({x, y, kMaxRank}); ++k)
      if (auto found = met(node, left, x - 1 - k, right, y - 1 - k)) return found;
  }
  return std::nullopt;
}

/// The axes that a product adds up: maps [C, H * W] times maps that have been viewed as [C * H, W].
std::optional<AxisMistake> FlattenedOrder::contracted(NodeId node) {
  const ValueId a = expressions_.operand(node, 0), b = expressions_.operand(node, 1);
  const auto x = cone_.way().summed(node, 0), y = cone_.way().summed(node, 1);
  return x.size() == 1 && y.size() == 1 ? met(node, a, x[0], b, y[0]) : std::nullopt;
}

/// Both axes have been made of several ones, of which one is in both and lies at another place. Copies on both sides
/// are all pairs.
std::optional<AxisMistake> FlattenedOrder::met(NodeId node, ValueId a, std::size_t axis_of_a, ValueId b,
                                               std::size_t axis_of_b) {
  const auto x = cone_.dims(a), y = cone_.dims(b);
  DimPool& pool = cone_.pool();
  if (axis_of_a >= x.size() || axis_of_b >= y.size() || a == b || !cone_.is_long(a, axis_of_a) ||
      !pool.equal(x[axis_of_a], y[axis_of_b]))
    return std::nullopt;
  expressions_.charge(4);
  const auto axes_of_a = factors_.of(a), axes_of_b = factors_.of(b);
  if (axis_of_a >= axes_of_a.size() || axis_of_b >= axes_of_b.size()) return std::nullopt;
  const AxisFactors::Factors &f = axes_of_a[axis_of_a], &g = axes_of_b[axis_of_b];
  if (f.size() < 2 || g.size() < 2 || (has_copies(f) && has_copies(g))) return std::nullopt;
  const auto inside = [&](const AxisFactors::Factors& factors, std::size_t factor) {
    Dim stride = pool.constant(1);
    for (std::size_t at = factor + 1; at < factors.size(); ++at) stride = pool.mul(stride, factors[at].extent);
    return stride;
  };
  for (std::size_t i = 0; i < f.size(); ++i)
    for (std::size_t k = 0; k < g.size() && !expressions_.is_spent(); ++k) {
      expressions_.charge(1);
      const AxisOrigins& origins = cone_.origins();
      const auto is_like = [&](const AxisFactor& one) {
        return [&](const AxisFactor& each) {
          expressions_.charge(1);
          return are_same(origins, one, each);
        };
      };
      // Of two axes that come from one nobody knows which is which.
      if (!are_same(origins, f[i], g[k]) || !pool.equal(f[i].extent, g[k].extent) ||
          std::ranges::count_if(g, is_like(f[i])) != 1 || std::ranges::count_if(f, is_like(g[k])) != 1 ||
          std::ranges::count_if(f, is_like(f[i])) != 1 || std::ranges::count_if(g, is_like(g[k])) != 1)
        continue;
      if (pool.differ(inside(f, i), inside(g, k)))
        return AxisMistake{Kind::kFlattenedOrder,      node,      a, {axis_of_a}, f[i].is_batch,
                           flattened_at(a, axis_of_a), axis_of_b, b, axis_of_b};
    }
  return std::nullopt;
}

/// Where the axis has been made of several ones.
NodeId FlattenedOrder::flattened_at(ValueId value, std::size_t axis) {
  for (int step = 0; step < kMaxWayToFlattening; ++step) {
    const NodeId node = expressions_.producer(value);
    const Opcode opcode = expressions_.op(node);
    if (opcode == Opcode::kConcat || opcode == Opcode::kTile) return node;
    const ValueId from = expressions_.operand(node, 0);
    const auto before = cone_.dims(from), after = cone_.dims(value);
    if (before.empty()) return node;
    if (opcode == Opcode::kReshape) {
      std::size_t same = before.size();
      for (std::size_t i = 0; i < before.size(); ++i)
        if (cone_.pool().equal(before[i], after[axis])) same = i;
      if (same == before.size()) return node;
      axis = same;
    } else if (axis >= before.size() || !cone_.pool().equal(before[axis], after[axis])) {
      return node;
    }
    value = from;
  }
  return NodeId::kNone;
}

/// [T * N, C], of steps that have been joined, viewed as [N, T, C]: the axes are separated in another order than they
/// have been joined in.
std::optional<AxisMistake> FlattenedOrder::viewed_back(NodeId node) {
  const ValueId from = expressions_.operand(node, 0), to = expressions_.result(node);
  const auto before = cone_.dims(from), after = cone_.dims(to);
  DimPool& pool = cone_.pool();
  if (before.empty() || before.size() > kMaxRank || after.size() > kMaxRank || after.size() < 2) return std::nullopt;
  const auto axes = factors_.of(from);
  Dim ahead = pool.constant(1);
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    const AxisFactors::Factors& factors = axes[axis];
    const Dim behind = pool.mul(ahead, before[axis]);
    if (factors.size() >= 2 && std::ranges::any_of(factors, &AxisFactor::is_batch)) {
      std::vector<Dim> parts;
      std::size_t first = after.size();
      Dim passed = pool.constant(1);
      bool starts = pool.equal(passed, ahead), ends = false;
      for (std::size_t i = 0; i < after.size() && !ends; ++i) {
        if (starts && !pool.is_constant(after[i], 1)) {
          parts.push_back(after[i]);
          first = std::min(first, i);
        }
        passed = pool.mul(passed, after[i]);
        if (!starts) starts = pool.equal(passed, ahead);
        ends = starts && !parts.empty() && pool.equal(passed, behind);
      }
      std::vector<Dim> extents;
      for (const AxisFactor& factor : factors) extents.push_back(factor.extent);
      const auto is_same = [&](Dim a, Dim b) { return pool.equal(a, b); };
      if (ends && parts.size() == extents.size() && !std::ranges::equal(parts, extents, is_same) &&
          std::ranges::is_permutation(parts, extents, is_same))
        return AxisMistake{Kind::kSeparatedOrder, node, from, {axis}, true, flattened_at(from, axis), first};
    }
    ahead = behind;
  }
  return std::nullopt;
}

}  // namespace tensorlint::losses
