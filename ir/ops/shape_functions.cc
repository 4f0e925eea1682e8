#include "ir/ops/shape_functions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tensorlint::ops {

const Constraint kIsList{"is_list", ConstraintKind::kShapes, "an operand that lists axes, sizes or pads has 1 axis"};
const Constraint kBroadcastable{"broadcastable", ConstraintKind::kShapes,
                                "extents are equal or 1, aligned at the last axis", true};

void fail_unequal(Inference& in, const Constraint& constraint, std::vector<int> operands, Message message, Dim a, Dim b,
                  bool stretches) {
  DimPool& pool = in.dims();
  // K and K + 2 run for K = 1.
  const Dim one = pool.constant(1);
  const bool may_stretch = stretches && !(pool.never_equal(a, one) && pool.never_equal(b, one));
  if (pool.never_equal(a, b) && !may_stretch) {
    in.fail(constraint, std::move(operands), std::move(message));
    return;
  }
  // An extent may be a sum of thousands of symbols.
  constexpr std::size_t kShownSymbols = 8;
  // Extents behind strided windows reach 2 only where the symbols are large.
  for (const std::int64_t value : {2, 64, 1024, 65536}) {
    const auto all = [value](Dim) -> std::optional<std::int64_t> { return value; };
    const auto x = pool.evaluate(a, all), y = pool.evaluate(b, all);
    const std::int64_t least = stretches ? 2 : 1;
    if (!x || !y || *x == *y || *x < least || *y < least) continue;
    ArgumentList symbols{{}, ", ", {}};
    std::size_t more = 0;
    for (const Dim symbol : pool.symbols(a)) {
      if (!pool.is_named(symbol)) continue;
      if (symbols.items.size() < kShownSymbols)
        symbols.items.emplace_back(Message("{} = {}", symbol, value));
      else
        ++more;
    }
    if (more != 0) {
      symbols.items.emplace_back(Message("{} more", more));
      symbols.last_separator = " and ";
    }
    if (symbols.items.empty()) symbols.items.emplace_back(Message("extents of {}", value));
    in.may_fail(constraint, std::move(operands), std::move(message),
                {"with {}: {} against {}", std::move(symbols), *x, *y});
    return;
  }
}

std::optional<int> normalise_axis(Inference& in, std::int64_t axis, int rank, int operand,
                                  const Constraint& constraint) {
  if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
  in.fail(constraint, {operand}, axis_outside(axis, rank, operand));
  return std::nullopt;
}

Message axis_outside(std::int64_t axis, int rank, int operand) {
  return {"axis {} outside {} of rank {}", Axis(axis), OperandRef(operand), rank};
}

Message repeated_axis(std::int64_t axis, std::int64_t before, int operand) {
  return axis == before ? Message("axis {} of {} is given twice", Axis(axis), OperandRef(operand))
                        : Message("axis {} of {} is axis {} again", Axis(axis), OperandRef(operand), Axis(before));
}

namespace {

/// `repeated`: called for an axis that is given again, with how it was written first; false ends it.
template <typename Repeated>
std::optional<std::vector<int>> each_once(Inference& in, std::span<const std::int64_t> axes, int rank, int operand,
                                          const Constraint& range, const Repeated& repeated) {
  std::vector<int> result;
  std::vector<std::optional<std::int64_t>> seen(static_cast<std::size_t>(std::max(rank, 0)));  // as they are written
  for (const std::int64_t axis : axes) {
    const auto normalised = normalise_axis(in, axis, rank, operand, range);
    if (!normalised) return std::nullopt;
    std::optional<std::int64_t>& before = seen[static_cast<std::size_t>(*normalised)];
    if (before) {
      if (!repeated(axis, *before)) return std::nullopt;
      continue;
    }
    before = axis;
    result.push_back(*normalised);
  }
  return result;
}

}  // namespace

std::optional<std::vector<int>> normalise_axes(Inference& in, std::span<const std::int64_t> axes, int rank, int operand,
                                               const Constraint& range, const Constraint& duplicate) {
  return each_once(in, axes, rank, operand, range, [&](std::int64_t axis, std::int64_t before) {
    in.fail(duplicate, {operand}, repeated_axis(axis, before, operand));
    return false;
  });
}

std::optional<std::vector<int>> distinct_axes(Inference& in, std::span<const std::int64_t> axes, int rank, int operand,
                                              const Constraint& range, const Constraint* duplicate) {
  return each_once(in, axes, rank, operand, range, [&](std::int64_t axis, std::int64_t before) {
    if (duplicate != nullptr)
      in.fails_somewhere(*std::exchange(duplicate, nullptr), {operand}, repeated_axis(axis, before, operand),
                         {"the engine refuses repeated axes, as numpy does (onnxruntime takes the axis once)"});
    return true;
  });
}

