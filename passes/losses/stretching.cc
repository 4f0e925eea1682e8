#include "passes/losses/stretching.h"

#include <algorithm>
#include <iterator>

namespace tensorlint::losses {
namespace {

/// Nodes in a row that move elements, or compute one of each.
constexpr int kMaxStretchSteps = 16;

/// Extent 1, or no axis at all: it is stretched where the other one has more.
std::optional<std::size_t> aligned(std::size_t axis, std::size_t rank, std::size_t result_rank) {
  const std::size_t missing = result_rank - rank;
  return axis < missing ? std::nullopt : std::optional(axis - missing);
}

}  // namespace

std::optional<std::span<const Dim>> Stretching::shape(ValueId value) const {
  if (value == ValueId::kAbsent || analysis_.taint(value).has(Aspect::kShape)) return std::nullopt;
  const Fact& fact = analysis_.fact(value);
  if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked) return std::nullopt;
  return analysis_.facts().dims_of(fact.shape);
}

bool Stretching::are_all_pairs(ValueId a, ValueId b) {
  const auto x = shape(a), y = shape(b);
  if (!x || !y) return false;
  const auto of_x = stretches(*x, *y), of_y = stretches(*y, *x);
  if (of_x.empty() || of_y.empty()) return false;
  // One has an axis of extent 1 more than the other one, and is otherwise alike: it was forgotten to be squeezed.
  const bool vectors = (long_axes(*x) == 1 && long_axes(*y) == 1) || is_column_of(*x, *y) || is_column_of(*y, *x);
  const auto are_one = [&](std::size_t i, std::size_t j) {
    const Dim m = (*x)[i], n = (*y)[j];
    return pool_.equal(m, n) && (!pool_.as_constant(m) || origins_.are_same(a, i, b, j));
  };
  const auto are_equal_at_last = [&] {
    const auto i = last_long(*x), j = last_long(*y);
    return i && j && pool_.equal((*x)[*i], (*y)[*j]);
  };
  const bool same = vectors ? are_equal_at_last()
                            : may_compare(of_x.size(), of_y.size()) && std::ranges::any_of(of_x, [&](std::size_t i) {
                                return std::ranges::any_of(of_y, [&](std::size_t j) { return are_one(i, j); });
                              });
  if (!same) return false;
  const Moved first = moved(a, false), second = moved(b, false);
  return first.from != second.from && !first.transposed && !second.transposed && !(first.gets_axis && second.gets_axis);
}

bool Stretching::are_batches_of_two(ValueId a, ValueId b, bool is_separable) {
  const auto x = shape(a), y = shape(b);
  if (!x || !y) return false;
  const auto of_x = stretches(*x, *y), of_y = stretches(*y, *x);
  if (of_x.empty() || of_y.empty()) return false;
  const auto batches = batch_axes(a, of_x), others = batches.empty() ? batches : batch_axes(b, of_y);
  const bool same = may_compare(batches.size(), others.size()) && std::ranges::any_of(batches, [&](std::size_t i) {
                      return std::ranges::any_of(others, [&](std::size_t j) { return pool_.equal((*x)[i], (*y)[j]); });
                    });
  if (!same) return false;
  const Moved first = moved(a, true), second = moved(b, true);
  if (first.from == second.from || first.transposed || second.transposed) return false;
  return is_separable ? !(first.gets_axis && second.gets_axis) : !first.gets_axis && !second.gets_axis;
}

bool Stretching::has_axis_too_many(ValueId a, ValueId b) {
  const auto x = shape(a), y = shape(b);
  if (!x || !y || y->size() < 2 || x->size() != y->size() + 1 || long_axes(*x) != 1 || pool_.is_constant((*x)[0], 1) ||
      pool_.is_constant(y->back(), 1))
    return false;
  if (!pool_.equal((*x)[0], (*y)[0]) || !origins_.is_batch(a, 0) || !origins_.is_batch(b, 0)) return false;
  const Moved first = moved(a, true), second = moved(b, true);
  return first.from != second.from && !first.transposed && !second.transposed && !second.gets_axis;
}

bool Stretching::are_two_batches(ValueId prediction, ValueId target) {
  const auto x = shape(prediction), y = shape(target);
  if (!x || !y || x->size() != 2 || y->size() != 1 || !pool_.is_constant((*x)[1], 1)) return false;
  if (!pool_.is_symbol((*x)[0]) || !pool_.is_symbol((*y)[0]) || pool_.equal((*x)[0], (*y)[0])) return false;
  const Moved first = moved(prediction, true), second = moved(target, true);
  const bool is_input = expressions_.producer(second.from) == NodeId::kNone;
  return is_input && origins_.is_batch(prediction, 0) && origins_.is_batch(target, 0) && !first.transposed &&
         !first.gets_axis && !second.transposed && expressions_.producer(first.from) != NodeId::kNone;
}

bool Stretching::is_column_against_row(ValueId a, ValueId b) const {
  const auto x = shape(a), y = shape(b);
  if (!x || !y || long_axes(*y) != y->size() || !is_column_of(*x, *y)) return false;
  const Moved first = moved(a, true), second = moved(b, true);
  return first.from != second.from && !first.transposed && !second.transposed && !first.gets_axis && !second.gets_axis;
}

