#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "ir/ops/windows.h"
#include "runtime/interpreter/evaluation.h"
#include "runtime/values/offsets.h"

namespace tensorlint::runtime {

/// Windows over the spatial axes of one image: element `k` of the window at `o` lies at o * stride - begin + k *
/// dilation.
struct WindowGeometry {
  std::vector<std::int64_t> in, out, kernel, strides, dilations, begin_pads, end_pads;  ///< one a spatial axis

  std::size_t rank() const { return in.size(); }
  std::int64_t in_size() const { return product(in); }
  std::int64_t out_size() const { return product(out); }
  std::int64_t taps() const { return product(kernel); }
  /// Where element `k` of window 0 lies.
  std::int64_t shift(std::size_t axis, std::int64_t k) const { return k * dilations[axis] - begin_pads[axis]; }
  /// The windows whose element at `shift` lies in [low, high): [first, second).
  std::pair<std::int64_t, std::int64_t> inside(std::size_t axis, std::int64_t shift, std::int64_t low,
                                               std::int64_t high) const {
    const std::int64_t stride = strides[axis], before = low - shift, last = high - 1 - shift;
    const std::int64_t first = before <= 0 ? 0 : (before + stride - 1) / stride;
    const std::int64_t end = last < 0 ? 0 : std::min(last / stride + 1, out[axis]);
    return {std::min(first, end), end};
  }
  static std::int64_t product(std::span<const std::int64_t> extents) {
    std::int64_t result = 1;
    for (const std::int64_t extent : extents) result *= extent;
    return result;
  }
};

/// The windows of a convolution or a pool over `data` [N, C, d...] whose result [N, C', d...] inference has worked out.
/// Errors: attributes that do not fit, or whose numbers are too large.
Result<WindowGeometry> window_geometry(ops::Inference& in, std::span<const std::int64_t> data,
                                       std::span<const std::int64_t> kernel, std::span<const std::int64_t> result);
/// The same, of an evaluation, which an error ends.
WindowGeometry window_geometry(Evaluation& e, std::span<const std::int64_t> data, std::span<const std::int64_t> kernel,
                               std::span<const std::int64_t> result);

/// Allocates result `index` of windows over `data`, with `channels`. Where inference leaves extents open since runtimes
/// disagree on auto_pad, they are those of the specification.
HostTensor& window_result(Evaluation& e, int index, std::span<const std::int64_t> data,
                          std::span<const std::int64_t> kernel, std::int64_t channels);

/// Rows of the result, along its innermost axis. For each: begin(), then tap(index of the element in the window, where
/// that element lies for window 0 of the row, first, end) for each element that lies in the image for windows [first,
/// end), then done(first element of the row).
template <typename Begin, typename Tap, typename Done>
void for_each_window_row(const WindowGeometry& g, Memory& memory, const Begin& begin, const Tap& tap,
                         const Done& done) {
  const std::size_t outer = g.rank() - 1;
  const std::int64_t inner = g.kernel[outer];
  struct InnerTap {
    std::int64_t k, shift, first, end;
  };
  // A window may be far longer than the image: most of its elements then see nothing but padding.
  List<InnerTap> inner_taps(memory.resource());
  for (std::int64_t k = 0; k < inner; ++k) {
    const auto [first, end] = g.inside(outer, g.shift(outer, k), 0, g.in[outer]);
    if (first < end) inner_taps.push_back({k, g.shift(outer, k), first, end});
  }
  Offsets<1> row(std::span(g.out).first(outer)), window(std::span(g.kernel).first(outer));
  if (row.is_empty()) return;
  std::int64_t first_element = 0;
  do {
    begin();
    std::int64_t index = 0;
    for (bool is_left = !window.is_empty(); is_left; is_left = window.next()) {
      std::int64_t at = 0;
      bool is_inside = true;
      for (std::size_t axis = 0; axis < outer; ++axis) {
        const std::int64_t position = row.index()[axis] * g.strides[axis] + g.shift(axis, window.index()[axis]);
        is_inside = is_inside && position >= 0 && position < g.in[axis];
        at = at * g.in[axis] + position;
      }
      if (is_inside)
        for (const InnerTap& each : inner_taps)
          tap(index + each.k, at * g.in[outer] + each.shift, each.first, each.end);
      index += inner;
    }
    done(first_element);
    first_element += g.out[outer];
  } while (row.next());
}

}  // namespace tensorlint::runtime
