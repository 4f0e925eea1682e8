// Source: ONNX Resize (opsets 10, 11, 13, 18 with antialias, axes and policies, 19 with half_pixel_symmetric), Upsample
// (1, 7, 9). Interpolation is separable: one axis after the other, in float64.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

#include "runtime/interpreter/axes.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

enum class Mode { kNearest, kLinear, kCubic };

/// How one axis is resized.
struct ResizedAxis {
  std::size_t axis = 0;
  std::int64_t extent = 0, target = 0;
  double scale = 1;
  double length = 1;          ///< of the result, before it is rounded to a whole number
  double begin = 0, end = 1;  ///< of the region, as parts of the extent
};

/// What the attributes say, with the defaults of the version.
struct Method {
  Mode mode = Mode::kNearest;
  std::string_view transformation = "half_pixel", rounding = "round_prefer_floor";
  bool antialias = false, exclude_outside = false;
  double cubic_coefficient = -0.75, extrapolation = 0;
};

Mode mode_of(std::string_view mode) {
  if (mode == "cubic") return Mode::kCubic;
  return mode == "linear" || mode == "bilinear" ? Mode::kLinear : Mode::kNearest;
}

/// The position in the data of position `at` of the result.
double original(const ResizedAxis& axis, std::string_view transformation, double at) {
  const auto last = static_cast<double>(axis.extent) - 1;
  if (transformation == "align_corners") return axis.length == 1 ? 0 : at * last / (axis.length - 1);
  if (transformation == "asymmetric") return at / axis.scale;
  if (transformation == "tf_crop_and_resize") {
    const double width = axis.end - axis.begin;
    return axis.begin * last + (axis.length == 1 ? width * last / 2 : at * width * last / (axis.length - 1));
  }
  if (transformation == "tf_half_pixel_for_nn") return (at + 0.5) / axis.scale;
  if (transformation == "pytorch_half_pixel" && axis.length == 1) return -0.5;
  const double centered = (at + 0.5) / axis.scale - 0.5;
  if (transformation != "half_pixel_symmetric") return centered;
  return static_cast<double>(axis.extent) / 2 * (1 - static_cast<double>(axis.target) / axis.length) + centered;
}

/// Positions and weights that each position of the result is the sum of.
struct Taps {
  explicit Taps(Memory& memory)
      : positions(memory.resource()), weights(memory.resource()), outside(memory.resource()) {}
  std::size_t count = 1;
  List<std::int64_t> positions;  ///< `count` for each position of the result
  List<double> weights;
  List<char> outside;  ///< of the region: the extrapolation value instead; none: of no region
};

std::int64_t nearest(double x, double scale, std::string_view rounding) {
  if (rounding == "outward") rounding = scale < 1 ? "ceil" : "floor";
  const double low = std::floor(x), rest = x - low;
  const auto at = static_cast<std::int64_t>(low);
  if (rest == 0 || rounding == "floor") return at;
  if (rounding == "ceil") return at + 1;
  if (rounding == "round_prefer_ceil") return rest < 0.5 ? at : at + 1;
  return rest <= 0.5 ? at : at + 1;
}

/// Keys' cubic convolution kernel at distance `x`.
double cubic(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// Weights around a position whose left neighbour lies `ratio` in (0, 1] before it. `shrink`: below 1 where the kernel
/// is stretched against aliasing. The first weight belongs to the left neighbour + `first`.
void set_kernel(std::span<double> weights, const Method& method, double ratio, double shrink, std::int64_t first) {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double distance = (static_cast<double>(first + static_cast<std::int64_t>(i)) - ratio) * shrink;
    weights[i] = method.mode == Mode::kCubic ? cubic(distance, method.cubic_coefficient)
                                             : std::clamp(1 - std::fabs(distance), 0.0, 1.0);
    sum += weights[i];
  }
  if (method.antialias)
    for (double& weight : weights) weight /= sum;
}

/// Weights of neighbours that do not exist go to the others.
void leave_out(std::span<double> weights, std::int64_t first, std::int64_t extent) {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::int64_t at = first + static_cast<std::int64_t>(i);
    if (at < 0 || at >= extent) weights[i] = 0;
    sum += weights[i];
  }
  if (sum != 0)
    for (double& weight : weights) weight /= sum;
}

/// Along one axis: enough for what regions of the data need, and a multiple of it. Regions may reach far outside.
double most_taps(const ResizedAxis& axis) {
  return 4096 + 64 * (static_cast<double>(axis.extent) + static_cast<double>(axis.target));
}

