// Elements read and written at indices that are tensors. Source: ONNX GatherElements (opsets 11, 13), GatherND (11, 12
// with batch_dims, 13), Scatter (9), ScatterElements (11-18), ScatterND (11-18). Indices count from the back where
// negative.
#include <algorithm>

#include "ir/ops/attributes.h"
#include "ir/ops/indexing.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

const Constraint kElementsAxis{"gather_elements_axis_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank"};
const Constraint kElementsRank{"gather_elements_ranks", ConstraintKind::kRank,
                               "data and indices have the same rank, at least 1"};
const Constraint kElementsExtents{"gather_elements_extents", ConstraintKind::kShapes,
                                  "indices are no longer than the data on any other axis"};
const Constraint kElementsIndex{"gather_elements_index_in_range", ConstraintKind::kIndexRange,
                                "-extent <= index < extent"};
const Constraint kTuplesBatch{"gather_nd_batch_dims", ConstraintKind::kAxisRange,
                              "0 <= batch_dims < the rank of data and of indices"};
const Constraint kTuplesShapes{
    "gather_nd_shapes", ConstraintKind::kShapes,
    "batch extents are equal and an index has at least 1 and at most as many parts as the data has other axes", true};
const Constraint kTuplesIndex{"gather_nd_index_in_range", ConstraintKind::kIndexRange, "-extent <= index < extent"};
const Constraint kScatterAxis{"scatter_axis_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank"};
const Constraint kScatterShapes{"scatter_shapes", ConstraintKind::kShapes,
                                "indices and updates have one shape, of the data's rank and nowhere longer"};
const Constraint kScatterIndex{"scatter_index_in_range", ConstraintKind::kIndexRange, "-extent <= index < extent"};
const Constraint kScatterReduction{"scatter_reduction", ConstraintKind::kAttribute,
                                   "`reduction` is none, add, mul, max or min"};
const Constraint kScatterTuplesShapes{"scatter_nd_shapes", ConstraintKind::kShapes,
                                      "updates have the shape that indices and data give"};
const Constraint kScatterTuplesIndex{"scatter_nd_index_in_range", ConstraintKind::kIndexRange,
                                     "-extent <= index < extent"};

Message both_shapes(Inference& in, int a, int b) {
  return {"{} of shape {} and {} of shape {}", OperandRef(a), *in.shape(a), OperandRef(b), *in.shape(b)};
}

/// Fails where the indices have another rank than the data, or more elements along an axis other than the indexed one.
void check_alike(Inference& in, const Constraint& ranks, const Constraint& extents, std::span<const Dim> data,
                 std::span<const Dim> indices, int axis) {
  if (data.size() != indices.size()) {
    in.fail(ranks, {1, 0}, {"{} have different ranks", both_shapes(in, 0, 1)});
    return;
  }
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (static_cast<int>(i) == axis || in.dims().bounds(in.dims().sub(indices[i], data[i])).lo <= 0) continue;
    in.fail(extents, {1, 0}, {"{}: the indices are longer at axis {}", both_shapes(in, 0, 1), Axis(i)});
    return;
  }
}

void gather_elements(Inference& in) {
  in.set_range(0, in.operand(0).range);
  const auto data = in.shape(0), indices = in.shape(1);
  if (indices) in.set_shape(0, *indices);
  if (!data) return;
  if (data->empty()) {
    in.fail(kElementsRank, {0}, {"{} is a scalar, GatherElements needs an axis", OperandRef(0)});
    return;
  }
  const auto axis = normalise_axis(in, in.int_attribute("axis", 0), static_cast<int>(data->size()), 0, kElementsAxis);
  if (!axis) return;
  if (indices) check_alike(in, kElementsRank, kElementsExtents, *data, *indices, *axis);
  if (!in.failed()) check_indices(in, kElementsIndex, 1, (*data)[static_cast<std::size_t>(*axis)], 0, *axis);
}

/// Number of parts of an index tuple: the last extent of the indices.
std::optional<std::size_t> tuple_length(Inference& in, std::span<const Dim> indices) {
  const auto length = indices.empty() ? std::nullopt : in.dims().as_constant(indices.back());
  return length && *length >= 0 && *length <= static_cast<std::int64_t>(kMaxRank)
             ? std::optional(static_cast<std::size_t>(*length))
             : std::nullopt;
}

/// check_indices for tuples of indices: part i of each belongs to axis `first` + i of the data.
void check_tuples(Inference& in, const Constraint& constraint, std::span<const Dim> data, std::size_t first,
                  std::size_t length) {
  DimPool& pool = in.dims();
  const auto elements = in.elements(1);
  if (length == 0) return;
  if (!elements) {
    // One range holds for all parts.
    for (std::size_t part = 0; part < length && !in.failed(); ++part)
      check_indices(in, constraint, 1, data[first + part], 0, static_cast<int>(first + part));
    return;
  }
  for (std::size_t i = 0; i < elements->size(); ++i) {
    const std::size_t axis = first + i % length;
    const Dim index = (*elements)[i], extent = data[axis];
    if (index.is_unknown() || extent.is_unknown()) continue;
    const bool above = pool.bounds(pool.sub(index, extent)).lo >= 0,
               below = pool.bounds(pool.add(index, extent)).hi < 0;
    if (!above && !below) continue;
    in.fail(constraint, {1, 0},
            {"index {} of {} is {}", Index(index), OperandRef(1), outside_of_axis(in, extent, 0, axis)});
    return;
  }
}

