#include "runtime/interpreter/window_geometry.h"

namespace tensorlint::runtime {
namespace {

/// Positions in windows are sums of products of two of these: with 31 bits each they fit.
void check_sizes(const Evaluation& e, const WindowGeometry& g) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  constexpr std::int64_t kMostTaps = std::int64_t{1} << 26;  // along one axis
  for (std::size_t axis = 0; axis < g.rank(); ++axis) {
    for (const auto* list : {&g.strides, &g.dilations, &g.begin_pads, &g.end_pads})
      if ((*list)[axis] < -kMost || (*list)[axis] > kMost)
        e.fail("a stride, dilation or pad of axis {} is {}: too large", axis, (*list)[axis]);
    if (g.kernel[axis] > kMostTaps) e.fail("a window has {} elements along axis {}", g.kernel[axis], axis);
  }
}

}  // namespace

WindowGeometry window_geometry(Evaluation& e, std::span<const std::int64_t> data, std::span<const std::int64_t> kernel,
                               std::span<const std::int64_t> result) {
  WindowGeometry g;
  g.in.assign(data.begin() + 2, data.end());
  g.out.assign(result.begin() + 2, result.end());
  g.kernel.assign(kernel.begin(), kernel.end());
  auto windows = ops::read_windows(e.in(), g.in.size());
  if (!windows) e.fail("the attributes of its windows do not fit");
  g.strides = std::move(windows->strides);
  g.dilations = std::move(windows->dilations);
  g.begin_pads = std::move(windows->begin_pads);
  g.end_pads = std::move(windows->end_pads);
  check_sizes(e, g);
  if (windows->padding == ops::Padding::kExplicit) return g;
  for (std::size_t axis = 0; axis < g.rank(); ++axis) {
    const std::int64_t reach = (g.out[axis] - 1) * g.strides[axis] + (g.kernel[axis] - 1) * g.dilations[axis] + 1;
    const std::int64_t total =
        windows->padding == ops::Padding::kValid ? 0 : std::max<std::int64_t>(reach - g.in[axis], 0);
    g.begin_pads[axis] = windows->padding == ops::Padding::kSameLower ? total - total / 2 : total / 2;
    g.end_pads[axis] = total - g.begin_pads[axis];
  }
  return g;
}

HostTensor& window_result(Evaluation& e, int index, std::span<const std::int64_t> data,
                          std::span<const std::int64_t> kernel, std::int64_t channels) {
  const auto dtype = e.dtype_of_result(index);
  const auto windows = ops::read_windows(e.in(), kernel.size());
  if (e.extents_of_result(index) || !dtype || !windows) return e.result(index);
  const bool covers_all = windows->padding == ops::Padding::kSameUpper || windows->padding == ops::Padding::kSameLower;
  Extents extents{data[0], channels};
  for (std::size_t axis = 0; axis < kernel.size(); ++axis) {
    const std::int64_t extent = data[axis + 2], stride = windows->strides[axis];
    const std::int64_t room = extent - (kernel[axis] - 1) * windows->dilations[axis] - 1;
    extents.push_back(covers_all ? (extent + stride - 1) / stride : room < 0 ? 0 : room / stride + 1);
  }
  return e.allocate(index, *dtype, std::move(extents));
}

}  // namespace tensorlint::runtime
