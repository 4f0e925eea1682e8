// Convolutions. Source: ONNX Conv, ConvTranspose (1, 11, 22), ConvInteger (10), QLinearConv (10), DeformConv (19, 22).
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/products.h"
#include "runtime/interpreter/terms.h"
#include "runtime/interpreter/window_geometry.h"
#include "runtime/values/codec.h"
#include "runtime/values/parallel.h"

namespace tensorlint::runtime {
namespace {

/// Data [N, C, d...] and filters [M, C / group, k...] as numbers.
struct Convolution {
  WindowGeometry windows;
  std::int64_t batch, channels, filters, groups;
  Memory& memory;
  std::int64_t group_channels() const { return channels / groups; }
  std::int64_t group_filters() const { return filters / groups; }
};

/// What a convolution multiplies its filters with, never as a whole: row (channel, element of the window), column
/// (position of the window).
template <typename T>
class Patches : public Factor {
 public:
  Patches(const T* image, const WindowGeometry& windows)
      : image_(image), windows_(windows), taps_(windows.taps()), plane_(windows.in_size()) {}

  void pack(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns, double* to,
            std::int64_t row_step, std::int64_t column_step) const override {
    if (rows == 0) return;
    const std::int64_t width = windows_.out.back();
    for (std::int64_t done = 0; done < columns;) {
      const std::int64_t x = (column + done) % width, count = std::min(columns - done, width - x);
      pack_run((column + done) / width, x, count, row, rows, to + done * column_step, row_step, column_step);
      done += count;
    }
  }

 private:
  /// Windows x to x + count of one row of the result.
  void pack_run(std::int64_t result_row, std::int64_t x, std::int64_t count, std::int64_t row, std::int64_t rows,
                double* to, std::int64_t row_step, std::int64_t column_step) const {
    const std::size_t inner = windows_.rank() - 1;
    std::vector<std::int64_t> outer(inner);
    for (std::size_t axis = inner; axis-- > 0; result_row /= windows_.out[axis])
      outer[axis] = result_row % windows_.out[axis] * windows_.strides[axis];
    // Each element of a window that some of the rows has, once.
    const std::int64_t first_tap = row % taps_, seen = std::min(rows, taps_);
    std::vector<std::int64_t> tap(windows_.rank());
    for (std::int64_t axis = static_cast<std::int64_t>(inner), rest = first_tap; axis >= 0; --axis) {
      tap[static_cast<std::size_t>(axis)] = rest % windows_.kernel[static_cast<std::size_t>(axis)];
      rest /= windows_.kernel[static_cast<std::size_t>(axis)];
    }
    const std::int64_t stride = windows_.strides[inner], begin = x * stride;
    for (std::int64_t i = 0; i < seen; ++i) {
      const std::int64_t t = (first_tap + i) % taps_;
      std::int64_t at = 0;
      bool is_inside = true;
      for (std::size_t axis = 0; axis < inner; ++axis) {
        const std::int64_t position = outer[axis] + windows_.shift(axis, tap[axis]);
        is_inside = is_inside && position >= 0 && position < windows_.in[axis];
        at = at * windows_.in[axis] + position;
      }
      const std::int64_t shift = windows_.shift(inner, tap[inner]);
      auto [first, end] = windows_.inside(inner, shift, 0, windows_.in[inner]);
      first = is_inside ? std::clamp<std::int64_t>(first - x, 0, count) : 0;
      end = is_inside ? std::clamp<std::int64_t>(end - x, first, count) : 0;
      at = at * windows_.in[inner] + shift + begin;
      for (std::int64_t channel = (row + taps_ - 1 - t) / taps_; channel * taps_ + t < row + rows; ++channel) {
        double* const target = to + (channel * taps_ + t - row) * row_step;
        copy(image_ + channel * plane_ + at, stride, first, end, count, target, column_step);
      }
      for (std::size_t axis = windows_.rank(); axis-- > 0;) {
        if (++tap[axis] < windows_.kernel[axis]) break;
        tap[axis] = 0;
      }
    }
  }

