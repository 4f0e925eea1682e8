// Images, regions and grids. Source: ONNX RoiAlign (opsets 10, 16, 22), MaxRoiPool (1, 22), MaxUnpool (9, 11, 22),
// NonMaxSuppression (10, 11), GridSample (16, 20, 22), AffineGrid (20), Col2Im (18), CenterCropPad (18).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "ir/ops/windows.h"
#include "runtime/interpreter/axes.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/indices.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

/// Positions and weights of elements that are summed.
struct Tap {
  std::size_t position = 0;
  double weight = 0;
};

// --- RoiAlign, MaxRoiPool

/// A region along one axis: where it begins, how large its bins are and how many samples each of them has.
struct RoiAxis {
  double begin = 0, bin = 0;
  std::int64_t samples = 0, bins = 0, extent = 0;
  double at(std::int64_t which, std::int64_t sample) const {
    return begin + static_cast<double>(which) * bin +
           (static_cast<double>(sample) + 0.5) * bin / static_cast<double>(samples);
  }
};

RoiAxis roi_axis(double from, double to, bool half_pixel, std::int64_t bins, std::int64_t samples,
                 std::int64_t extent) {
  double length = to - from;
  if (!half_pixel) length = std::max(length, 1.0);  // malformed regions are of one pixel
  RoiAxis axis{from, length / static_cast<double>(bins), samples, bins, extent};
  if (samples <= 0 && std::isnan(axis.bin)) axis.samples = 0;
  if (samples <= 0 && !std::isnan(axis.bin))
    axis.samples = static_cast<std::int64_t>(std::clamp(std::ceil(axis.bin), 0.0, 1e6));
  return axis;
}

/// The two neighbours of a position along an axis; false where it is outside.
bool neighbours(double at, std::int64_t extent, Tap (&taps)[2]) {
  if (!(at >= -1 && at <= static_cast<double>(extent))) return false;
  at = std::max(at, 0.0);
  auto low = static_cast<std::int64_t>(at);
  std::int64_t high = low + 1;
  if (low >= extent - 1) {
    low = high = extent - 1;
    at = static_cast<double>(low);
  }
  const double rest = at - static_cast<double>(low);
  taps[0] = {static_cast<std::size_t>(low), 1 - rest};
  taps[1] = {static_cast<std::size_t>(high), rest};
  return true;
}

constexpr double kMostSamples = 1 << 24;  // of a region
/// Where the region says how many samples a bin has: along an axis, more lie outside of the image.
constexpr std::int64_t kAdaptiveSamples = 64, kAdaptiveSamplesPerPlace = 8;

/// Four taps a sample, for the samples of each bin; zeros outside of the image.
List<Tap> roi_taps(const RoiAxis& y, const RoiAxis& x, Memory& memory) {
  List<Tap> taps(memory.resource());
  taps.reserve(static_cast<std::size_t>(4 * y.bins * x.bins * y.samples * x.samples));
  for (std::int64_t row = 0; row < y.bins; ++row)
    for (std::int64_t column = 0; column < x.bins; ++column)
      for (std::int64_t i = 0; i < y.samples; ++i)
        for (std::int64_t j = 0; j < x.samples; ++j) {
          Tap vertical[2], horizontal[2];
          const bool inside =
              neighbours(y.at(row, i), y.extent, vertical) && neighbours(x.at(column, j), x.extent, horizontal);
          for (const Tap& v : vertical)
            for (const Tap& h : horizontal)
              taps.push_back(
                  inside ? Tap{v.position * static_cast<std::size_t>(x.extent) + h.position, v.weight * h.weight}
                         : Tap{});
        }
  return taps;
}

double pooled(const double* plane, const Tap* taps, std::size_t count, bool takes_max) {
  double result = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = taps[i].weight * plane[taps[i].position];
    result = !takes_max ? result + value : i == 0 ? value : std::max(result, value);
  }
  return takes_max || count == 0 ? result : result / (static_cast<double>(count) / 4);
}