/// `for_amplitude`: weights as magnitudes, with what engines lose that compute positions in float32, which is up to
/// three roundoffs of the position times the slope of the kernel, below 1.5; bounds are at least 18 roundoffs of these.
Taps taps_of(const ResizedAxis& axis, const Method& method, bool for_amplitude, Memory& memory) {
  Taps taps(memory);
  const double shrink = method.antialias ? std::min(axis.scale, 1.0) : 1.0;
  const double radius = method.mode == Mode::kCubic ? 2 : 1;
  if (!(radius / shrink * static_cast<double>(axis.target) < most_taps(axis)))
    throw RunFault{"an axis shrinks by too much for antialiasing"};
  const auto first = static_cast<std::int64_t>(std::floor(-radius / shrink)) + 1;
  if (method.mode != Mode::kNearest) taps.count = static_cast<std::size_t>(2 - 2 * first);
  const bool crops = method.transformation == "tf_crop_and_resize";
  const std::size_t all = element_count(std::array{axis.target, static_cast<std::int64_t>(taps.count)});
  taps.positions.reserve(all);
  if (method.mode != Mode::kNearest) taps.weights.resize(all);
  if (crops) taps.outside.reserve(static_cast<std::size_t>(axis.target));
  for (std::int64_t i = 0; i < axis.target; ++i) {
    // Far outside is far outside, also where a region is not finite; then positions fit int64.
    const double position = original(axis, method.transformation, static_cast<double>(i));
    const double x = std::isnan(position) ? 0 : std::clamp(position, -0x1p60, 0x1p60);
    if (crops) taps.outside.push_back(x < 0 || x > static_cast<double>(axis.extent) - 1 ? 1 : 0);
    if (method.mode == Mode::kNearest) {
      taps.positions.push_back(std::clamp<std::int64_t>(nearest(x, axis.scale, method.rounding), 0, axis.extent - 1));
      continue;
    }
    // A whole position is its left neighbour's right one.
    const double left = std::ceil(x) - 1;
    const std::span weights(taps.weights.data() + static_cast<std::size_t>(i) * taps.count, taps.count);
    set_kernel(weights, method, x - left, shrink, first);
    const std::int64_t begin = static_cast<std::int64_t>(left) + first;
    if (method.exclude_outside) leave_out(weights, begin, axis.extent);
    if (for_amplitude)
      for (double& weight : weights) weight = std::fabs(weight) + (std::fabs(x) + 1) * shrink / 4;
    for (std::size_t k = 0; k < taps.count; ++k)
      taps.positions.push_back(std::clamp<std::int64_t>(begin + static_cast<std::int64_t>(k), 0, axis.extent - 1));
  }
  return taps;
}

/// One axis of float64 elements.
void interpolate(HostTensor& to, const HostTensor& from, std::size_t axis, const Taps& taps) {
  const AxisSplit split = split_at(from.extents(), axis);
  const auto target = static_cast<std::size_t>(to.extent(axis));
  double* out = to.as_mutable<double>().data();
  const double* in = from.as<double>().data();
  for (std::size_t o = 0; o < split.outer; ++o, in += split.extent * split.inner) {
    const double* weight = taps.weights.data();
    const std::int64_t* position = taps.positions.data();
    for (std::size_t i = 0; i < target; ++i, weight += taps.count, position += taps.count, out += split.inner) {
      if (split.inner == 1) {
        double sum = 0;
        for (std::size_t k = 0; k < taps.count; ++k) sum += weight[k] * in[position[k]];
        *out = sum;
        continue;
      }
      std::fill_n(out, split.inner, 0.0);
      for (std::size_t k = 0; k < taps.count; ++k) {
        if (weight[k] == 0 && taps.count > 2) continue;
        const double factor = weight[k];
        const double* const row = in + static_cast<std::size_t>(position[k]) * split.inner;
        for (std::size_t j = 0; j < split.inner; ++j) out[j] += factor * row[j];
      }
    }
  }
}

HostTensor one_element(DType dtype, double value, Memory& memory) {
  HostTensor tensor(dtype, {}, memory);
  if (is_float(dtype)) {
    store(tensor, 0, 1, &value);
  } else if (dtype != DType::kString) {
    const std::int64_t whole = truncated(value);
    store(tensor, 0, 1, &whole);
  }
  return tensor;
}

/// Positions outside of the region get the extrapolation value.
void extrapolate(HostTensor& tensor, std::size_t axis, std::span<const char> outside, const HostTensor& value) {
  const AxisSplit split = split_at(tensor.extents(), axis);
  for (std::size_t i = 0; i < outside.size(); ++i) {
    if (outside[i] == 0) continue;
    for (std::size_t o = 0; o < split.outer; ++o)
      for (std::size_t k = 0; k < split.inner; ++k)
        copy_elements(tensor, (o * split.extent + i) * split.inner + k, value, 0, 1);
  }
}

