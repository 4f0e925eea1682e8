// Parts of a tensor along axes. Source: ONNX Slice (opsets 1 with attributes, 10 with operands and steps, 11, 13).
// Starts and ends count from the back where negative and are clamped to the extent, so they never fail.
#include <algorithm>
#include <initializer_list>
#include <limits>
#include <tuple>
#include <utility>

#include "ir/ops/contents.h"
#include "ir/ops/shape_functions.h"
#include "ir/ops/slicing.h"

namespace tensorlint::ops {
namespace {

const Constraint kSliceAxes{"slice_axes_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank", true};
const Constraint kSliceOnce{"slice_axes_once", ConstraintKind::kDuplicateAxis, "no axis is sliced twice"};
const Constraint kSliceLengths{"slice_lengths", ConstraintKind::kShapes,
                               "starts, ends, axes and steps have the same length", true};
const Constraint kSliceStep{"slice_step", ConstraintKind::kDomain, "no step is 0", true};

struct BoundsList {
  std::string_view one, many;
  const std::optional<Dims>& list;
  bool given = true;
};

/// The lists that are known have as many elements as each other.
bool same_lengths(Inference& in, std::initializer_list<BoundsList> lists) {
  ArgumentList counts{{}, ", ", " and "};
  std::optional<std::size_t> length;
  bool same = true;
  for (const auto& [one, many, list, given] : lists) {
    if (!given || !list) continue;
    counts.items.emplace_back(Message{"{} {}", list->size(), list->size() == 1 ? one : many});
    same = same && length.value_or(list->size()) == list->size();
    length = list->size();
  }
  if (!same) in.fail(kSliceLengths, {0}, {"Slice has {}", std::move(counts)});
  return same;
}

}  // namespace

std::pair<std::int64_t, std::int64_t> constant_slice(std::int64_t extent, std::int64_t start, std::int64_t end,
                                                     std::int64_t step) {
  // An extent is not negative, so neither sum overflows.
  if (start < 0) start += extent;
  if (end < 0) end += extent;
  if (step > 0) {
    start = std::clamp<std::int64_t>(start, 0, extent);
    end = std::clamp<std::int64_t>(end, 0, extent);
    return {start, end <= start ? 0 : (end - start - 1) / step + 1};
  }
  if (extent == 0) return {0, 0};
  start = std::clamp<std::int64_t>(start, 0, extent - 1);
  end = std::clamp<std::int64_t>(end, -1, extent - 1);
  const std::int64_t distance = start - end;
  // The step may be INT64_MIN, which has no negative.
  return {start, distance <= 0 ? 0 : (step < -distance ? 1 : (distance - 1) / -step + 1)};
}

std::optional<Bounded> read_bounds(Inference& in, std::span<const Dim> data) {
  DimPool& pool = in.dims();
  bool given = false, has_axes = false, has_steps = false;
  auto starts = integer_list(in, "starts", given), ends = integer_list(in, "ends", given);
  const auto axes = integer_list(in, "axes", has_axes);
  auto steps = integer_list(in, "steps", has_steps);
  if (!same_lengths(in, {{"start", "starts", starts},
                         {"end", "ends", ends},
                         {"axis", "axes", axes, has_axes},
                         {"step", "steps", steps, has_steps}})) {
    if (has_axes && axes)
      if (const auto constants = constant_extents(pool, *axes))
        normalise_axes(in, *constants, static_cast<int>(data.size()), 0, kSliceAxes, kSliceOnce);
    if (has_steps && steps && std::ranges::any_of(*steps, [&](Dim step) { return pool.is_constant(step, 0); }))
      in.fail(kSliceStep, {0}, {"a step along an axis of {} is 0", OperandRef(0)});
    return std::nullopt;
  }
  // Any of the lists tells how many there are.
  std::optional<std::size_t> count;
  if (starts) count = starts->size();
  if (ends) count = ends->size();
  if (has_axes && axes) count = axes->size();
  if (has_steps && steps) count = steps->size();
  if (!count) return std::nullopt;
  const Dims unknown(*count, Dim(Unknown::kDataDependent));
  if (!starts) starts = unknown;
  if (!ends) ends = unknown;
  if (!has_steps) steps = Dims(*count, pool.constant(1));
  if (!steps) steps = unknown;

  std::vector<std::int64_t> order;
  if (has_axes) {
    const auto constants = axes ? constant_extents(pool, *axes) : std::nullopt;
    if (!constants) return std::nullopt;
    order = *constants;
  } else {
    for (std::size_t i = 0; i < *count; ++i) order.push_back(static_cast<std::int64_t>(i));
  }
  const auto normalised = normalise_axes(in, order, static_cast<int>(data.size()), 0, kSliceAxes, kSliceOnce);
  if (!normalised) return std::nullopt;
  return Bounded{*normalised, *starts, *ends, *steps};
}

namespace {

/// An end from here on means "to the end": exporters write INT32_MAX as well as INT64_MAX.
constexpr std::int64_t kToTheEnd = std::numeric_limits<std::int32_t>::max();

/// Backwards to an end past the last element: nothing by the specification and by numpy, everything in onnxruntime.
bool ends_where_engines_disagree(std::optional<std::int64_t> end, std::int64_t step) {
  return step < 0 && end && *end >= kToTheEnd;
}

/// Where a forward slice starts or ends, counted from the front: in [0, extent].
Dim position(DimPool& pool, Dim extent, Dim bound) {
  const Bounds bounds = pool.bounds(bound);
  if (bounds.lo >= 0) return pool.min(bound, extent);
  if (bounds.hi > 0) return Dim(Unknown::kDataDependent);
  const Dim from_back = pool.max(pool.add(extent, bound), pool.constant(0));
  // A bound that may also be 0 counts from the front then: where nothing is added to the extent, the remainder is 0.
  return bounds.hi < 0 ? from_back : pool.mod(from_back, pool.max(extent, pool.constant(1)));
}

/// Number of elements of a forward slice whose bounds or extent are expressions.
Dim forward_count(DimPool& pool, Dim extent, Dim start, Dim end, std::int64_t step) {
  if (extent.is_unknown() || start.is_unknown() || end.is_unknown()) return Dim(Unknown::kDataDependent);
  const Dim zero = pool.constant(0);
  const Bounds first = pool.bounds(start), last = pool.bounds(end);
  const bool to_the_end = last.lo >= kToTheEnd || pool.equal(end, extent);
  Dim count;
  if (to_the_end && first.hi < 0) {
    count = pool.min(pool.sub(zero, start), extent);
  } else if (to_the_end && first.lo >= 0) {
    count = pool.max(pool.sub(extent, start), zero);
  } else {
    const Dim to = to_the_end ? extent : position(pool, extent, end);
    count = pool.max(pool.sub(to, position(pool, extent, start)), zero);
  }
  return pool.ceil_div(count, pool.constant(step));
}

Dim sliced_extent(DimPool& pool, Dim extent, Dim start, Dim end, Dim step) {
  const auto stride = pool.as_constant(step);
  if (!stride || *stride == 0) return Dim(Unknown::kDataDependent);
  const auto d = pool.as_constant(extent), s = pool.as_constant(start), e = pool.as_constant(end);
  if (ends_where_engines_disagree(e, *stride)) return Dim(Unknown::kNotTracked);
  if (d && s && e && *d >= 0) return pool.constant(constant_slice(*d, *s, *e, *stride).second);
  if (pool.is_constant(extent, 0)) return extent;
  if (*stride > 0) return forward_count(pool, extent, start, end, *stride);
  // A whole axis backwards.
  const bool from_last = s && (*s == -1 || *s >= kToTheEnd), to_first = e && *e <= -kToTheEnd;
  if (from_last && to_first && *stride > std::numeric_limits<std::int64_t>::min())
    return pool.ceil_div(extent, pool.constant(-*stride));
  return Dim(Unknown::kDataDependent);
}

void slice_elements(Inference& in, std::span<const Dim> data, const Bounded& bounds) {
  if (content_of(in, 0) == nullptr) return;
  DimPool& pool = in.dims();
  const std::vector<std::int64_t> extents = *constant_extents(pool, data);
  struct Walk {
    std::int64_t first = 0, step = 1;
  };
  std::vector<std::int64_t> part = extents;
  std::vector<Walk> walks(extents.size());
  for (std::size_t i = 0; i < bounds.axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(bounds.axes[i]);
    const auto s = pool.as_constant(bounds.starts[i]), e = pool.as_constant(bounds.ends[i]),
               t = pool.as_constant(bounds.steps[i]);
    if (!s || !e || !t || *t == 0 || ends_where_engines_disagree(e, *t)) return;
    std::tie(walks[axis].first, part[axis]) = constant_slice(extents[axis], *s, *e, *t);
    walks[axis].step = part[axis] > 1 ? *t : 0;  // a huge step is taken at most never
  }
  const std::vector<std::size_t> strides = strides_of(extents);
  std::vector<std::size_t> indices;
  for_each_index(part, [&](std::span<const std::int64_t> index) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < index.size(); ++i)
      at += static_cast<std::size_t>(walks[i].first + index[i] * walks[i].step) * strides[i];
    indices.push_back(at);
  });
  select_elements(in, 0, 0, indices);
}