void roi_align(Evaluation& e) {
  const HostTensor data = to_float64(e.operand(0), e.memory());
  const std::vector<double> regions = e.numbers(1);
  const std::vector<std::int64_t> batch = e.integers(2);
  HostTensor& result = e.result();
  const bool half_pixel =
      e.opset() >= 16 && e.in().string_attribute("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const bool takes_max = e.in().string_attribute("mode", "avg") == "max";
  const double scale = e.in().float_attribute("spatial_scale", 1), offset = half_pixel ? 0.5 : 0;
  const std::int64_t samples = e.in().int_attribute("sampling_ratio", 0);
  const auto channels = static_cast<std::size_t>(data.extent(1));
  const auto plane = static_cast<std::size_t>(data.extent(2) * data.extent(3));
  const auto bins = static_cast<std::size_t>(result.extent(2) * result.extent(3));
  if (plane == 0 && result.size() > 0) e.fail("regions cannot be cut out of images without elements");
  List<double> row(bins, e.memory().resource());
  for (std::size_t r = 0; r < batch.size(); ++r) {
    if (batch[r] < 0 || batch[r] >= data.extent(0))
      e.fail("image {} is outside the batch of {}", batch[r], data.extent(0));
    const double* const region = regions.data() + r * 4;
    const auto along = [&](std::size_t part, std::int64_t count, std::int64_t extent) {
      return roi_axis(region[part] * scale - offset, region[part + 2] * scale - offset, half_pixel, count, samples,
                      extent);
    };
    const RoiAxis y = along(1, result.extent(2), data.extent(2)), x = along(0, result.extent(3), data.extent(3));
    const double samples_in_all =
        static_cast<double>(bins) * static_cast<double>(y.samples) * static_cast<double>(x.samples);
    const auto reaches_far = [&](const RoiAxis& axis) {
      return samples <= 0 && axis.samples > kAdaptiveSamples + kAdaptiveSamplesPerPlace * axis.extent;
    };
    if (samples_in_all > kMostSamples || reaches_far(y) || reaches_far(x))
      e.fail("a region of {} samples is too large", samples_in_all);
    e.charge(samples_in_all * 4 * static_cast<double>(1 + channels));
    const List<Tap> taps = roi_taps(y, x, e.memory());
    const std::size_t each = taps.size() / bins;
    for (std::size_t c = 0; c < channels; ++c) {
      const double* const image =
          data.as<double>().data() + (static_cast<std::size_t>(batch[r]) * channels + c) * plane;
      for (std::size_t b = 0; b < bins; ++b) row[b] = pooled(image, taps.data() + b * each, each, takes_max);
      store(result, (r * channels + c) * bins, bins, row.data());
    }
  }
}

/// First and last element, exclusive, of a bin.
struct Span {
  std::int64_t begin = 0, end = 0;
};

Span bin_of(std::int64_t from, std::int64_t to, std::int64_t bins, std::int64_t which, std::int64_t extent) {
  const double size = static_cast<double>(std::max<std::int64_t>(to - from + 1, 1)) / static_cast<double>(bins);
  const auto clip = [&](double at) {
    return static_cast<std::int64_t>(std::clamp(at + static_cast<double>(from), 0.0, static_cast<double>(extent)));
  };
  return {clip(std::floor(static_cast<double>(which) * size)), clip(std::ceil(static_cast<double>(which + 1) * size))};
}

/// As in Girshick's Fast R-CNN: whole pixels; a bin without any gives 0.
void max_roi_pool(Evaluation& e) {
  const HostTensor data = to_float64(e.operand(0), e.memory());
  const std::vector<double> regions = e.numbers(1);
  const double scale = e.in().float_attribute("spatial_scale", 1);
  HostTensor& result = e.result();
  const std::int64_t height = data.extent(2), width = data.extent(3), channels = data.extent(1);
  std::size_t at = 0;
  for (std::int64_t r = 0; r < result.extent(0); ++r) {
    const double* const region = regions.data() + r * 5;
    std::int64_t edges[4];
    for (int i = 0; i < 4; ++i)
      edges[i] =
          std::isnan(region[i + 1] * scale) ? 0 : truncated(std::round(std::clamp(region[i + 1] * scale, -1e9, 1e9)));
    if (!(region[0] >= 0 && region[0] < static_cast<double>(data.extent(0))))
      e.fail("image {} is outside the batch of {}", region[0], data.extent(0));
    for (std::int64_t c = 0; c < channels; ++c) {
      const double* const image =
          data.as<double>().data() + (static_cast<std::int64_t>(region[0]) * channels + c) * height * width;
      for (std::int64_t row = 0; row < result.extent(2); ++row)
        for (std::int64_t column = 0; column < result.extent(3); ++column) {
          const Span y = bin_of(edges[1], edges[3], result.extent(2), row, height),
                     x = bin_of(edges[0], edges[2], result.extent(3), column, width);
          double best = y.begin < y.end && x.begin < x.end ? image[y.begin * width + x.begin] : 0;
          for (std::int64_t i = y.begin; i < y.end; ++i)
            for (std::int64_t j = x.begin; j < x.end; ++j) best = std::max(best, image[i * width + j]);
          store(result, at++, 1, &best);
        }
    }
  }
}

// --- NonMaxSuppression

struct Box {
  double y1, x1, y2, x2;
};

Box box_at(const double* numbers, bool center) {
  if (center) {
    const double x = numbers[0], y = numbers[1], width = numbers[2] / 2, height = numbers[3] / 2;
    return {y - height, x - width, y + height, x + width};
  }
  return {std::min(numbers[0], numbers[2]), std::min(numbers[1], numbers[3]), std::max(numbers[0], numbers[2]),
          std::max(numbers[1], numbers[3])};
}

double area(const Box& box) { return (box.y2 - box.y1) * (box.x2 - box.x1); }

/// Intersection over union; 0 where either box or what they share is empty.
double overlap(const Box& a, const Box& b) {
  const Box both{std::max(a.y1, b.y1), std::max(a.x1, b.x1), std::min(a.y2, b.y2), std::min(a.x2, b.x2)};
  if (both.y2 <= both.y1 || both.x2 <= both.x1 || area(a) <= 0 || area(b) <= 0) return 0;
  return area(both) / (area(a) + area(b) - area(both));
}

/// The boxes kept of one class: by score, and where scores are equal by position.
List<std::size_t> kept_boxes(std::span<const Box> boxes, const double* scores, std::size_t limit, double most_overlap,
                             const double* lowest_score, Memory& memory) {
  List<std::size_t> order(memory.resource()), kept(memory.resource());
  for (std::size_t i = 0; i < boxes.size(); ++i)
    if (lowest_score == nullptr || scores[i] > *lowest_score) order.push_back(i);
  // The buffer of the sort, at most.
  memory.take(order.size() * sizeof(std::size_t));
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  memory.give_back(order.size() * sizeof(std::size_t));
  for (const std::size_t i : order) {
    if (kept.size() >= limit) break;
    const auto suppresses = [&](std::size_t other) { return overlap(boxes[i], boxes[other]) > most_overlap; };
    if (std::ranges::none_of(kept, suppresses)) kept.push_back(i);
  }
  return kept;
}

void non_max_suppression(Evaluation& e) {
  const std::vector<double> numbers = e.numbers(0), scores = e.numbers(1);
  const Extents shape = e.operand(1).extents();  // batch, classes, boxes
  const auto count = static_cast<std::size_t>(shape[2]), classes = static_cast<std::size_t>(shape[1]);
  const std::int64_t limit = e.has(2) ? std::max<std::int64_t>(e.integer(2), 0) : 0;
  const double most_overlap = e.has(3) ? e.number(3) : 0, lowest = e.has(4) ? e.number(4) : 0;
  const bool center = e.in().int_attribute("center_point_box", 0) != 0;
  List<std::int64_t> rows(e.memory().resource());
  e.charge(static_cast<double>(scores.size()) * static_cast<double>(count));
  for (std::size_t batch = 0; batch < static_cast<std::size_t>(shape[0]); ++batch) {
    List<Box> boxes(e.memory().resource());
    boxes.reserve(count);
    for (std::size_t i = 0; i < count; ++i) boxes.push_back(box_at(numbers.data() + (batch * count + i) * 4, center));
    for (std::size_t c = 0; c < classes; ++c)
      for (const std::size_t box :
           kept_boxes(boxes, scores.data() + (batch * classes + c) * count, static_cast<std::size_t>(limit),
                      most_overlap, e.has(4) ? &lowest : nullptr, e.memory()))
        for (const std::size_t part : {batch, c, box}) rows.push_back(static_cast<std::int64_t>(part));
  }
  HostTensor& result = e.allocate(0, DType::kInt64, {static_cast<std::int64_t>(rows.size() / 3), 3});
  std::ranges::copy(rows, result.as_mutable<std::int64_t>().begin());
}

// --- GridSample

enum class Sampling { kNearest, kLinear, kCubic };
enum class Border { kZeros, kClamp, kReflect };

struct Sampler {
  Sampling sampling = Sampling::kLinear;
  Border border = Border::kZeros;
  bool align_corners = false;

  /// Reflected at the outer pixels' centres, or at their edges, until it is inside.
  double reflected(double x, double extent) const {
    const double low = align_corners ? 0 : -0.5, high = align_corners ? extent - 1 : extent - 0.5;
    if (high <= low) return 0;
    if (x >= low && x <= high) return x;
    const double beyond = x < low ? low - x : x - high, turns = std::trunc(beyond / (high - low));
    const double rest = beyond - turns * (high - low);
    return (std::fmod(turns, 2) == 0) == (x < low) ? low + rest : high - rest;
  }

  /// From [-1, 1] to pixels; NaN and what is far beyond all pixels count as outside.
  double pixel(double grid, double extent) const {
    double x = align_corners ? (grid + 1) / 2 * (extent - 1) : ((grid + 1) * extent - 1) / 2;
    if (!(std::fabs(x) < 1e15)) x = -1e6;
    if (sampling == Sampling::kNearest) x = std::nearbyint(x);
    const double low = align_corners ? 0 : -0.5, high = align_corners ? extent - 1 : extent - 0.5;
    if (x >= low && x <= high) return x;
    // Cubic kernels beyond the border see the border in each tap, as PyTorch and onnxruntime have it.
    if (border == Border::kClamp) return sampling == Sampling::kCubic ? x : std::clamp(x, 0.0, extent - 1);
    return border == Border::kReflect ? reflected(x, extent) : x;
  }

  /// Taps along one axis, into up to 4.
  std::size_t taps(double x, std::int64_t extent, Tap (&out)[4]) const {
    const double low = std::floor(x), rest = x - low;
    double weights[4] = {1 - rest, rest, 0, 0};
    std::size_t count = sampling == Sampling::kNearest ? 1 : 2;
    double first = low;
    if (sampling == Sampling::kCubic) {
      constexpr double a = -0.75;
      const double near[4] = {1 + rest, rest, 1 - rest, 2 - rest};
      for (const int i : {0, 3}) weights[i] = ((a * near[i] - 5 * a) * near[i] + 8 * a) * near[i] - 4 * a;
      for (const int i : {1, 2}) weights[i] = ((a + 2) * near[i] - (a + 3)) * near[i] * near[i] + 1;
      count = 4;
      first = low - 1;
    } else if (sampling == Sampling::kNearest) {
      weights[0] = 1;
    }
    for (std::size_t i = 0; i < count; ++i) {
      double at = first + static_cast<double>(i);
      const bool inside = at >= 0 && at < static_cast<double>(extent);
      if (!inside && border == Border::kReflect) at = std::trunc(reflected(at, static_cast<double>(extent)));
      if (!inside && border == Border::kZeros) weights[i] = 0;
      out[i] = {static_cast<std::size_t>(std::isnan(at) ? 0 : std::clamp(at, 0.0, static_cast<double>(extent - 1))),
                weights[i]};
    }
    return count;
  }
};

/// Taps that the border sends to one element are one: along axes of extent 1 there would be four to the power of their
/// number. Left to right; how many there are then.
std::size_t merged(Tap (&taps)[4], std::size_t count) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Tap* const same = std::find_if(taps, taps + kept, [&](const Tap& tap) { return tap.position == taps[i].position; });
    if (same == taps + kept)
      taps[kept++] = taps[i];
    else
      same->weight += taps[i].weight;
  }
  return kept;
}