  static void copy(const T* from, std::int64_t stride, std::int64_t first, std::int64_t end, std::int64_t count,
                   double* to, std::int64_t step) {
    if (stride == 1 && step == 1 && first == 0 && end == 16) {
      for (std::int64_t i = 0; i < 16; ++i) to[i] = static_cast<double>(from[i]);
      return;
    }
    for (std::int64_t i = 0; i < first; ++i) to[i * step] = 0;
    for (std::int64_t i = first; i < end; ++i) to[i * step] = static_cast<double>(from[i * stride]);
    for (std::int64_t i = end; i < count; ++i) to[i * step] = 0;
  }

  const T* image_;
  const WindowGeometry& windows_;
  std::int64_t taps_, plane_;
};

bool is_pointwise(const WindowGeometry& windows) {
  return windows.taps() == 1 && windows.in == windows.out &&
         std::ranges::all_of(windows.begin_pads, [](std::int64_t pad) { return pad == 0; });
}

/// Filters [k, n] packed for later calls, or null; `part` tells those of one convolution apart.
using KeepWeights =
    std::function<ConstantCache::Weights(const Factor& filters, std::int64_t part, std::int64_t k, std::int64_t n)>;

constexpr std::int64_t kProductsWorthThread = std::int64_t{1} << 18;  // products

/// Few filters a group: sums go along rows of the result, filter element by filter element. `sink` takes rows of sums:
/// (n, m, first, count, sums) of image n and filter m, positions from `first` on.
template <typename T, typename W, typename Sink>
void convolve_rows(const Convolution& c, const T* data, const W* filters, const Sink& sink) {
  const WindowGeometry& g = c.windows;
  const std::int64_t plane = g.in_size(), taps = g.taps(), width = g.out.back(), stride = g.strides.back();
  const std::int64_t work = std::max<std::int64_t>(c.group_channels() * taps * g.out_size(), 1);
  parallel_ranges(c.batch * c.filters, std::max<std::int64_t>(kProductsWorthThread / work, 1),
                  [&](std::int64_t from, std::int64_t to) {
                    List<double> sums(static_cast<std::size_t>(width), c.memory.resource());
                    for (std::int64_t i = from; i < to; ++i) {
                      const std::int64_t n = i / c.filters, m = i % c.filters, group = m / c.group_filters();
                      const T* const image = data + (n * c.channels + group * c.group_channels()) * plane;
                      const W* const filter = filters + m * c.group_channels() * taps;
                      for_each_window_row(
                          g, c.memory, [&] { std::ranges::fill(sums, 0.0); },
                          [&](std::int64_t tap, std::int64_t at, std::int64_t first, std::int64_t end) {
                            for (std::int64_t channel = 0; channel < c.group_channels(); ++channel)
                              add_scaled(static_cast<double>(filter[channel * taps + tap]),
                                         image + channel * plane + at + first * stride, stride, end - first,
                                         sums.data() + first);
                          },
                          [&](std::int64_t first) { sink(n, m, first, width, sums.data()); });
                    }
                  });
}

/// Filters of one group with its patches [inner, positions], of which there are few: as positions by filters, so that
/// filters can be kept as they are packed. `sink` as above, of image n; `m` is the group's first filter.
template <typename W, typename Sink>
void convolve_turned(const Convolution& c, const W* filters, const Factor& patches, std::int64_t n, std::int64_t m,
                     const KeepWeights& keep, const Sink& sink) {
  const std::int64_t inner = c.group_channels() * c.windows.taps(), positions = c.windows.out_size();
  const auto columns_as_rows = [&](const ProductTile& tile) {
    alignas(64) std::array<double, kFewRows> sums;
    for (std::int64_t j = 0; j < tile.columns; ++j) {
      for (std::int64_t i = 0; i < tile.rows; ++i)
        sums[static_cast<std::size_t>(i)] = tile.elements[i * tile.stride + j];
      sink(n, m + tile.column + j, tile.row, tile.rows, sums.data());
    }
  };
  const DenseFactor<W> right(filters + m * inner, 1, inner);
  if (const ConstantCache::Weights kept = keep(right, m, inner, c.group_filters())) {
    gemm(positions, TurnedFactor(patches), *kept, columns_as_rows, Tiles::kAnyThread);
  } else {
    gemm(positions, c.group_filters(), inner, TurnedFactor(patches), right, c.memory, columns_as_rows,
         Tiles::kAnyThread);
  }
}

/// Without channels there is nothing to sum, at however many positions.
template <typename Sink>
void convolve_nothing(const Convolution& c, const Sink& sink) {
  const std::int64_t width = c.windows.out.back(), positions = c.windows.out_size();
  const List<double> zeros(static_cast<std::size_t>(width), 0.0, c.memory.resource());
  for (std::int64_t n = 0; n < c.batch; ++n)
    for (std::int64_t m = 0; m < c.filters; ++m)
      for (std::int64_t first = 0; first < positions; first += width) sink(n, m, first, width, zeros.data());
}

/// Windows have many more places than lie in the image: products would multiply padding.
bool sees_little(const WindowGeometry& g) {
  constexpr double kFew = 1 << 16, kTimes = 16;
  double places = 1, inside = 1;
  for (std::size_t axis = 0; axis < g.rank(); ++axis) {
    places *= static_cast<double>(g.kernel[axis]) * static_cast<double>(g.out[axis]);
    double along = 0;
    for (std::int64_t window = 0; window < g.out[axis]; ++window) {
      const auto [first, end] = g.elements_inside(axis, window, 0, g.in[axis]);
      along += static_cast<double>(end - first);
    }
    inside *= along;
  }
  return places > kFew && places > kTimes * inside;
}

template <typename T, typename W, typename Sink>
void convolve_as(const Convolution& c, const T* data, const W* filters, const KeepWeights& keep, const Sink& sink) {
  const WindowGeometry& g = c.windows;
  const std::int64_t inner = c.group_channels() * g.taps(), positions = g.out_size(), plane = g.in_size();
  if (inner == 0) return convolve_nothing(c, sink);
  if (c.group_filters() < 4 || sees_little(g)) return convolve_rows(c, data, filters, sink);
  for (std::int64_t n = 0; n < c.batch; ++n) {
    for (std::int64_t group = 0; group < c.groups; ++group) {
      const std::int64_t m = group * c.group_filters();
      const DenseFactor<W> left(filters + m * inner, inner, 1);
      const T* const image = data + (n * c.channels + group * c.group_channels()) * plane;
      if (is_better_turned(c.group_filters(), positions)) {
        convolve_turned(c, filters, Patches<T>(image, g), n, m, keep, sink);
        continue;
      }
      const auto tile_sink = [&](const ProductTile& tile) {
        for (std::int64_t i = 0; i < tile.rows; ++i)
          sink(n, m + tile.row + i, tile.column, tile.columns, tile.elements + i * tile.stride);
      };
      if (is_pointwise(g)) {
        gemm(c.group_filters(), positions, inner, left, DenseFactor<T>(image, plane, 1), c.memory, tile_sink,
             Tiles::kAnyThread);
      } else {
        gemm(c.group_filters(), positions, inner, left, Patches<T>(image, g), c.memory, tile_sink, Tiles::kAnyThread);
      }
    }
  }
}

template <typename Sink>
void convolve(const Convolution& c, const Numbers& data, const Numbers& filters, const KeepWeights& keep,
              const Sink& sink) {
  with_elements(
      data, [&](const auto* x) { with_elements(filters, [&](const auto* w) { convolve_as(c, x, w, keep, sink); }); });
}

/// Filters are operand `index`, and nothing else is in them.
KeepWeights keeps(Evaluation& e, int index) {
  return [&e, index](const Factor& filters, std::int64_t part, std::int64_t k, std::int64_t n) {
    return e.keep_packed(index, part, filters, k, n);
  };
}

ConstantCache::Weights keeps_none(const Factor&, std::int64_t, std::int64_t, std::int64_t) { return nullptr; }

HostTensor& conv_result(Evaluation& e, const HostTensor& data, const HostTensor& filters) {
  return window_result(e, 0, data.extents(), std::span(filters.extents()).subspan(2), filters.extent(0));
}

Convolution convolution_of(Evaluation& e, const HostTensor& data, const HostTensor& filters, const HostTensor& result) {
  const auto kernel = std::span(filters.extents()).subspan(2);
  return {window_geometry(e, data.extents(), kernel, result.extents()),
          data.extent(0),
          data.extent(1),
          filters.extent(0),
          e.in().int_attribute("group", 1),
          e.memory()};
}

void conv(Evaluation& e) {
  const HostTensor &data = e.operand(0), &filters = e.operand(1);
  HostTensor& result = conv_result(e, data, filters);
  if (result.size() == 0) return;
  const Convolution c = convolution_of(e, data, filters, result);
  const std::vector<double> bias = e.has(2) ? e.numbers(2) : std::vector<double>{};
  const std::int64_t positions = c.windows.out_size();
  OperandNumbers weights(e, 1);
  convolve(c, Numbers(data, e.memory()), weights.keep(), keeps(e, 1),
           [&](std::int64_t n, std::int64_t m, std::int64_t first, std::int64_t count, const double* sums) {
             const auto at = static_cast<std::size_t>((n * c.filters + m) * positions + first);
             const auto total = static_cast<std::size_t>(count);
             if (bias.empty()) return store(result, at, total, sums);
             alignas(64) std::array<double, kRow> row;
             for (std::size_t done = 0; done < total; done += kRow) {
               const std::size_t part = std::min(kRow, total - done);
               for (std::size_t i = 0; i < part; ++i) row[i] = sums[done + i] + bias[static_cast<std::size_t>(m)];
               store(result, at + done, part, row.data());
             }
           });
}

/// An integer operand less its zero point: of one element, or one a filter.
std::vector<double> without_zero_point(Evaluation& e, int operand, int zero) {
  std::vector<double> numbers = e.numbers(operand);
  if (!e.has(zero) || numbers.empty()) return numbers;
  const std::vector<double> zeros = e.numbers(zero);
  const std::size_t each = numbers.size() / zeros.size();
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] -= zeros[i / each];
  return numbers;
}

/// Where the row that begins at position `first` of an image's filter is stored.
std::size_t place_of(const Convolution& c, std::int64_t image, std::int64_t filter, std::int64_t first) {
  return static_cast<std::size_t>((image * c.filters + filter) * c.windows.out_size() + first);
}

/// Products of integers below 2^9 are exact in float64, and so are 2^35 of their sums.
void conv_integer(Evaluation& e) {
  const HostTensor &data = e.operand(0), &filters = e.operand(1);
  HostTensor& result = conv_result(e, data, filters);
  if (result.size() == 0) return;
  const Convolution c = convolution_of(e, data, filters, result);
  convolve(c, Numbers(without_zero_point(e, 0, 2)), Numbers(without_zero_point(e, 1, 3)), keeps_none,
           [&](std::int64_t n, std::int64_t m, std::int64_t first, std::int64_t count, const double* sums) {
             store_integers(result, place_of(c, n, m, first), static_cast<std::size_t>(count),
                            [&](std::size_t i) { return truncated(sums[i]); });
           });
}

/// Sums of integers are exact; their scales multiply them in float32, as runtimes do, so that ties round the same way.
void qlinear_conv(Evaluation& e) {
  const HostTensor &data = e.operand(0), &filters = e.operand(3);
  HostTensor& result = conv_result(e, data, filters);
  if (result.size() == 0) return;
  const Convolution c = convolution_of(e, data, filters, result);
  const std::vector<double> bias = e.has(8) ? e.numbers(8) : std::vector<double>{};
  const std::vector<double> filter_scales = e.numbers(4);
  const auto data_scale = static_cast<float>(e.number(1)), result_scale = static_cast<float>(e.number(6));
  const double zero = e.number(7);
  const bool is_signed = result.dtype() == DType::kInt8;
  convolve(c, Numbers(without_zero_point(e, 0, 2)), Numbers(without_zero_point(e, 3, 5)), keeps_none,
           [&](std::int64_t n, std::int64_t m, std::int64_t first, std::int64_t count, const double* sums) {
             const auto filter = static_cast<std::size_t>(m);
             const auto filter_scale = static_cast<float>(filter_scales[filter % filter_scales.size()]);
             const float scale = data_scale * filter_scale / result_scale;
             store_integers(result, place_of(c, n, m, first), static_cast<std::size_t>(count), [&](std::size_t i) {
               const double sum = sums[i] + (bias.empty() ? 0 : bias[filter]);
               const double value = std::nearbyint(static_cast<double>(static_cast<float>(sum) * scale)) + zero;
               return truncated(std::clamp(value, is_signed ? -128.0 : 0.0, is_signed ? 127.0 : 255.0));
             });
           });
}

/// Pads of ConvTranspose, from the extents of its result. Opset 11 and later: with an output_shape SAME_UPPER puts the
/// larger half at the end, everything else at the beginning.
WindowGeometry transposed_geometry(Evaluation& e, const HostTensor& data, const HostTensor& filters,
                                   const HostTensor& result) {
  // Data and result change places: windows over the result, one an element of the data.
  const auto kernel = std::span(filters.extents()).subspan(2);
  WindowGeometry g = window_geometry(e, result.extents(), kernel, data.extents());
  const auto windows = ops::read_windows(e.in(), g.rank());
  const auto padding = ops::spatial_attribute(e.in(), "output_padding", g.rank(), 0, 0);
  const auto wanted = e.in().ints_attribute("output_shape");
  constexpr std::int64_t kMostPadding = std::int64_t{1} << 30;
  if (!windows || !padding || std::ranges::any_of(*padding, [](std::int64_t each) { return each > kMostPadding; }))
    e.fail("output_padding has a number that is negative or too large");
  const bool upper = windows->padding == ops::Padding::kSameUpper;
  if (windows->padding == ops::Padding::kValid) std::ranges::fill(g.begin_pads, 0);
  if ((!wanted || wanted->empty()) && !upper && windows->padding != ops::Padding::kSameLower) return g;
  for (std::size_t axis = 0; axis < g.rank(); ++axis) {
    const std::int64_t window = (g.kernel[axis] - 1) * g.dilations[axis] + 1;
    const std::int64_t reach = (g.out[axis] - 1) * g.strides[axis] + (*padding)[axis] + window;
    const std::int64_t total = std::max<std::int64_t>(reach - g.in[axis], 0);
    g.begin_pads[axis] = upper ? total / 2 : total - total / 2;
  }
  return g;
}

/// Adds products of one filter element and positions [column, column + count) of the data to the image they make.
void add_to_image(const WindowGeometry& g, std::int64_t tap, std::int64_t column, std::int64_t count,
                  const double* products, double* image) {
  const std::size_t inner = g.rank() - 1;
  const std::int64_t width = g.out[inner], stride = g.strides[inner];
  std::vector<std::int64_t> element(g.rank());
  for (std::size_t axis = g.rank(); axis-- > 0; tap /= g.kernel[axis]) element[axis] = tap % g.kernel[axis];
  const std::int64_t shift = g.shift(inner, element[inner]);
  const auto [first, end] = g.inside(inner, shift, 0, g.in[inner]);
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t x = (column + done) % width, run = std::min(count - done, width - x);
    std::int64_t row = (column + done) / width, at = 0, scale = 1;
    bool is_inside = true;
    for (std::size_t axis = inner; axis-- > 0; row /= g.out[axis]) {
      const std::int64_t position = row % g.out[axis] * g.strides[axis] + g.shift(axis, element[axis]);
      is_inside = is_inside && position >= 0 && position < g.in[axis];
      at += position * scale;
      scale *= g.in[axis];
    }
    at = at * g.in[inner] + shift;
    for (std::int64_t i = std::max(first, x); is_inside && i < std::min(end, x + run); ++i)
      image[at + i * stride] += products[done + i - x];
    done += run;
  }
}

