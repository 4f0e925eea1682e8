// Axes rearranged, stretched and repeated. Source: ONNX Transpose (opsets 1-25), Expand (8, 13), Tile (1, 6, 13).
#include <algorithm>
#include <cmath>

#include "ir/ops/contents.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

const Constraint kPermutationAxes{"transpose_axes_in_range", ConstraintKind::kAxisRange, "0 <= axis < rank", true};
const Constraint kPermutationOnce{"transpose_axes_once", ConstraintKind::kDuplicateAxis, "`perm` is a permutation",
                                  true};
const Constraint kPermutationLength{"transpose_length", ConstraintKind::kShapes, "`perm` has as many axes as the data"};
const Constraint kPermutationTooLong{"transpose_too_long", ConstraintKind::kShapes,
                                     "`perm` has no more axes than the data", true};
const Constraint kExpandShapes{"expand_shapes", ConstraintKind::kShapes, "data and shape broadcast"};
const Constraint kTileLength{"tile_repeats_length", ConstraintKind::kShapes, "one repeat for each axis", true};
const Constraint kTileRepeats{"tile_repeats_range", ConstraintKind::kDomain, "no repeat is negative"};
const Constraint kTileAxis{"tile_axis_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank"};

/// The element of the data that each element of the result is, where both are small: `source` maps a result's index to
/// the data's.
template <typename Source>
void rearrange(Inference& in, Source source) {
  if (content_of(in, 0) == nullptr || in.failed() || in.result().shape == ShapeId::kUnranked) return;
  const auto target = followed_extents(in.dims(), in.facts().dims_of(in.result().shape));
  if (!target) return;
  const std::vector<std::int64_t> extents = *constant_extents(in.dims(), *in.shape(0));
  const std::vector<std::size_t> strides = strides_of(extents);
  std::vector<std::size_t> indices;
  for_each_index(*target, [&](std::span<const std::int64_t> index) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < extents.size(); ++i)
      at += static_cast<std::size_t>(source(index, i, extents[i])) * strides[i];
    indices.push_back(at);
  });
  select_elements(in, 0, 0, indices);
}

void transpose(Inference& in) {
  in.set_range(0, in.operand(0).range);
  const auto data = in.shape(0);
  const auto perm = in.ints_attribute("perm");
  if (!data) {
    if (perm) in.set_shape(0, unknown_dims(std::min(perm->size(), kMaxRank + 1)));
    return;
  }
  const std::size_t rank = data->size();
  std::vector<std::size_t> from(rank);
  for (std::size_t i = 0; i < rank; ++i) from[i] = rank - 1 - i;
  if (perm) {
    if (perm->size() != rank) {
      in.fail(perm->size() > rank ? kPermutationTooLong : kPermutationLength, {0},
              {"{} has {} axes, {} has rank {}", AttributeName("perm"), perm->size(), OperandRef(0), rank});
      in.set_shape(0, unknown_dims(rank, Unknown::kTainted));
      return;
    }
    std::vector<bool> seen(rank, false);
    for (std::size_t i = 0; i < rank; ++i) {
      const std::int64_t axis = (*perm)[i];
      const bool outside = axis < 0 || axis >= static_cast<std::int64_t>(rank);
      if (outside) {
        in.fail(kPermutationAxes, {0},
                {"axis {} of {} is outside [0, {}) of {}", Axis(axis), AttributeName("perm"), rank, OperandRef(0)});
      } else if (seen[static_cast<std::size_t>(axis)]) {
        in.fail(kPermutationOnce, {0},
                {"{} has axis {} of {} twice", AttributeName("perm"), Axis(axis), OperandRef(0)});
      }
      if (in.failed()) {
        in.set_shape(0, unknown_dims(rank, Unknown::kTainted));
        return;
      }
      seen[static_cast<std::size_t>(axis)] = true;
      from[i] = static_cast<std::size_t>(axis);
    }
  }
  Dims result;
  for (const std::size_t axis : from) result.push_back((*data)[axis]);
  in.set_shape(0, result);
  std::vector<std::size_t> to(rank);
  for (std::size_t i = 0; i < rank; ++i) to[from[i]] = i;
  rearrange(in, [&](std::span<const std::int64_t> index, std::size_t axis, std::int64_t) { return index[to[axis]]; });
}