/// Products of the taps of all axes; those of weight 0 are left out, so that infinities outside do not come in.
List<Tap> grid_taps(const Sampler& sampler, const double* grid, const Extents& data, Memory& memory) {
  List<Tap> all({{0, 1}}, memory.resource());
  const std::size_t spatial = data.size() - 2;
  for (std::size_t axis = 0; axis < spatial; ++axis) {
    const std::int64_t extent = data[axis + 2];
    Tap along[4];
    // The grid names the last axis first.
    const double x = sampler.pixel(grid[spatial - 1 - axis], static_cast<double>(extent));
    const std::size_t count = merged(along, sampler.taps(x, extent, along));
    List<Tap> next(memory.resource());
    for (const Tap& tap : all)
      for (std::size_t i = 0; i < count; ++i)
        if (along[i].weight != 0)
          next.push_back(
              {tap.position * static_cast<std::size_t>(extent) + along[i].position, tap.weight * along[i].weight});
    all = std::move(next);
  }
  return all;
}

Sampler read_sampler(Evaluation& e) {
  const std::string_view mode = e.in().string_attribute("mode", "linear");
  const std::string_view padding = e.in().string_attribute("padding_mode", "zeros");
  Sampler sampler;
  sampler.sampling = mode == "nearest"                      ? Sampling::kNearest
                     : mode == "cubic" || mode == "bicubic" ? Sampling::kCubic
                                                            : Sampling::kLinear;
  sampler.border = padding == "border" ? Border::kClamp : padding == "reflection" ? Border::kReflect : Border::kZeros;
  sampler.align_corners = e.in().int_attribute("align_corners", 0) != 0;
  return sampler;
}