/// Integers are rounded to nearest, ties to even, and saturate.
void store_rounded(HostTensor& to, const HostTensor& from) {
  const double* in = from.as<double>().data();
  if (is_float(to.dtype())) return store(to, 0, to.size(), in);
  const int bits = bit_width(to.dtype());
  const bool is_signed = DTypeSet(to.dtype()).is_subset_of(DTypeSet::signed_integers());
  const double high = to.dtype() == DType::kBool ? 1 : std::ldexp(1, is_signed ? bits - 1 : bits) - 1;
  const double low = is_signed ? -std::ldexp(1, bits - 1) : 0;
  std::int64_t row[kRow];
  for (std::size_t begin = 0; begin < to.size(); begin += kRow) {
    const std::size_t count = std::min(kRow, to.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      const double rounded = std::nearbyint(in[begin + i]);
      if (rounded >= 0x1p63 && bits == 64) {
        row[i] = is_signed ? INT64_MAX
                           : (rounded >= 0x1p64 ? -1 : static_cast<std::int64_t>(static_cast<std::uint64_t>(rounded)));
      } else {
        row[i] = static_cast<std::int64_t>(std::clamp(std::isnan(rounded) ? 0 : rounded, low, high));
      }
    }
    store(to, begin, count, row);
  }
}

HostTensor magnitudes(const HostTensor& tensor, Memory& memory) {
  HostTensor result(DType::kFloat64, tensor.extents(), memory);
  load(tensor, 0, tensor.size(), result.as_mutable<double>().data());
  for (double& x : result.as_mutable<double>()) x = std::fabs(x);
  return result;
}

void resize_axes(Evaluation& e, std::vector<ResizedAxis> axes, const Method& method) {
  // What lies between is then no larger than the operand or the result.
  std::ranges::stable_partition(axes, [](const ResizedAxis& axis) { return axis.target < axis.extent; });
  const HostTensor& data = e.operand(0);
  Extents extents = data.extents();
  for (const ResizedAxis& axis : axes) extents[axis.axis] = axis.target;
  HostTensor& result = e.allocate(0, data.dtype(), extents);
  if (result.size() == 0) return;
  if (data.size() == 0) e.fail("there is nothing to make [{}] of", fmt::join(extents, ", "));
  const bool moves = method.mode == Mode::kNearest;
  HostTensor done = moves ? data : e.asks_amplitude() ? magnitudes(data, e.memory()) : to_float64(data, e.memory());
  const HostTensor outside = one_element(done.dtype(), method.extrapolation, e.memory());
  for (const ResizedAxis& axis : axes) {
    const bool whole = axis.begin == 0 && axis.end == 1;
    if (axis.scale == 1 && axis.target == axis.extent && (whole || method.transformation != "tf_crop_and_resize"))
      continue;
    const Taps taps = taps_of(axis, method, e.asks_amplitude(), e.memory());
    Extents next = done.extents();
    next[axis.axis] = axis.target;
    HostTensor resized(done.dtype(), std::move(next), e.memory());
    if (moves) {
      pick_slices(resized, done, axis.axis, taps.positions);
    } else {
      interpolate(resized, done, axis.axis, taps);
    }
    extrapolate(resized, axis.axis, taps.outside, outside);
    done = std::move(resized);
  }
  if (moves) return e.set(0, std::move(done));
  store_rounded(result, done);
}

/// What an axis becomes: refused where no tensor has as many elements.
std::int64_t target_of(Evaluation& e, std::size_t axis, double scale, double target) {
  if (!(target >= 0 && target < 0x1p53))
    e.fail("axis {} cannot be resized by {}", axis, std::isnan(scale) ? std::fabs(scale) : scale);
  return static_cast<std::int64_t>(target);
}

/// The extent times the scale, rounded down: in float64, where a float32 scale and an extent multiply exactly.
ResizedAxis scaled_axis(Evaluation& e, std::size_t axis, double scale, double part) {
  ResizedAxis resized;
  resized.axis = axis;
  resized.extent = e.operand(0).extent(axis);
  resized.scale = scale;
  resized.length = static_cast<double>(resized.extent) * scale;
  const double target = std::floor(resized.length * part);
  if (!(scale > 0)) e.fail("axis {} cannot be resized by {}", axis, scale);
  resized.target = target_of(e, axis, scale, target);
  if (part != 1) resized.length = target;
  return resized;
}