void slice(Inference& in) {
  in.set_range(0, in.operand(0).range);
  const auto data = in.shape(0);
  if (!data) return;
  const auto bounds = read_bounds(in, *data);
  if (!bounds) {
    in.set_shape(0, unknown_dims(data->size(), in.failed() ? Unknown::kTainted : Unknown::kDataDependent));
    return;
  }
  Dims result = copy_dims(*data);
  for (std::size_t i = 0; i < bounds->axes.size(); ++i) {
    Dim& extent = result[static_cast<std::size_t>(bounds->axes[i])];
    if (in.dims().is_constant(bounds->steps[i], 0))
      in.fail(kSliceStep, {0}, {"the step along axis {} of {} is 0", Axis(bounds->axes[i]), OperandRef(0)});
    extent = sliced_extent(in.dims(), extent, bounds->starts[i], bounds->ends[i], bounds->steps[i]);
  }
  in.set_shape(0, result);
  slice_elements(in, *data, *bounds);
}

const RegisterOps kRegisterSlice{
    OpEntry("Slice")
        .computes(Opcode::kSlice)
        .infer(slice)
        .host("starts")
        .host("ends")
        .host("axes")
        .host("steps")
        .constraint(kSliceAxes)
        .constraint(kSliceOnce)
        .constraint(kSliceLengths)
        .constraint(kSliceStep),
};

}  // namespace
}  // namespace tensorlint::ops