/// Without the fraction, as far as the dtype reaches.
void store_truncated(HostTensor& result, const double* numbers, Memory& memory) {
  List<std::int64_t> whole(result.size(), memory.resource());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (numbers[i] < 0x1p63)
      whole[i] = truncated(numbers[i]);
    else if (result.dtype() != DType::kUint64)
      whole[i] = std::numeric_limits<std::int64_t>::max();
    else  // by its bits
      whole[i] = numbers[i] < 0x1p64 ? static_cast<std::int64_t>(static_cast<std::uint64_t>(numbers[i])) : -1;
  }
  store(result, 0, whole.size(), whole.data());
}

void grid_sample(Evaluation& e) {
  const Sampler sampler = read_sampler(e);
  const bool is_nearest = sampler.sampling == Sampling::kNearest && !e.asks_amplitude();
  const HostTensor data = is_nearest ? e.operand(0) : to_float64(e.operand(0), e.memory());
  const HostTensor grid = to_float64(e.operand(1), e.memory());
  HostTensor& result = e.result();
  if (result.size() == 0) return;
  if (data.size() == 0) e.fail("there is nothing to sample");
  const auto batch = static_cast<std::size_t>(data.extent(0)), channels = static_cast<std::size_t>(data.extent(1));
  const std::size_t plane = data.size() / batch / channels, points = result.size() / batch / channels;
  const std::size_t spatial = data.rank() - 2;
  const auto taps_at = [&](std::size_t n, std::size_t point) {
    return grid_taps(sampler, grid.as<double>().data() + (n * points + point) * spatial, data.extents(), e.memory());
  };
  if (is_nearest) {
    // Elements as they were, whatever they are.
    HostTensor moved = zeros(result.dtype(), result.extents(), e.memory());
    move_elements(moved, e.operand(0), [&](auto* to, const auto* from) {
      for (std::size_t n = 0; n < batch; ++n)
        for (std::size_t point = 0; point < points; ++point)
          for (const Tap& tap : taps_at(n, point))
            for (std::size_t c = n * channels; c < (n + 1) * channels; ++c)
              to[c * points + point] = from[c * plane + tap.position];
    });
    return e.set(0, std::move(moved));
  }
  HostTensor wide(DType::kFloat64, result.extents(), e.memory());
  double* const out = wide.as_mutable<double>().data();
  for (std::size_t n = 0; n < batch; ++n)
    for (std::size_t point = 0; point < points; ++point) {
      const List<Tap> taps = taps_at(n, point);
      for (std::size_t c = 0; c < channels; ++c) {
        const double* const image = data.as<double>().data() + (n * channels + c) * plane;
        double sum = 0;
        for (const Tap& tap : taps) sum += tap.weight * image[tap.position];
        out[(n * channels + c) * points + point] = sum;
      }
    }
  if (is_float(result.dtype())) return store(result, 0, result.size(), out);
  if (!is_integer_or_bool(result.dtype())) e.fail("{} cannot be sampled", to_text(result.dtype()));
  store_truncated(result, out, e.memory());
}

