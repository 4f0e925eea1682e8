#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>
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
  /// The elements of window `window` that lie in [low, high) along the axis: [first, second).
  std::pair<std::int64_t, std::int64_t> elements_inside(std::size_t axis, std::int64_t window, std::int64_t low,
                                                        std::int64_t high) const {
    const std::int64_t step = dilations[axis], begin = window * strides[axis] - begin_pads[axis];
    const std::int64_t first = begin >= low ? 0 : (low - begin + step - 1) / step;
    const std::int64_t end = begin >= high ? 0 : std::min((high - 1 - begin) / step + 1, kernel[axis]);
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
/// end), then done(first element of the row). A window may be far larger than the image: elements that see nothing but
/// padding cost nothing.
template <typename Begin, typename Tap, typename Done>
void for_each_window_row(const WindowGeometry& g, Memory& memory, const Begin& begin, const Tap& tap,
                         const Done& done) {
  const std::size_t outer = g.rank() - 1;
  struct InnerTap {
    std::int64_t k, shift, first, end;
  };
  List<InnerTap> inner_taps(memory.resource());
  std::int64_t seen = 0;  // elements that an earlier window of the row has in the image
  for (std::int64_t window = g.out[outer]; window-- > 0;) {
    auto [k, last] = g.elements_inside(outer, window, 0, g.in[outer]);
    for (k = std::max(k, seen); k < last; ++k) {
      const auto [first, end] = g.inside(outer, g.shift(outer, k), 0, g.in[outer]);
      inner_taps.push_back({k, g.shift(outer, k), first, end});
    }
    seen = std::max(seen, last);
  }
  struct OuterAxis {
    std::int64_t at_step, index_step;  // from one element to the next
    std::int64_t k = 0, first = 0, end = 0;
  };
  std::vector<OuterAxis> axes(outer);
  std::int64_t elements = g.in[outer], index_step = g.kernel[outer];
  for (std::size_t axis = outer; axis-- > 0;) {
    axes[axis] = {elements * g.dilations[axis], index_step};
    elements *= g.in[axis];
    index_step *= g.kernel[axis];
  }
  Offsets<1> row(std::span(g.out).first(outer));
  if (row.is_empty()) return;
  std::int64_t first_element = 0;
  do {
    begin();
    bool is_left = !inner_taps.empty();
    std::int64_t at = 0, index = 0;
    for (std::size_t axis = 0; axis < outer && is_left; ++axis) {
      OuterAxis& each = axes[axis];
      std::tie(each.first, each.end) = g.elements_inside(axis, row.index()[axis], 0, g.in[axis]);
      is_left = each.first < each.end;
      each.k = each.first;
      const std::int64_t begins = row.index()[axis] * g.strides[axis] - g.begin_pads[axis];
      at += each.at_step / g.dilations[axis] * begins + each.first * each.at_step;
      index += each.first * each.index_step;
    }
    while (is_left) {
      for (const InnerTap& each : inner_taps) tap(index + each.k, at + each.shift, each.first, each.end);
      is_left = false;
      for (std::size_t axis = outer; axis-- > 0 && !is_left;) {
        OuterAxis& each = axes[axis];
        is_left = ++each.k < each.end;
        const std::int64_t steps = is_left ? 1 : each.first - each.end + 1;
        if (!is_left) each.k = each.first;
        at += steps * each.at_step;
        index += steps * each.index_step;
      }
    }
    done(first_element);
    first_element += g.out[outer];
  } while (row.next());
}

}  // namespace tensorlint::runtime