Dims broadcast(Inference& in, std::span<const Dim> a, std::span<const Dim> b, int operand_a, int operand_b,
               const Constraint& constraint) {
  DimPool& pool = in.dims();
  const std::size_t rank = std::max(a.size(), b.size());
  pool.shared_meter()->charge(2 * rank);  // operands are compared in pairs
  Dims result(rank);
  bool reported = false;
  for (std::size_t i = 0; i < rank; ++i) {
    const bool in_a = i + a.size() >= rank, in_b = i + b.size() >= rank;
    const Dim x = in_a ? a[i + a.size() - rank] : pool.constant(1);
    const Dim y = in_b ? b[i + b.size() - rank] : pool.constant(1);
    result[i] = pool.broadcast(x, y);
    // An extent that may be 1 is stretched.
    const bool stretched = pool.bounds_from_two(x).contains(1) || pool.bounds_from_two(y).contains(1);
    if (reported || (stretched && !pool.is_multiple(x, y)) || !pool.differ(x, y)) continue;
    reported = true;
    fail_unequal(
        in, constraint, {operand_b, operand_a},
        {"{} of shape {} and {} of shape {} do not broadcast: {} against {} at axis {}", OperandRef(operand_a), a,
         OperandRef(operand_b), b, x, y, Axis(static_cast<std::int64_t>(i) - static_cast<std::int64_t>(rank))},
        x, y, true);
  }
  return result;
}

std::optional<Dims> broadcast_operands(Inference& in, int first, int last, const Constraint& constraint) {
  DimPool& pool = in.dims();
  Dims result;
  std::vector<int> sources;  // by axis of the result: the operand that it has its extent from
  bool ranked = true, any = false;
  // Of many operands those of a shape that came before say nothing new.
  constexpr std::size_t kMaxKnown = 8;
  constexpr int kMany = 16;
  std::vector<ShapeId> known;
  for (int i = first; i <= last; ++i) {
    if (!in.has(i)) continue;
    const ShapeId id = in.operand(i).shape;
    if (i - first >= kMany && std::ranges::find(known, id) != known.end()) continue;
    const auto shape = in.shape(i);
    if (!shape) {
      ranked = false;
      continue;
    }
    if (pool.shared_meter()->is_spent()) return std::nullopt;
    pool.shared_meter()->charge(shape->size());
    any = true;
    if (known.size() < kMaxKnown && std::ranges::find(known, id) == known.end()) known.push_back(id);
    if (shape->size() > result.size()) {
      const std::size_t more = shape->size() - result.size();
      result.insert(result.begin(), shape->begin(), shape->begin() + static_cast<std::ptrdiff_t>(more));
      sources.insert(sources.begin(), more, i);
    }
    const std::size_t leading = result.size() - shape->size();
    std::vector<int> compared;
    for (std::size_t axis = 0; axis < shape->size(); ++axis) {
      int& source = sources[leading + axis];
      if (source == i || pool.is_constant((*shape)[axis], 1)) continue;
      // Each with the operand that it may disagree with, and not with all of them stretched to one shape.
      if (std::ranges::find(compared, source) == compared.end()) {
        compared.push_back(source);
        broadcast(in, *in.shape(source), *shape, source, i, constraint);
      }
      Dim& extent = result[leading + axis];
      const Dim own = (*shape)[axis], merged = pool.broadcast(extent, own);
      if (merged == own) source = i;
      extent = merged;
    }
  }
  return any && ranked ? std::optional(std::move(result)) : std::nullopt;
}

void check_unidirectional(Inference& in, std::span<const Dim> shape, std::span<const Dim> target, int operand,
                          int operand_target, const Constraint& constraint) {
  DimPool& pool = in.dims();
  const auto message = [&] {
    return Message("{} of shape {} does not stretch to {} of shape {}", OperandRef(operand), shape,
                   OperandRef(operand_target), target);
  };
  if (shape.size() > target.size()) {
    in.fail(constraint, {operand, operand_target}, message());
    return;
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Dim x = shape[i], y = target[i + target.size() - shape.size()];
    if (pool.bounds_from_two(x).contains(1) || !pool.differ(x, y)) continue;
    fail_unequal(in, constraint, {operand, operand_target}, message(), x, y);
    return;
  }
}