// --- AffineGrid

/// Positions of `extent` pixels in [-1, 1]: the outer ones' centres or edges at the ends.
List<double> positions(std::int64_t extent, bool align_corners, Memory& memory) {
  List<double> list(memory.resource());
  list.reserve(static_cast<std::size_t>(extent));
  for (std::int64_t i = 0; i < extent; ++i) {
    const auto at = static_cast<double>(i), count = static_cast<double>(extent);
    list.push_back(!align_corners ? (2 * at + 1) / count - 1 : extent == 1 ? -1 : 2 * at / (count - 1) - 1);
  }
  return list;
}

void affine_grid(Evaluation& e) {
  const std::vector<double> theta = e.numbers(0);
  HostTensor& result = e.result();
  const auto spatial = static_cast<std::size_t>(result.extents().back());
  const bool align_corners = e.in().int_attribute("align_corners", 0) != 0;
  std::vector<List<double>> axes;
  for (std::size_t axis = 0; axis < spatial; ++axis)
    axes.push_back(positions(result.extent(axis + 1), align_corners, e.memory()));
  const std::size_t points =
      result.size() / std::max<std::size_t>(1, static_cast<std::size_t>(result.extent(0)) * spatial);
  std::vector<double> out(spatial);
  for (std::size_t n = 0, at = 0; n < static_cast<std::size_t>(result.extent(0)); ++n)
    for (std::size_t point = 0; point < points; ++point, at += spatial) {
      double homogeneous[4];  // the last axis first, then 1
      std::size_t rest = point;
      for (std::size_t axis = spatial; axis-- > 0;) {
        const List<double>& list = axes[axis];
        homogeneous[spatial - 1 - axis] = list[rest % list.size()];
        rest /= list.size();
      }
      homogeneous[spatial] = 1;
      const double* const matrix = theta.data() + n * spatial * (spatial + 1);
      for (std::size_t i = 0; i < spatial; ++i)
        out[i] = std::inner_product(homogeneous, homogeneous + spatial + 1, matrix + i * (spatial + 1), 0.0);
      store(result, at, spatial, out.data());
    }
}