bool Stretching::is_column_against_squeezed(ValueId column, ValueId squeezed) {
  const NodeId node = expressions_.producer(squeezed);
  if (expressions_.op(node) != Opcode::kSqueeze || expressions_.operand(node, 1) != ValueId::kAbsent ||
      analysis_.attribute(node, "axes") != nullptr)
    return false;
  const ValueId before = expressions_.operand(node, 0);
  const auto x = shape(column), y = shape(before);
  if (!x || !y || x->size() != 2 || y->size() != 2 || !pool_.is_constant((*x)[1], 1) ||
      !pool_.is_constant((*y)[1], 1) || pool_.is_constant((*x)[0], 1) || !pool_.equal((*x)[0], (*y)[0]))
    return false;
  const Moved first = moved(column, true);
  return origins_.is_batch(column, 0) && origins_.is_batch(before, 0) && !first.gets_axis && !first.transposed &&
         first.from != moved(before, true).from;
}

bool Stretching::is_stretched(ValueId narrow, ValueId wide) const {
  const auto x = shape(narrow), y = shape(wide);
  return x && y && !stretches(*y, *x).empty();
}

bool Stretching::are_turned(ValueId a, ValueId b) const {
  const auto x = shape(a), y = shape(b);
  if (!x || !y || x->size() != y->size() || x->size() < 3) return false;
  const auto of_x = stretches(*x, *y), of_y = stretches(*y, *x);
  if (of_x.size() != 1 || of_y.size() != 1 || !pool_.equal((*x)[of_x[0]], (*y)[of_y[0]])) return false;
  for (std::size_t i = 0; i < x->size(); ++i)
    if (i != of_x[0] && i != of_y[0] && !pool_.equal((*x)[i], (*y)[i])) return false;
  const Moved first = moved(a, false), second = moved(b, false);
  return first.from != second.from && !first.transposed && !second.transposed && !(first.gets_axis && second.gets_axis);
}

bool Stretching::may_compare(std::size_t axes_of_a, std::size_t axes_of_b) const {
  expressions_.charge(axes_of_a * axes_of_b);
  return !expressions_.is_spent();
}

std::vector<std::size_t> Stretching::batch_axes(ValueId value, std::span<const std::size_t> among) {
  std::vector<std::size_t> found;
  std::ranges::copy_if(among, std::back_inserter(found),
                       [&](std::size_t axis) { return origins_.is_batch(value, axis); });
  return found;
}

/// Axes of `a` along which `b` is stretched.
std::vector<std::size_t> Stretching::stretches(std::span<const Dim> a, std::span<const Dim> b) const {
  const std::size_t rank = std::max(a.size(), b.size());
  expressions_.charge(1 + a.size());
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (pool_.is_constant(a[i], 1) || pool_.bounds(a[i]).hi <= 1) continue;
    const auto other = aligned(i + rank - a.size(), b.size(), rank);
    if (!other || pool_.is_constant(b[*other], 1)) found.push_back(i);
  }
  return found;
}

std::size_t Stretching::long_axes(std::span<const Dim> dims) const {
  expressions_.charge(1 + dims.size() / 4);
  return static_cast<std::size_t>(std::ranges::count_if(dims, [&](Dim dim) { return !pool_.is_constant(dim, 1); }));
}

bool Stretching::is_column_of(std::span<const Dim> column, std::span<const Dim> row) const {
  expressions_.charge(1 + row.size() / 4);
  return !row.empty() && column.size() == row.size() + 1 && pool_.is_constant(column.back(), 1) &&
         std::ranges::equal(row, column.first(row.size()), [&](Dim a, Dim b) { return pool_.equal(a, b); });
}

/// The last axis that has more than one element.
std::optional<std::size_t> Stretching::last_long(std::span<const Dim> dims) const {
  for (std::size_t i = dims.size(); i-- > 0;)
    if (!pool_.is_constant(dims[i], 1)) return i;
  return std::nullopt;
}

/// The value before nodes that only move its elements, or also before those that compute one of each.
Stretching::Moved Stretching::moved(ValueId value, bool through_elements) const {
  Moved found{.from = value};
  for (int step = 0; step < kMaxStretchSteps; ++step) {
    expressions_.charge(2);
    const NodeId node = expressions_.producer(found.from);
    const Opcode opcode = expressions_.op(node);
    const bool one_of_each = through_elements && has_trait(expressions_.entry(node), ops::OpTrait::kElementwise) &&
                             analysis_.operands(node).size() == 1;
    if (!moves_elements(opcode) && opcode != Opcode::kCast && !one_of_each) break;
    const ValueId before = expressions_.operand(node, 0);
    const auto from = shape(before), to = shape(found.from);
    found.gets_axis |=
        opcode == Opcode::kUnsqueeze || (opcode == Opcode::kReshape && from && to && to->size() > from->size());
    found.transposed |= opcode == Opcode::kTranspose;
    found.from = before;
  }
  return found;
}

}  // namespace tensorlint::losses