void expand(Inference& in) {
  in.set_range(0, in.operand(0).range);
  const auto data = in.shape(0);
  bool given = false;
  auto list = integer_list(in, "shape", given);
  if (!list) return;
  DimPool& pool = in.dims();
  for (Dim& extent : *list) {
    if (pool.bounds(extent).hi < 0) {
      in.fail(kExpandShapes, {1}, {"the shape {} asks for the extent {}", OperandRef(1), extent});
      extent = Dim(Unknown::kTainted);
    } else if (pool.bounds_from_two(extent).lo < 0) {
      extent = Dim(Unknown::kDataDependent);
    }
  }
  if (!data) {
    // An unranked operand may have more axes than the shape.
    return;
  }
  Dims result = broadcast(in, *data, *list, 0, 1, kExpandShapes);
  // What is not known may stretch an axis of extent 1 to anything.
  in.set_shape(0, result);
  const auto target = followed_extents(pool, result);
  const auto indices = target && !in.failed() ? broadcast_indices(pool, *data, result) : std::nullopt;
  if (indices) select_elements(in, 0, 0, *indices);
}

/// The whole number in a float operand of one element: how opset 1 gives `tiles` and `axis`.
std::optional<std::int64_t> whole_number(const Inference& in, std::string_view operand) {
  constexpr double kExact = 9007199254740992;  // 2^53: doubles up to it hold every whole number
  const auto values = in.float_constants(operand);
  if (!values || values->size() != 1) return std::nullopt;
  const double value = values->front();
  const bool whole = std::abs(value) <= kExact && value == std::floor(value);
  return whole ? std::optional(static_cast<std::int64_t>(value)) : std::nullopt;
}

void tile(Inference& in) {
  in.set_range(0, in.operand(0).range);
  const auto data = in.shape(0);
  if (!data) return;
  DimPool& pool = in.dims();
  Dims result = copy_dims(*data);
  if (in.call().schema->input_index("tiles") >= 0) {
    // Opset 1: one axis.
    const auto axis = whole_number(in, "axis");
    const auto normalised =
        axis ? normalise_axis(in, *axis, static_cast<int>(data->size()), 0, kTileAxis) : std::nullopt;
    if (!normalised) {
      in.set_shape(0, unknown_dims(data->size(), Unknown::kDataDependent));
      return;
    }
    const auto tiles = whole_number(in, "tiles");
    Dim& extent = result[static_cast<std::size_t>(*normalised)];
    extent = tiles && *tiles >= 0 ? pool.mul(extent, pool.constant(*tiles)) : Dim(Unknown::kDataDependent);
    in.set_shape(0, result);
    return;
  }
  bool given = false;
  const auto repeats = integer_list(in, "repeats", given);
  if (!repeats) {
    in.set_shape(0, unknown_dims(data->size(), Unknown::kDataDependent));
    return;
  }
  if (repeats->size() != data->size()) {
    in.fail(kTileLength, {1, 0},
            {"{} has {} repeats, {} has rank {}", OperandRef(1), repeats->size(), OperandRef(0), data->size()});
    in.set_shape(0, unknown_dims(data->size(), Unknown::kTainted));
    return;
  }
  for (std::size_t i = 0; i < result.size(); ++i) {
    const Bounds bounds = pool.bounds((*repeats)[i]);
    if (bounds.hi < 0) in.fail(kTileRepeats, {1}, {"the repeat {} of axis {} is negative", (*repeats)[i], Axis(i)});
    result[i] = bounds.lo >= 0 || pool.is_constant(result[i], 0) ? pool.mul(result[i], (*repeats)[i])
                                                                 : Dim(Unknown::kDataDependent);
  }
  in.set_shape(0, result);
  rearrange(in, [](std::span<const std::int64_t> index, std::size_t axis, std::int64_t extent) {
    return index[axis] % extent;
  });
}

const RegisterOps kRegisterTranspose{
    OpEntry("Transpose")
        .computes(Opcode::kTranspose)
        .infer(transpose)
        .constraint(kPermutationAxes)
        .constraint(kPermutationOnce)
        .constraint(kPermutationLength)
        .constraint(kPermutationTooLong),
    OpEntry("Expand").computes(Opcode::kExpand).infer(expand).host("shape").constraint(kExpandShapes),
    // Version 1 takes how often and along which axis as two operands; since version 6 onnxruntime's CUDA kernel reads
    // `repeats` on the host (OrtMemTypeCPUInput 1), and both say the same.
    OpEntry("Tile")
        .computes(Opcode::kTile)
        .infer(tile)
        .host("repeats")
        .host("tiles")
        .host("axis")
        .constraint(kTileLength)
        .constraint(kTileRepeats)
        .constraint(kTileAxis),
};

}  // namespace
}  // namespace tensorlint::ops