/// Extents as asked for, or nearly so where the policy keeps the aspect ratio.
std::vector<ResizedAxis> sized_axes(Evaluation& e, const std::vector<std::size_t>& axes,
                                    const std::vector<std::int64_t>& sizes) {
  std::vector<ResizedAxis> resized;
  std::optional<double> common;
  const std::string_view policy = e.in().string_attribute("keep_aspect_ratio_policy", "stretch");
  if (sizes.size() != axes.size()) e.fail("{} sizes for {} axes", sizes.size(), axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizedAxis axis;
    axis.axis = axes[i];
    axis.extent = e.operand(0).extent(axes[i]);
    axis.target = sizes[i];
    axis.scale = static_cast<double>(sizes[i]) / static_cast<double>(axis.extent);
    axis.length = static_cast<double>(sizes[i]);
    if (!common || (policy == "not_larger" ? axis.scale < *common : axis.scale > *common)) common = axis.scale;
    resized.push_back(axis);
  }
  if (policy == "stretch") return resized;
  for (ResizedAxis& axis : resized) {
    axis.scale = *common;
    axis.length = *common * static_cast<double>(axis.extent);
    axis.target = target_of(e, axis.axis, axis.scale, axis.length + 0.5);
  }
  return resized;
}

std::vector<std::size_t> resized_axes(Evaluation& e) {
  const std::size_t rank = e.operand(0).rank();
  std::vector<std::size_t> axes;
  if (const auto given = e.in().ints_attribute("axes")) {
    for (const std::int64_t axis : *given) axes.push_back(from_front(axis, rank));
  } else {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  return axes;
}

void resize(Evaluation& e) {
  const std::vector<std::size_t> axes = resized_axes(e);
  Method method;
  method.mode = mode_of(e.in().string_attribute("mode", "nearest"));
  method.transformation = e.in().string_attribute("coordinate_transformation_mode", "half_pixel");
  method.rounding = e.in().string_attribute("nearest_mode", "round_prefer_floor");
  method.antialias = e.in().int_attribute("antialias", 0) != 0;
  method.exclude_outside = e.in().int_attribute("exclude_outside", 0) != 0;
  method.cubic_coefficient = e.in().float_attribute("cubic_coeff_a", -0.75);
  method.extrapolation = e.in().float_attribute("extrapolation_value", 0);
  const bool crops = method.transformation == "tf_crop_and_resize";
  std::vector<double> region;
  if (crops && e.has("roi")) region = e.numbers(e.in().index_of("roi"));
  if (crops && region.size() != 2 * axes.size())
    e.fail("the region has {} numbers for {} axes, each needs two", region.size(), axes.size());
  std::vector<ResizedAxis> resized;
  const int sizes_at = e.call().schema->input_index("sizes");
  if (e.has(sizes_at) && e.operand(sizes_at).size() > 0) {
    resized = sized_axes(e, axes, e.integers(sizes_at));
  } else {
    const std::vector<double> scales = e.numbers(e.in().index_of("scales"));
    if (scales.size() != axes.size()) e.fail("{} scales for {} axes", scales.size(), axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i)
      resized.push_back(scaled_axis(e, axes[i], scales[i], crops ? region[axes.size() + i] - region[i] : 1));
  }
  for (std::size_t i = 0; crops && i < axes.size(); ++i) {
    resized[i].begin = region[i];
    resized[i].end = region[axes.size() + i];
  }
  resize_axes(e, std::move(resized), method);
}

/// Resize of opset 10 and Upsample say nothing of positions: asymmetric ones, and the nearest element is the one
/// before, or after where the axis shrinks, as onnxruntime has it.
void resize_by_scales(Evaluation& e, const std::vector<double>& scales) {
  if (scales.size() != e.operand(0).rank()) e.fail("{} scales for {} axes", scales.size(), e.operand(0).rank());
  Method method;
  method.mode = mode_of(e.in().string_attribute("mode", "nearest"));
  method.transformation = "asymmetric";
  method.rounding = "outward";
  std::vector<ResizedAxis> axes;
  for (std::size_t axis = 0; axis < scales.size(); ++axis) axes.push_back(scaled_axis(e, axis, scales[axis], 1));
  resize_axes(e, std::move(axes), method);
}

void resize_10(Evaluation& e) { resize_by_scales(e, e.numbers(1)); }

void upsample(Evaluation& e) {
  if (e.opset() < 7)
    return resize_by_scales(
        e, {1, 1, e.in().float_attribute("height_scale", 1), e.in().float_attribute("width_scale", 1)});
  if (const Attribute* scales = e.in().attribute("scales"))
    return resize_by_scales(e, {scales->floats.begin(), scales->floats.end()});
  resize_10(e);
}

/// Neighbours in a few axes, whatever the extents are.
constexpr double kNeighbours = 8;
constexpr Rounding kInterpolates = Rounding::composite([](Evaluation&) { return kNeighbours; }).with_amplitude();

const RegisterEvaluators kResizes{
    Evaluator("Resize").until(10).evaluate(resize_10).error(kInterpolates),
    Evaluator("Resize").since(11).evaluate(resize).error(kInterpolates),
    Evaluator("Upsample").evaluate(upsample).error(kInterpolates),
};

}  // namespace
}  // namespace tensorlint::runtime