// --- Col2Im

/// Where the elements of blocks go along one axis; -1 where they are padding.
struct BlockAxis {
  std::int64_t image = 0, block = 0, count = 0, stride = 1, dilation = 1, pad = 0;
  std::int64_t position(std::int64_t which, std::int64_t element) const {
    const std::int64_t at = which * stride - pad + element * dilation;
    return at >= 0 && at < image ? at : -1;
  }
};

constexpr std::int64_t kMostSize = std::int64_t{1} << 30;  // products of two fit

std::vector<BlockAxis> block_axes(Evaluation& e) {
  const std::vector<std::int64_t> image = e.integers(1), block = e.integers(2);
  const std::size_t spatial = image.size();
  const auto strides = ops::spatial_attribute(e.in(), "strides", spatial, 1, 1);
  const auto dilations = ops::spatial_attribute(e.in(), "dilations", spatial, 1, 1);
  const auto pads = ops::spatial_attribute(e.in(), "pads", 2 * spatial, 0, 0);
  if (!strides || !dilations || !pads || block.size() != spatial)
    e.fail("the blocks do not follow from the operands and attributes");
  std::vector<BlockAxis> axes;
  for (std::size_t i = 0; i < spatial; ++i) {
    for (const std::int64_t size : {image[i], block[i], (*strides)[i], (*dilations)[i]})
      if (size < 1 || size > kMostSize) e.fail("axis {} has the size, stride or dilation {}", i, size);
    for (const std::int64_t pad : {(*pads)[i], (*pads)[i + spatial]})
      if (pad < -kMostSize || pad > kMostSize) e.fail("axis {} has the pad {}", i, pad);
    const std::int64_t room = image[i] + (*pads)[i] + (*pads)[i + spatial] - (*dilations)[i] * (block[i] - 1) - 1;
    if (room < 0) e.fail("the block of {} elements does not fit axis {} of the image", block[i], i);
    axes.push_back({image[i], block[i], room / (*strides)[i] + 1, (*strides)[i], (*dilations)[i], (*pads)[i]});
  }
  return axes;
}

