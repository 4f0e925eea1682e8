// Source: ONNX Resize (10, 11, 13, 18, 19), Upsample (1, 7, 9, 10).
// floor(extent * scale) is computed in float32 by some runtimes and in float64 by others: claimed only where both
// agree.
#include <algorithm>
#include <cmath>

#include "ir/ops/attributes.h"
#include "ir/ops/checks.h"

namespace tensorlint::ops {
namespace {

const Constraint kResizeAxes{"resize_axes_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank"};
const Constraint kResizeAxesOnce{"resize_axes_once", ConstraintKind::kDuplicateAxis, "no axis is resized twice"};
const Constraint kResizeLength{"resize_length", ConstraintKind::kShapes, "scales or sizes have one entry an axis",
                               true};
const Constraint kResizeTarget{"resize_target", ConstraintKind::kAttribute, "exactly one of scales and sizes is given"};
const Constraint kResizeScale{"resize_scale", ConstraintKind::kDomain,
                              "scales are finite and above 0, those of Upsample at least 1; sizes are not negative"};
const Constraint kResizeMode{"resize_mode", ConstraintKind::kAttribute,
                             "mode, coordinate_transformation_mode and nearest_mode are known; antialias is not for "
                             "nearest"};
const Constraint kResizePolicy{"resize_policy", ConstraintKind::kAttribute,
                               "keep_aspect_ratio_policy is stretch, not_larger or not_smaller"};

/// A double that is an integer int64 can hold.
std::optional<std::int64_t> to_integer(double value) {
  if (!(std::fabs(value) < 9007199254740992.0)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

/// floor(extent * scale) where float32 and float64 agree.
Dim scaled(DimPool& pool, Dim extent, double scale) {
  if (scale == 1) return extent;
  if (!(scale > 0) || !std::isfinite(scale)) return Dim(Unknown::kNotTracked);
  if (const auto constant = pool.as_constant(extent)) {
    const auto wide = to_integer(std::floor(static_cast<double>(*constant) * scale));
    const auto narrow =
        to_integer(std::floor(static_cast<double>(static_cast<float>(*constant) * static_cast<float>(scale))));
    return wide && wide == narrow ? pool.constant(*wide) : Dim(Unknown::kNotTracked);
  }
  // Products with few bits are exact for every extent below 2^14 or so; larger ones do not occur as images.
  for (std::int64_t divisor = 1; divisor <= 1024; divisor *= 2) {
    const double factor = scale * static_cast<double>(divisor);
    if (factor != std::floor(factor) || factor > 1024) continue;
    return pool.floor_div(pool.mul(extent, pool.constant(static_cast<std::int64_t>(factor))), pool.constant(divisor));
  }
  return Dim(Unknown::kNotTracked);
}

bool check_scales(Inference& in, int operand, std::span<const double> scales, double lowest, bool lowest_allowed) {
  for (const double scale : scales) {
    if (std::isfinite(scale) && (scale > lowest || (lowest_allowed && scale == lowest))) continue;
    in.fail(kResizeScale, operand >= 0 ? std::vector<int>{operand} : std::vector<int>{},
            {"scale {} of {}, it has to be finite and {} {}", scale, in.call().name,
             lowest_allowed ? "at least" : "above", lowest});
    return false;
  }
  return true;
}

bool check_sizes(Inference& in, int operand, std::span<const Dim> sizes) {
  for (const Dim size : sizes) {
    if (in.dims().bounds(size).hi >= 0) continue;
    in.fail(kResizeScale, {operand}, {"size {} of Resize, it has to be at least 0", size});
    return false;
  }
  return true;
}

/// Number of entries that an operand holds; 0 is an operand that does not count. nullopt where it is not known.
std::optional<std::int64_t> entries(const Inference& in, int operand) {
  if (!in.has(operand)) return 0;
  const auto shape = in.shape(operand);
  if (!shape || shape->size() != 1) return std::nullopt;
  return in.call().facts->dims().as_constant(shape->front());
}

/// Extents under a policy that keeps the aspect ratio: one scale for all axes, then rounding half up.
void keep_ratio(Inference& in, std::span<const Dim> data, const std::vector<int>& axes, std::span<const Dim> sizes,
                bool larger, Dims& result) {
  DimPool& pool = in.dims();
  struct Ratio {
    std::int64_t size, extent;
  };
  std::optional<Ratio> best;
  for (std::size_t i = 0; i < axes.size(); ++i)
    result[static_cast<std::size_t>(axes[i])] = Dim(Unknown::kDataDependent);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto size = pool.as_constant(sizes[i]), extent = pool.as_constant(data[static_cast<std::size_t>(axes[i])]);
    // Cross multiplication below stays inside int64 for extents up to 2^31.
    if (!size || !extent || *size < 0 || *extent < 1 || *size > INT32_MAX || *extent > INT32_MAX) return;
    const bool better_ratio =
        !best || (larger ? *size * best->extent > best->size * *extent : *size * best->extent < best->size * *extent);
    if (better_ratio) best = Ratio{*size, *extent};
  }
  if (!best) return;
  for (const int axis : axes) {
    const auto extent = *pool.as_constant(data[static_cast<std::size_t>(axis)]);
    const std::int64_t product = best->size * extent;
    const std::int64_t exact = (2 * product + best->extent) / (2 * best->extent);
    const double wide =
        static_cast<double>(best->size) / static_cast<double>(best->extent) * static_cast<double>(extent) + 0.5;
    const float narrow =
        std::round(static_cast<float>(best->size) / static_cast<float>(best->extent) * static_cast<float>(extent));
    if (static_cast<std::int64_t>(wide) == exact && static_cast<std::int64_t>(narrow) == exact)
      result[static_cast<std::size_t>(axis)] = pool.constant(exact);
  }
}

void resize(Inference& in) {
  DimPool& pool = in.dims();
  const auto data = in.shape(0);
  const int scales_at = in.index_of("scales"), sizes_at = in.call().schema->input_index("sizes");
  const std::string_view mode = choice_attribute(in, "mode", "nearest", {"nearest", "linear", "cubic"}, kResizeMode);
  choice_attribute(in, "coordinate_transformation_mode", "half_pixel",
                   {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                    "tf_crop_and_resize", "tf_half_pixel_for_nn"},
                   kResizeMode);
  if (mode == "nearest")
    choice_attribute(in, "nearest_mode", "round_prefer_floor",
                     {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}, kResizeMode);
  if (mode == "nearest" && in.int_attribute("antialias", 0) != 0)
    in.fail(kResizeMode, {},
            {"{} of Resize is set, mode `nearest` has no filter to apply it to", AttributeName("antialias")});
  for (const int operand : {scales_at, sizes_at})
    if (in.has(operand) && !check_list(in, operand)) return;
  const auto scale_count = entries(in, scales_at), size_count = entries(in, sizes_at);
  if (in.opset() >= 11 && scale_count && size_count && (*scale_count == 0) == (*size_count == 0)) {
    in.fail(kResizeTarget, {},
            {"Resize has {}", *scale_count == 0 ? "neither scales nor sizes" : "both scales and sizes"});
    if (data) in.set_shape(0, unknown_dims(data->size(), Unknown::kTainted));
    return;
  }
  if (!data) return;
  std::vector<int> axes;
  if (const auto given = in.ints_attribute("axes")) {
    const auto normalised = normalise_axes(in, *given, static_cast<int>(data->size()), 0, kResizeAxes, kResizeAxesOnce);
    if (!normalised) return in.set_shape(0, unknown_dims(data->size(), Unknown::kTainted));
    axes = *normalised;
  } else {
    for (std::size_t i = 0; i < data->size(); ++i) axes.push_back(static_cast<int>(i));
  }
  Dims result = copy_dims(*data);
  for (const int axis : axes) result[static_cast<std::size_t>(axis)] = Dim(Unknown::kDataDependent);

  const auto fits = [&](int operand, std::optional<std::int64_t> count) {
    if (!count || *count == static_cast<std::int64_t>(axes.size())) return true;
    in.fail(kResizeLength, {operand, 0},
            {"{} has {} entries for {} axes of {}", OperandRef(operand), *count, axes.size(), OperandRef(0)});
    return false;
  };
  const bool by_sizes = in.has(sizes_at) && size_count != 0;
  if (by_sizes) {
    const auto sizes = in.elements(sizes_at);
    const std::string_view policy = in.string_attribute("keep_aspect_ratio_policy", "stretch");
    if (fits(sizes_at, size_count) &&
        check_choice(in, "keep_aspect_ratio_policy", policy, {"stretch", "not_larger", "not_smaller"}, kResizePolicy) &&
        sizes && sizes->size() == axes.size() && check_sizes(in, sizes_at, *sizes)) {
      if (policy == "stretch") {
        for (std::size_t i = 0; i < axes.size(); ++i) result[static_cast<std::size_t>(axes[i])] = (*sizes)[i];
      } else {
        keep_ratio(in, *data, axes, *sizes, policy == "not_smaller", result);
      }
    }
  } else if (fits(scales_at, scale_count)) {
    const auto scales = in.float_constants("scales");
    // The region is a factor of the extent for some runtimes only.
    const bool crops = in.string_attribute("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize";
    if (scales && scales->size() == axes.size() && check_scales(in, scales_at, *scales, 0, false) && !crops)
      for (std::size_t i = 0; i < axes.size(); ++i)
        result[static_cast<std::size_t>(axes[i])] =
            scaled(pool, (*data)[static_cast<std::size_t>(axes[i])], (*scales)[i]);
  }
  in.set_shape(0, result);
}

void upsample(Inference& in) {
  choice_attribute(in, "mode", "nearest", {"nearest", "linear", "bilinear"}, kResizeMode);
  const auto data = in.shape(0);
  std::optional<std::vector<double>> scales;
  int operand = -1;
  if (in.opset() < 7) {
    scales = {1, 1, in.float_attribute("height_scale", 1), in.float_attribute("width_scale", 1)};
  } else if (const Attribute* attribute = in.attribute("scales")) {
    scales.emplace(attribute->floats.begin(), attribute->floats.end());
  } else if (in.call().schema->input_index("scales") >= 0) {
    operand = in.index_of("scales");
    scales = in.float_constants("scales");
  }
  if (!data) return;
  Dims result = unknown_dims(data->size(), Unknown::kDataDependent);
  const auto count = scales         ? std::optional(static_cast<std::int64_t>(scales->size()))
                     : operand >= 0 ? entries(in, operand)
                                    : std::nullopt;
  if (count && *count != static_cast<std::int64_t>(data->size())) {
    in.fail(kResizeLength, {0}, {"{} scales for {} axes of {}", *count, data->size(), OperandRef(0)});
  } else if (scales && check_scales(in, operand, *scales, 1, true)) {
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = scaled(in.dims(), (*data)[i], (*scales)[i]);
  }
  in.set_shape(0, result);
}

const RegisterOps kRegisterResize{
    // onnxruntime's CUDA kernel reads all three on the host (OrtMemTypeCPUInput 1, 2 and 3 since version 11).
    OpEntry("Resize")
        .host("roi")
        .host("scales")
        .host("sizes")
        .infer(resize)
        .constraint(kResizeAxes)
        .constraint(kResizeAxesOnce)
        .constraint(kResizeLength)
        .constraint(kResizeTarget)
        .constraint(kResizeScale)
        .constraint(kResizePolicy)
        .constraint(kResizeMode),
    OpEntry("Upsample")
        .host("scales")
        .infer(upsample)
        .constraint(kResizeMode)
        .constraint(kResizeLength)
        .constraint(kResizeScale),
};

}  // namespace
}  // namespace tensorlint::ops
