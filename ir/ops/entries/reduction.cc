// Reductions over `axes`. Source: ONNX Reduce*, opsets 1, 11, 13, 18, 20 (axes became an operand in 18, in 13 for
// ReduceSum).
#include <algorithm>
#include <cmath>

#include "ir/ops/checks.h"

namespace tensorlint::ops {
namespace {

const Constraint kReduceAxesInRange{"reduce_axes_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank", true};
const Constraint kReduceAxesOnce{"reduce_axes_once", ConstraintKind::kDuplicateAxis, "no axis is reduced twice"};

/// The axes of a reduction, empty for all of them; nullopt where they are not known.
std::optional<std::vector<std::int64_t>> reduced_axes(Inference& in, bool& given) {
  if (const auto attribute = in.ints_attribute("axes")) {
    given = true;
    return std::vector<std::int64_t>(attribute->begin(), attribute->end());
  }
  given = in.call().schema->input_index("axes") >= 0 && in.has("axes");
  if (!given) return std::vector<std::int64_t>{};
  if (!check_list(in, in.index_of("axes"))) return std::nullopt;
  return in.constants("axes");
}

void reduce_shape(Inference& in) {
  const auto data = in.shape("data");
  const bool keepdims = in.int_attribute("keepdims", 1) == 1;  // as onnxruntime and the reference implementation do
  bool given = false;
  const auto axes = reduced_axes(in, given);
  if (!data) {
    // All axes go, however many there are.
    if (axes && axes->empty() && !keepdims && in.int_attribute("noop_with_empty_axes", 0) == 0) in.set_shape(0, {});
    return;
  }
  if (!axes) {
    // Axes are data: with keepdims the rank stays, and without it not even that is known.
    if (keepdims) in.set_shape(0, unknown_dims(data->size(), Unknown::kDataDependent));
    return;
  }
  // An empty list of axes means all of them, or none with noop_with_empty_axes.
  const bool noop = axes->empty() && in.int_attribute("noop_with_empty_axes", 0) != 0;
  const auto reduced =
      distinct_axes(in, *axes, static_cast<int>(data->size()), 0, kReduceAxesInRange, &kReduceAxesOnce);
  if (!reduced) {
    if (keepdims) in.set_shape(0, unknown_dims(data->size(), Unknown::kTainted));
    return;
  }
  Dims result;
  for (std::size_t i = 0; i < data->size(); ++i) {
    const bool is_reduced =
        !noop && (axes->empty() || std::find(reduced->begin(), reduced->end(), static_cast<int>(i)) != reduced->end());
    if (!is_reduced) {
      result.push_back((*data)[i]);
    } else if (keepdims) {
      result.push_back(in.dims().constant(1));
    }
  }
  in.set_shape(0, result);
}

/// No element of the operand is missing: the mean, maximum or minimum lies among the elements.
bool no_empty_axis(Inference& in) {
  const auto data = in.shape("data");
  return data && std::all_of(data->begin(), data->end(), [&](Dim dim) { return in.dims().bounds(dim).lo >= 1; });
}

void reduce_to_hull(Inference& in) {
  reduce_shape(in);
  if (no_empty_axis(in)) in.set_range(0, in.operand("data").range);
}

void reduce_to_mean(Inference& in) {
  reduce_shape(in);
  Range range = in.operand("data").range;
  range.nan = range.nan || (range.lo == -HUGE_VAL && range.hi == HUGE_VAL);  // of infinities of both signs
  if (no_empty_axis(in)) in.set_range(0, range);
}

void reduce_to_nonnegative(Inference& in) {
  reduce_shape(in);
  const bool floats = in.operand("data").dtypes.proves(DTypeSet::floats());
  if (floats) in.set_range(0, {0, HUGE_VAL, true});
}

OpEntry reduction(std::string_view name, InferFunction function) {
  return OpEntry(name)
      .trait(OpTrait::kReduction)
      .host("axes")
      .infer(function)
      .constraint(kReduceAxesInRange)
      .constraint(kReduceAxesOnce);
}

const RegisterOps kRegisterReduction{
    reduction("ReduceSum", reduce_shape).computes(Opcode::kReduceSum),
    reduction("ReduceMean", reduce_to_mean).computes(Opcode::kReduceMean),
    reduction("ReduceMax", reduce_to_hull).computes(Opcode::kReduceMax),
    reduction("ReduceMin", reduce_to_hull).computes(Opcode::kReduceMin),
    reduction("ReduceProd", reduce_shape),
    reduction("ReduceL1", reduce_to_nonnegative).computes(Opcode::kReduceL1),
    reduction("ReduceL2", reduce_to_nonnegative).computes(Opcode::kReduceL2),
    reduction("ReduceLogSum", reduce_shape).computes(Opcode::kReduceLogSum),
    reduction("ReduceLogSumExp", reduce_shape).computes(Opcode::kReduceLogSumExp),
    reduction("ReduceSumSquare", reduce_to_nonnegative).computes(Opcode::kReduceSumSquare),
};

}  // namespace
}  // namespace tensorlint::ops