/// Runtimes disagree on SAME_* with windows smaller than their stride: the specification multiplies extents by strides.
HostTensor& transposed_result(Evaluation& e, const HostTensor& data, const HostTensor& filters) {
  const auto windows = ops::read_windows(e.in(), data.rank() - 2);
  const std::optional<DType> dtype = e.type_of_result().dtype;
  const bool is_same =
      windows && (windows->padding == ops::Padding::kSameUpper || windows->padding == ops::Padding::kSameLower);
  if (e.type_of_result().shape || !dtype || !is_same) return e.result();
  Extents extents{data.extent(0), filters.extent(1) * e.in().int_attribute("group", 1)};
  for (std::size_t axis = 2; axis < data.rank(); ++axis)
    extents.push_back(data.extent(axis) * windows->strides[axis - 2]);
  return e.allocate(0, *dtype, std::move(extents));
}

void conv_transpose(Evaluation& e) {
  const HostTensor &data = e.operand(0), &filters = e.operand(1);
  HostTensor& result = transposed_result(e, data, filters);
  if (result.size() == 0) return;
  const WindowGeometry g = transposed_geometry(e, data, filters, result);
  const std::int64_t groups = e.in().int_attribute("group", 1), batch = data.extent(0);
  const std::int64_t channels = data.extent(1) / groups, group_filters = filters.extent(1), taps = g.taps();
  const std::int64_t positions = g.out_size(), plane = g.in_size();
  const std::vector<double> bias = e.has(2) ? e.numbers(2) : std::vector<double>{};
  OperandNumbers weights(e, 1);
  const Numbers x(data, e.memory()), &w = weights.keep();
  List<double> image(static_cast<std::size_t>(group_filters * plane), e.memory().resource());
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t group = 0; group < groups; ++group) {
      for (std::int64_t m = 0; m < group_filters; ++m)
        std::fill_n(image.begin() + m * plane, plane,
                    bias.empty() ? 0.0 : bias[static_cast<std::size_t>(group * group_filters + m)]);
      gemm(group_filters * taps, positions, channels,
           {&w, group * channels * group_filters * taps, 1, group_filters * taps},
           {&x, (n * groups + group) * channels * positions, positions, 1}, e.memory(), [&](const ProductTile& tile) {
             for (std::int64_t i = 0; i < tile.rows; ++i) {
               const std::int64_t row = tile.row + i;
               add_to_image(g, row % taps, tile.column, tile.columns, tile.elements + i * tile.stride,
                            image.data() + row / taps * plane);
             }
           });
      store(result, static_cast<std::size_t>((n * groups + group) * group_filters * plane), image.size(), image.data());
    }
  }
}