Dim same_extent(Inference& in, Dim a, Dim b, int operand_a, int operand_b, const Constraint& constraint,
                const Message& what) {
  DimPool& pool = in.dims();
  if (pool.differ(a, b))
    fail_unequal(in, constraint, {operand_b, operand_a},
                 {"{}: {} of {} against {} of {}", what, a, OperandRef(operand_a), b, OperandRef(operand_b)}, a, b);
  in.learn_equal(a, b);
  if (a.is_unknown()) return b;
  return pool.as_constant(b) ? b : a;
}

Dim element_count(DimPool& pool, std::span<const Dim> dims) {
  // A zero extent decides, whatever the others are; so do that first.
  for (const Dim dim : dims)
    if (pool.is_constant(dim, 0)) return dim;
  // Numbers, as most shapes are, need no pool.
  std::int64_t known = 1;
  std::size_t i = 0;
  for (; i < dims.size(); ++i) {
    const auto extent = pool.as_constant(dims[i]);
    if (!extent || __builtin_mul_overflow(known, *extent, &known)) break;
  }
  if (i == dims.size()) return pool.constant(known);
  Dim count = pool.constant(1);
  for (const Dim dim : dims) count = pool.mul(count, dim);
  return count;
}

std::optional<std::vector<std::int64_t>> constant_extents(const DimPool& pool, std::span<const Dim> dims) {
  std::vector<std::int64_t> extents;
  extents.reserve(dims.size());
  for (const Dim dim : dims) {
    const auto extent = pool.as_constant(dim);
    if (!extent) return std::nullopt;
    extents.push_back(*extent);
  }
  return extents;
}

std::optional<std::vector<std::size_t>> broadcast_indices(const DimPool& pool, std::span<const Dim> shape,
                                                          std::span<const Dim> target) {
  const auto from = constant_extents(pool, shape), to = constant_extents(pool, target);
  if (!from || !to || from->size() > to->size()) return std::nullopt;
  std::size_t count = 1;
  for (const std::int64_t extent : *to) {
    if (extent < 0 || (extent > 0 && count > kMaxContent)) return std::nullopt;
    count =
        static_cast<std::uint64_t>(extent) > kMaxContent ? kMaxContent + 1 : count * static_cast<std::size_t>(extent);
  }
  if (count > kMaxContent) return std::nullopt;
  /// An axis of the target with more than one element, the last one first.
  struct Axis {
    std::size_t extent, stride, at = 0;
  };
  const std::size_t lead = to->size() - from->size();
  std::vector<Axis> axes;
  std::size_t stride = 1;
  for (std::size_t i = to->size(); i-- > 0;) {
    const std::int64_t extent = i < lead ? 1 : (*from)[i - lead];
    if (extent != 1 && extent != (*to)[i]) return std::nullopt;
    if ((*to)[i] != 1) axes.push_back({static_cast<std::size_t>((*to)[i]), extent == 1 ? 0 : stride});
    stride *= static_cast<std::size_t>(extent);
  }
  pool.shared_meter()->charge(to->size() + count / 2);
  std::vector<std::size_t> indices(count);
  std::size_t index = 0;
  for (std::size_t& at : indices) {
    at = index;
    for (Axis& axis : axes) {
      index += axis.stride;
      if (++axis.at < axis.extent) break;
      index -= axis.stride * axis.extent;
      axis.at = 0;
    }
  }
  return indices;
}

std::string shape_text(const DimPool& pool, std::span<const Dim> dims) {
  // 64 extents of 4 KB each would be a text that nobody sees: reports show a thousand characters.
  constexpr std::size_t kMaxShapeText = 1024;
  std::string text = "[";
  for (const Dim dim : dims) {
    if (text.size() > 1) text += ", ";
    if (text.size() > kMaxShapeText) return text + "...]";
    text += pool.to_text(dim);
  }
  return text + "]";
}

Range range_of(const DimPool& pool, std::span<const Dim> elements) {
  // An element that is not known may lie beyond int64: among uint64.
  if (std::any_of(elements.begin(), elements.end(), [](Dim element) { return element.is_unknown(); }))
    return {-HUGE_VAL, HUGE_VAL, false};
  Bounds hull{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (const Dim element : elements) {
    const Bounds bounds = pool.bounds(element);
    hull = {std::min(hull.lo, bounds.lo), std::max(hull.hi, bounds.hi)};
  }
  // Conversion rounds to nearest: one step outwards covers it beyond 2^53.
  const auto outwards = [](std::int64_t value, double direction) {
    const auto converted = static_cast<double>(value);
    return std::fabs(converted) <= 9007199254740992.0 ? converted : std::nextafter(converted, direction);
  };
  return {outwards(hull.lo, -HUGE_VAL), outwards(hull.hi, HUGE_VAL), false};
}

}  // namespace tensorlint::ops