void gather_nd(Inference& in) {
  in.set_range(0, in.operand(0).range);
  const auto data = in.shape(0), indices = in.shape(1);
  const std::int64_t batch = in.int_attribute("batch_dims", 0);
  if (!indices || !data) return;
  const std::size_t rank = std::min(data->size(), indices->size());
  if (batch < 0 || batch >= static_cast<std::int64_t>(rank)) {
    in.fail(kTuplesBatch, {0, 1}, {"batch_dims {} outside [0, {}) for {}", batch, rank, both_shapes(in, 0, 1)});
    return;
  }
  const auto first = static_cast<std::size_t>(batch);
  const auto length = tuple_length(in, *indices);
  if (!length) return;
  if (*length == 0)
    in.fails_somewhere(kTuplesShapes, {1, 0},
                       {"{}: an index has 0 parts for {} axes", both_shapes(in, 0, 1), data->size() - first},
                       {"the engine refuses empty indices, as numpy does (onnxruntime takes all of the data)"});
  if (first + *length > data->size()) {
    in.fail(kTuplesShapes, {1, 0},
            {"{}: an index has {} parts for {} axes", both_shapes(in, 0, 1), *length, data->size() - first});
    return;
  }
  Dims result = copy_dims(indices->first(indices->size() - 1));
  for (std::size_t i = 0; i < first && !in.failed(); ++i)
    result[i] = same_extent(in, (*data)[i], result[i], 0, 1, kTuplesShapes,
                            {"data and indices differ at batch axis {}", Axis(i)});
  result.insert(result.end(), data->begin() + static_cast<std::ptrdiff_t>(first + *length), data->end());
  in.set_shape(0, result);
  if (!in.failed()) check_tuples(in, kTuplesIndex, *data, first, *length);
}

void scatter_range(Inference& in) {
  const std::string_view reduction =
      choice_attribute(in, "reduction", "none", {"none", "add", "mul", "max", "min"}, kScatterReduction,
                       {"the engine holds to the specification (onnxruntime and numpy reduce nothing then)"});
  if (reduction == "none" || reduction == "max" || reduction == "min")
    in.set_range(0, join(in.operand(0).range, in.operand(2).range));
}

void scatter_elements(Inference& in) {
  scatter_range(in);
  const auto data = in.shape(0), indices = in.shape(1), updates = in.shape(2);
  if (!data) return;
  in.set_shape(0, *data);
  if (indices && updates) {
    bool same = indices->size() == updates->size();
    for (std::size_t i = 0; same && i < indices->size(); ++i)
      same = !in.dims().never_equal((*indices)[i], (*updates)[i]);
    if (!same) in.fail(kScatterShapes, {2, 1}, {"{} have to be of one shape", both_shapes(in, 1, 2)});
  }
  const auto axis = normalise_axis(in, in.int_attribute("axis", 0), static_cast<int>(data->size()), 0, kScatterAxis);
  if (!axis || in.failed()) return;
  if (indices) check_alike(in, kScatterShapes, kScatterShapes, *data, *indices, *axis);
  if (!in.failed()) check_indices(in, kScatterIndex, 1, (*data)[static_cast<std::size_t>(*axis)], 0, *axis);
}

void scatter_nd(Inference& in) {
  scatter_range(in);
  const auto data = in.shape(0), indices = in.shape(1), updates = in.shape(2);
  if (!data) return;
  in.set_shape(0, *data);
  if (!indices) return;
  if (indices->empty() || data->empty()) {
    in.fail(kScatterTuplesShapes, {1, 0}, {"{}: neither may be a scalar", both_shapes(in, 0, 1)});
    return;
  }
  const auto length = tuple_length(in, *indices);
  if (!length) return;
  if (*length > data->size()) {
    in.fail(kScatterTuplesShapes, {1, 0},
            {"{}: an index has {} parts for {} axes", both_shapes(in, 0, 1), *length, data->size()});
    return;
  }
  if (updates) {
    Dims wanted = copy_dims(indices->first(indices->size() - 1));
    wanted.insert(wanted.end(), data->begin() + static_cast<std::ptrdiff_t>(*length), data->end());
    bool same = wanted.size() == updates->size();
    for (std::size_t i = 0; same && i < wanted.size(); ++i) same = !in.dims().never_equal(wanted[i], (*updates)[i]);
    if (!same) {
      in.fail(kScatterTuplesShapes, {2, 1, 0},
              {"{} has shape {}, indices {} of shape {} into {} of shape {} need {}", OperandRef(2), *updates,
               OperandRef(1), *indices, OperandRef(0), *data, wanted});
    }
  }
  if (!in.failed()) check_tuples(in, kScatterTuplesIndex, *data, 0, *length);
}

OpEntry scatter(std::string_view name) {
  return OpEntry(name)
      .index("indices")
      .infer(scatter_elements)
      .constraint(kScatterAxis)
      .constraint(kScatterShapes)
      .constraint(kScatterIndex)
      .constraint(kScatterReduction);
}

const RegisterOps kRegisterScatter{
    OpEntry("GatherElements")
        .computes(Opcode::kGatherElements)
        .index("indices")
        .infer(gather_elements)
        .constraint(kElementsAxis)
        .constraint(kElementsRank)
        .constraint(kElementsExtents)
        .constraint(kElementsIndex),
    OpEntry("GatherND")
        .computes(Opcode::kGatherND)
        .infer(gather_nd)
        .index("indices")
        .constraint(kTuplesBatch)
        .constraint(kTuplesShapes)
        .constraint(kTuplesIndex),
    scatter("Scatter"),
    scatter("ScatterElements"),
    OpEntry("ScatterND")
        .index("indices")
        .infer(scatter_nd)
        .constraint(kScatterTuplesShapes)
        .constraint(kScatterTuplesIndex)
        .constraint(kScatterReduction),
};

}  // namespace
}  // namespace tensorlint::ops