/// Patches whose elements lie off the grid, at positions that offsets move, each times its mask.
class DeformedPatches : public Factor {
 public:
  struct Operands {
    const Numbers *data, *offsets, *mask;
    std::int64_t channels, groups, offset_groups;
    Memory& memory;
  };
  DeformedPatches(const Operands& operands, const WindowGeometry& windows, std::int64_t n, std::int64_t first_channel)
      : operands_(operands), windows_(windows), image_(n), first_channel_(first_channel) {}

  void pack(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns, double* to,
            std::int64_t row_step, std::int64_t column_step) const override {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) to[i * row_step + j * column_step] = element(row + i, column + j);
  }

 private:
  double element(std::int64_t row, std::int64_t position) const {
    const std::int64_t taps = windows_.taps(), positions = windows_.out_size(), tap = row % taps;
    const std::int64_t channel = first_channel_ + row / taps;
    const std::int64_t group = channel / (operands_.channels / operands_.offset_groups);
    const auto axes = static_cast<std::int64_t>(windows_.rank());
    const std::int64_t first = (image_ * operands_.offset_groups + group) * taps + tap;
    std::vector<double> at(windows_.rank());
    std::int64_t window = position, element = tap;
    for (std::size_t axis = windows_.rank(); axis-- > 0;) {
      const std::int64_t o = window % windows_.out[axis], k = element % windows_.kernel[axis];
      window /= windows_.out[axis];
      element /= windows_.kernel[axis];
      const std::int64_t offset = (first * axes + static_cast<std::int64_t>(axis)) * positions + position;
      at[axis] = static_cast<double>(o * windows_.strides[axis] + windows_.shift(axis, k)) +
                 (*operands_.offsets)[static_cast<std::size_t>(offset)];
    }
    const double value = interpolated(at, (image_ * operands_.channels + channel) * windows_.in_size());
    if (operands_.mask == nullptr) return value;
    return value * (*operands_.mask)[static_cast<std::size_t>(first * positions + position)];
  }

  /// Linear along each axis; 0 outside of the image.
  double interpolated(const std::vector<double>& at, std::int64_t first) const {
    struct Corner {
      std::int64_t index = 0;
      double weight = 1;
    };
    // Corners outside of the image are left out axis by axis: there are no more than elements, whatever the rank.
    List<Corner> corners({{}}, operands_.memory.resource()), next(operands_.memory.resource());
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      const double below = std::floor(at[axis]), share = at[axis] - below;
      next.clear();
      for (const Corner& corner : corners)
        for (const bool upper : {false, true}) {
          const double position = upper ? below + 1 : below, weight = upper ? share : 1 - share;
          // The share of an infinite position is NaN, and so would its product with 0 be.
          if (position >= 0 && position < static_cast<double>(windows_.in[axis]) && weight != 0)
            next.push_back(
                {corner.index * windows_.in[axis] + static_cast<std::int64_t>(position), corner.weight * weight});
        }
      corners.swap(next);
    }
    double sum = 0;
    for (const Corner& corner : corners)
      sum += corner.weight * (*operands_.data)[static_cast<std::size_t>(first + corner.index)];
    return sum;
  }

  const Operands& operands_;
  const WindowGeometry& windows_;
  std::int64_t image_, first_channel_;
};