/// The element of the image of each (element of the block, block); -1 where there is none.
List<std::int64_t> block_targets(const std::vector<BlockAxis>& axes, std::size_t most, Memory& memory) {
  List<std::int64_t> targets(memory.resource());
  // All axes' elements come before all axes' blocks.
  std::size_t elements = 1, blocks = 1;
  for (const BlockAxis& axis : axes) {
    for (auto [product, factor] : {std::pair(&elements, axis.block), std::pair(&blocks, axis.count)}) {
      if (static_cast<std::size_t>(factor) > most / (elements * blocks))
        throw RunFault{"blocks have more elements than the columns"};
      *product *= static_cast<std::size_t>(factor);
    }
  }
  targets.assign(elements * blocks, 0);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    std::size_t element = i / blocks, block = i % blocks, stride = 1;
    for (std::size_t axis = axes.size(); axis-- > 0 && targets[i] >= 0;) {
      const auto extent = static_cast<std::size_t>(axes[axis].block),
                 count = static_cast<std::size_t>(axes[axis].count);
      const std::int64_t at =
          axes[axis].position(static_cast<std::int64_t>(block % count), static_cast<std::int64_t>(element % extent));
      targets[i] = at < 0 ? -1 : targets[i] + at * static_cast<std::int64_t>(stride);
      stride *= static_cast<std::size_t>(axes[axis].image);
      element /= extent;
      block /= count;
    }
  }
  return targets;
}

template <typename Number>
void sum_blocks(Evaluation& e, const List<std::int64_t>& targets) {
  const HostTensor& data = e.operand(0);
  HostTensor& result = e.result();
  const std::size_t planes = static_cast<std::size_t>(result.extent(0) * result.extent(1));
  if (planes == 0) return;
  const std::size_t plane = result.size() / planes;
  List<Number> columns(targets.size(), e.memory().resource()), image(plane, e.memory().resource());
  for (std::size_t p = 0; p < planes; ++p) {
    load(data, p * columns.size(), columns.size(), columns.data());
    std::ranges::fill(image, Number{});
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (targets[i] >= 0) image[static_cast<std::size_t>(targets[i])] += columns[i];
    store(result, p * plane, plane, image.data());
  }
}

void col2im(Evaluation& e) {
  const List<std::int64_t> targets = block_targets(block_axes(e), e.operand(0).size(), e.memory());
  const HostTensor& data = e.operand(0);
  const HostTensor& result = e.result();
  if (static_cast<std::size_t>(result.extent(0) * result.extent(1)) * targets.size() != data.size())
    e.fail("{} columns do not fit {} elements of blocks", data.extent(2), targets.size());
  if (is_float(data.dtype())) return sum_blocks<double>(e, targets);
  if (is_integer_or_bool(data.dtype())) return sum_blocks<std::int64_t>(e, targets);
  e.fail("columns of {} cannot be added", to_text(data.dtype()));
}

// --- CenterCropPad

void center_crop_pad(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  HostTensor& result = e.result();
  fill(result, zeros(data.dtype(), {}, e.memory()));
  const std::vector<std::int64_t> from = strides_of(data.extents()), to = strides_of(result.extents());
  Extents shared = data.extents();
  std::int64_t first = 0, target = 0;
  for (std::size_t axis = 0; axis < data.rank(); ++axis) {
    const std::int64_t more = result.extent(axis) - data.extent(axis);
    shared[axis] = std::min(data.extent(axis), result.extent(axis));
    if (more < 0) first += -more / 2 * from[axis];
    if (more > 0) target += more / 2 * to[axis];
  }
  copy_region(result, {target, to}, data, {first, from}, shared);
}

const RegisterEvaluators kImages{
    Evaluator("RoiAlign").evaluate(roi_align).error(Rounding::composite().with_jumps()),
    Evaluator("MaxRoiPool").evaluate(max_roi_pool).error(Rounding::exact().with_jumps()),
    Evaluator("NonMaxSuppression").evaluate(non_max_suppression).error(Rounding::exact()),
    Evaluator("GridSample").evaluate(grid_sample).error(Rounding::composite().with_jumps()),
    Evaluator("AffineGrid").evaluate(affine_grid).error(Rounding::composite()),
    Evaluator("Col2Im").evaluate(col2im).error(Rounding::accumulates()),
    Evaluator("CenterCropPad").evaluate(center_crop_pad).error(Rounding::exact()),
};

}  // namespace
}  // namespace tensorlint::runtime
