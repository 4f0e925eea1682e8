// Normalisations. Source: ONNX BatchNormalization (1 to 15), InstanceNormalization (1, 6, 22), LayerNormalization (17),
// RMSNormalization (23), GroupNormalization (18, 21), LpNormalization (1, 22), LRN (1, 13), MeanVarianceNormalization
// (9, 13).
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "ir/ops/checks.h"

namespace tensorlint::ops {
namespace {

const Constraint kNormRank{"normalization_rank", ConstraintKind::kRank, "the operand has batch and channel axes"};
const Constraint kNormParameter{
    "normalization_parameter", ConstraintKind::kShapes,
    "scale, bias and statistics are 1-d with one element a channel, or have one a position"};
const Constraint kNormScale{"normalization_scale", ConstraintKind::kShapes,
                            "scale and bias stretch to the data's shape"};
const Constraint kNormAxis{"normalization_axis", ConstraintKind::kAxisRange, "-rank <= axis < rank"};
const Constraint kNormVariance{"normalization_variance", ConstraintKind::kDomain, "no variance is negative"};
const Constraint kNormAxisOnce{"normalization_axis_once", ConstraintKind::kDuplicateAxis, "no axis is given twice"};
const Constraint kNormGroups{"normalization_groups", ConstraintKind::kShapes, "num_groups >= 1 divides the channels"};
const Constraint kBatchNormResults{"batch_norm_results", ConstraintKind::kAttribute,
                                   "running statistics are results only with training_mode = 1"};
const Constraint kLrnRange{"lrn_attributes", ConstraintKind::kAttribute,
                           "size is at least 1; onnxruntime takes odd sizes, alpha and beta above 0"};
const Constraint kNormOrder{"lp_norm_order", ConstraintKind::kAttribute, "p is 1 or 2"};

void copy_shape(Inference& in) {
  if (const auto data = in.shape(0)) in.set_shape(0, *data);
}

/// A 1-d operand with one element a channel.
void check_per_channel(Inference& in, int operand, Dim channels, std::string_view what) {
  const auto shape = in.shape(operand);
  if (!shape) return;
  if (shape->size() != 1) {
    in.fail(kNormParameter, {operand},
            {"{} {} has rank {}, it has to have 1 axis", what, OperandRef(operand), shape->size()});
    return;
  }
  same_extent(in, channels, shape->front(), 0, operand, kNormParameter, {"channels and {}", what});
}

void batch_normalization(Inference& in) {
  DimPool& pool = in.dims();
  copy_shape(in);
  const auto data = in.shape(0);
  // Before opset 9, spatial = 0 keeps statistics per position. A 1-d operand has one channel.
  const bool per_channel = in.opset() >= 9 || in.int_attribute("spatial", 1) != 0;
  Dim channels(Unknown::kNotTracked);
  if (data && data->size() == 1) channels = pool.constant(1);
  if (data && data->size() >= 2) channels = (*data)[1];
  if (data && data->empty())
    in.fail(kNormRank, {0}, {"{} is a scalar, BatchNormalization needs at least 1 axis", OperandRef(0)});
  static constexpr std::array<std::string_view, 5> kNames = {"", "scale", "bias", "mean", "variance"};
  if (per_channel)
    for (std::size_t i = 1; i < kNames.size(); ++i) check_per_channel(in, static_cast<int>(i), channels, kNames[i]);
  // Opsets 1 and 6 say that the parameters are lists even then.
  if (!per_channel && in.opset() >= 7 && data && data->size() >= 2)
    for (std::size_t i = 1; i < kNames.size(); ++i)
      check_shape(in, static_cast<int>(i), data->subspan(1), kNormParameter, kNames[i], 0);
  // In training the operand is only mixed into a variance. Epsilon makes up for what rounding leaves below 0.
  if (const auto variances = in.has(4) ? in.float_constants(in.opset() >= 14 ? "input_var" : "var") : std::nullopt;
      variances && !variances->empty() && in.int_attribute("training_mode", 0) == 0 && in.result_count() == 1)
    if (const double least = *std::ranges::min_element(*variances);
        std::isfinite(least) && least < -in.float_attribute("epsilon", 1e-5F))
      in.fail(kNormVariance, {4},
              {"{} has the variance {}, of which BatchNormalization takes the root", OperandRef(4), bound_text(least)});
  for (std::size_t i = 1; i < in.result_count(); ++i) {
    if (per_channel) {
      if (channels.is_unknown() && in.shape(1) && in.shape(1)->size() == 1) channels = in.shape(1)->front();
      in.set_shape(static_cast<int>(i), std::array{channels});
    } else if (const auto scale = in.shape(1)) {
      in.set_shape(static_cast<int>(i), *scale);
    }
  }
  const bool trains = in.int_attribute("training_mode", 0) != 0;
  if (in.opset() >= 14 && trains && in.result_count() != 3)
    in.fail(kBatchNormResults, {},
            {"BatchNormalization with training_mode = 1 gives 3 results, {} asked for", in.result_count()});
  if (in.opset() >= 14 && !trains && in.result_count() > 1)
    in.fail(kBatchNormResults, {},
            {"BatchNormalization with training_mode = 0 gives 1 result, {} asked for", in.result_count()});
}

void instance_normalization(Inference& in) {
  copy_shape(in);
  const auto data = in.shape(0);
  if (!data) return;
  if (data->size() < 3) {
    in.fail(kNormRank, {0}, {"{} has rank {}, InstanceNormalization needs at least 3", OperandRef(0), data->size()});
    return;
  }
  check_per_channel(in, 1, (*data)[1], "scale");
  check_per_channel(in, 2, (*data)[1], "bias");
}

/// The first normalised axis, or a violation.
std::optional<int> first_axis(Inference& in, std::span<const Dim> data) {
  return normalise_axis(in, in.int_attribute("axis", -1), static_cast<int>(data.size()), 0, kNormAxis);
}

void layer_normalization(Inference& in) {
  copy_shape(in);
  // Mean and inverse deviation are computed in stash_type.
  const std::int64_t stash = in.int_attribute("stash_type", 1);
  if (is_known_dtype(stash))
    for (std::size_t i = 1; i < in.result_count(); ++i) in.set_dtype(static_cast<int>(i), static_cast<DType>(stash));
  const auto data = in.shape(0);
  if (!data) return;
  const auto axis = first_axis(in, *data);
  if (!axis) return;
  for (const int operand : {1, 2})
    if (const auto shape = in.shape(operand)) check_unidirectional(in, *shape, *data, operand, 0, kNormScale);
  Dims statistics(data->size(), in.dims().constant(1));
  std::copy_n(data->begin(), *axis, statistics.begin());
  for (std::size_t i = 1; i < in.result_count(); ++i) in.set_shape(static_cast<int>(i), statistics);
}

void rms_normalization(Inference& in) {
  copy_shape(in);
  const auto data = in.shape(0);
  if (!data || !first_axis(in, *data)) return;
  if (const auto scale = in.shape(1)) check_unidirectional(in, *scale, *data, 1, 0, kNormScale);
}

void group_normalization(Inference& in) {
  copy_shape(in);
  const std::int64_t groups = in.int_attribute("num_groups", 1);
  if (groups < 1) {
    in.fail(kNormGroups, {},
            {"{} of GroupNormalization is {}, at least 1 needed", AttributeName("num_groups"), groups});
    return;
  }
  const auto data = in.shape(0);
  if (!data) return;
  if (data->size() < 2) {
    in.fail(kNormRank, {0}, {"{} has rank {}, GroupNormalization needs at least 2", OperandRef(0), data->size()});
    return;
  }
  const auto channels = in.dims().as_constant((*data)[1]);
  if (channels && *channels % groups != 0)
    in.fail(kNormGroups, {0}, {"{} channels of {} are not divisible into {} groups", *channels, OperandRef(0), groups});
  if (in.failed()) return;
  // Opset 18, which ONNX deprecates, scales groups.
  const Dim parameters = in.opset() < 21 ? in.dims().constant(groups) : (*data)[1];
  for (const auto& [operand, what] : {std::pair(1, "scale"), std::pair(2, "bias")}) {
    const auto shape = in.shape(operand);
    const bool is_one = shape && std::ranges::all_of(*shape, [&](Dim dim) { return in.dims().as_constant(dim) == 1; });
    if (!is_one || in.dims().as_constant(parameters) == 1)
      check_per_channel(in, operand, parameters, what);
    else
      in.fails_somewhere(kNormParameter, {operand},
                         {"{} {} has one element, {} needed", what, OperandRef(operand), parameters},
                         {"the engine is not onnxruntime, which repeats it"});
  }
}

void lp_normalization(Inference& in) {
  copy_shape(in);
  const std::int64_t order = in.int_attribute("p", 2);
  if (order != 1 && order != 2)
    in.fail(kNormOrder, {}, {"{} of LpNormalization is {}, it has to be 1 or 2", AttributeName("p"), order});
  if (const auto data = in.shape(0)) static_cast<void>(first_axis(in, *data));
}

void lrn(Inference& in) {
  copy_shape(in);
  const auto data = in.shape(0);
  if (data && data->size() < 2)
    in.fail(kNormRank, {0}, {"{} has rank {}, LRN needs at least 2", OperandRef(0), data->size()});
  const std::int64_t size = in.int_attribute("size", 1);
  if (size < 1) {
    in.fail(kLrnRange, {}, {"{} of LRN is {}, at least 1 needed", AttributeName("size"), size});
  } else if (size % 2 == 0) {
    in.fails_somewhere(kLrnRange, {}, {"{} of LRN is {}, an even number of channels", AttributeName("size"), size},
                       {"the engine is onnxruntime, which takes odd sizes only"});
  }
  for (const auto& [name, fallback] : {std::pair("alpha", 1e-4), std::pair("beta", 0.75)}) {
    const double value = in.float_attribute(name, fallback);
    if (value > 0) continue;
    in.fails_somewhere(kLrnRange, {}, {"{} of LRN is {}, which is not above 0", AttributeName(name), value},
                       {"the engine is onnxruntime, which takes positive factors only"});
    break;
  }
}

void mean_variance_normalization(Inference& in) {
  copy_shape(in);
  const auto data = in.shape(0);
  if (!data) return;
  static constexpr std::array<std::int64_t, 3> kDefaultAxes = {0, 2, 3};
  const auto given = in.ints_attribute("axes");
  const auto rank = static_cast<std::int64_t>(data->size());
  std::map<std::int64_t, std::int64_t> written;  // by axis from the front
  for (const std::int64_t axis : given ? *given : std::span<const std::int64_t>(kDefaultAxes)) {
    if (axis < -rank || axis >= rank) {
      in.fails_somewhere(kNormAxis, {0}, axis_outside(axis, static_cast<int>(rank), 0),
                         {"the engine refuses axes out of range, as numpy does (onnxruntime leaves them out)"});
      return;
    }
    const auto [before, is_new] = written.try_emplace(axis < 0 ? axis + rank : axis, axis);
    if (!is_new) {
      in.fails_somewhere(kNormAxisOnce, {0}, repeated_axis(axis, before->second, 0),
                         {"the engine refuses repeated axes, as numpy does (onnxruntime computes something)"});
      return;
    }
  }
}

const RegisterOps kRegisterNormalization{
    OpEntry("BatchNormalization")
        .computes(Opcode::kNormalize)
        .infer(batch_normalization)
        .constraint(kNormRank)
        .constraint(kNormParameter)
        .constraint(kNormVariance)
        .constraint(kBatchNormResults),
    OpEntry("InstanceNormalization")
        .computes(Opcode::kNormalize)
        .infer(instance_normalization)
        .constraint(kNormRank)
        .constraint(kNormParameter),
    OpEntry("LayerNormalization")
        .computes(Opcode::kNormalize)
        .infer(layer_normalization)
        .constraint(kNormAxis)
        .constraint(kNormScale),
    OpEntry("RMSNormalization")
        .computes(Opcode::kNormalize)
        .infer(rms_normalization)
        .constraint(kNormAxis)
        .constraint(kNormScale),
    OpEntry("GroupNormalization")
        .computes(Opcode::kNormalize)
        .infer(group_normalization)
        .constraint(kNormRank)
        .constraint(kNormGroups)
        .constraint(kNormParameter),
    OpEntry("LpNormalization").infer(lp_normalization).constraint(kNormAxis).constraint(kNormOrder),
    OpEntry("LRN").infer(lrn).constraint(kNormRank).constraint(kLrnRange),
    OpEntry("MeanVarianceNormalization")
        .infer(mean_variance_normalization)
        .constraint(kNormAxis)
        .constraint(kNormAxisOnce),
};

}  // namespace
}  // namespace tensorlint::ops