void deform_conv(Evaluation& e) {
  const HostTensor &data = e.operand(0), &filters = e.operand(1);
  HostTensor& result = conv_result(e, data, filters);
  if (result.size() == 0) return;
  const Convolution c = convolution_of(e, data, filters, result);
  const Numbers x(data, e.memory()), w(filters, e.memory()), offsets(e.operand(2), e.memory()),
      mask(e.has(4) ? e.operand(4) : e.operand(2), e.memory());
  const std::vector<double> bias = e.has(3) ? e.numbers(3) : std::vector<double>{};
  const DeformedPatches::Operands operands{&x,         &offsets, e.has(4) ? &mask : nullptr,
                                           c.channels, c.groups, e.in().int_attribute("offset_group", 1),
                                           e.memory()};
  const std::int64_t inner = c.group_channels() * c.windows.taps(), positions = c.windows.out_size();
  std::vector<double> row;
  const auto convolve_group = [&](const Factor& left, std::int64_t n, std::int64_t group) {
    const std::int64_t m = group * c.group_filters();
    gemm(c.group_filters(), positions, inner, left, DeformedPatches(operands, c.windows, n, group * c.group_channels()),
         c.memory, [&](const ProductTile& tile) {
           for (std::int64_t i = 0; i < tile.rows; ++i) {
             const std::int64_t filter = m + tile.row + i;
             row.assign(tile.elements + i * tile.stride, tile.elements + i * tile.stride + tile.columns);
             if (!bias.empty())
               for (double& sum : row) sum += bias[static_cast<std::size_t>(filter)];
             store(result, static_cast<std::size_t>((n * c.filters + filter) * positions + tile.column), row.size(),
                   row.data());
           }
         });
  };
  for (std::int64_t n = 0; n < c.batch; ++n)
    for (std::int64_t group = 0; group < c.groups; ++group)
      with_elements(w, [&](const auto* elements) {
        convolve_group(DenseFactor(elements + group * c.group_filters() * inner, inner, 1), n, group);
      });
}

const RegisterEvaluators kConvolutions{
    Evaluator("Conv").evaluate(conv).error(Rounding::accumulates(terms_of_filters<0>)),
    Evaluator("ConvInteger").evaluate(conv_integer).error(Rounding::exact()),
    Evaluator("QLinearConv").evaluate(qlinear_conv).error(Rounding::composite()),
    Evaluator("ConvTranspose").evaluate(conv_transpose).error(Rounding::accumulates(terms_of_filters<1>)),
    Evaluator("DeformConv").evaluate(deform_conv).error(Rounding::composite()),
};

}  // namespace
}  // namespace tensorlint::runtime
