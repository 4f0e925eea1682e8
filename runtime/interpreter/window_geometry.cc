#include "runtime/interpreter/window_geometry.h"

namespace tensorlint::runtime {
namespace {

/// Positions in windows are sums of products of two of these: with 31 bits each they fit.
std::optional<Error> too_large(const ops::Windows& windows, std::span<const std::int64_t> kernel) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  constexpr std::int64_t kMostTaps = std::int64_t{1} << 26;  // along one axis
  for (std::size_t axis = 0; axis < kernel.size(); ++axis) {
    for (const auto* list : {&windows.strides, &windows.dilations, &windows.begin_pads, &windows.end_pads})
      if ((*list)[axis] < -kMost || (*list)[axis] > kMost)
        return Error{fmt::format("a stride, dilation or pad of axis {} is {}: too large", axis, (*list)[axis]), {}};
    if (kernel[axis] > kMostTaps)
      return Error{fmt::format("a window has {} elements along axis {}", kernel[axis], axis), {}};
  }
  return std::nullopt;
}

/// Windows along one axis, as inference counts them. A window larger than what it moves over: none.
std::int64_t window_count(const ops::Windows& windows, std::size_t axis, std::int64_t extent, std::int64_t kernel) {
  const bool is_explicit = windows.padding == ops::Padding::kExplicit;
  const std::int64_t stride = windows.strides[axis], begin = is_explicit ? windows.begin_pads[axis] : 0;
  const std::int64_t padded = extent + begin + (is_explicit ? windows.end_pads[axis] : 0);
  if (windows.padding == ops::Padding::kSameUpper || windows.padding == ops::Padding::kSameLower)
    return (extent + stride - 1) / stride;
  const std::int64_t room = padded - (kernel - 1) * windows.dilations[axis] - 1;
  if (room < 0) return 0;
  if (!is_explicit || !windows.ceil) return room / stride + 1;
  const std::int64_t raised = (room + stride - 1) / stride + 1;
  return (raised - 1) * stride >= extent + begin ? raised - 1 : raised;
}

}  // namespace

Result<WindowGeometry> window_geometry(ops::Inference& in, std::span<const std::int64_t> data,
                                       std::span<const std::int64_t> kernel, std::span<const std::int64_t> result) {
  WindowGeometry g;
  g.in.assign(data.begin() + 2, data.end());
  g.out.assign(result.begin() + 2, result.end());
  g.kernel.assign(kernel.begin(), kernel.end());
  auto windows = ops::read_windows(in, g.in.size());
  if (!windows) return Error{"the attributes of its windows do not fit", {}};
  if (auto error = too_large(*windows, g.kernel)) return *std::move(error);
  g.strides = std::move(windows->strides);
  g.dilations = std::move(windows->dilations);
  g.begin_pads = std::move(windows->begin_pads);
  g.end_pads = std::move(windows->end_pads);
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

WindowGeometry window_geometry(Evaluation& e, std::span<const std::int64_t> data, std::span<const std::int64_t> kernel,
                               std::span<const std::int64_t> result) {
  Result<WindowGeometry> found = window_geometry(e.in(), data, kernel, result);
  if (!found) e.fail("{}", found.error().message);
  return *std::move(found);
}

HostTensor& window_result(Evaluation& e, int index, std::span<const std::int64_t> data,
                          std::span<const std::int64_t> kernel, std::int64_t channels) {
  const std::optional<DType> dtype = e.type_of_result(index).dtype;
  const auto windows = ops::read_windows(e.in(), kernel.size());
  if (e.type_of_result(index).shape || !dtype || !windows) return e.result(index);
  if (const auto error = too_large(*windows, kernel)) e.fail("{}", error->message);
  Extents extents{data[0], channels};
  for (std::size_t axis = 0; axis < kernel.size(); ++axis) {
    // Along an axis of a tensor without elements.
    if (data[axis + 2] > std::int64_t{1} << 48) e.fail("axis {} has {} elements: too many", axis + 2, data[axis + 2]);
    extents.push_back(window_count(*windows, axis, data[axis + 2], kernel[axis]));
  }
  return e.allocate(index, *dtype, std::move(extents));
}

}  // namespace tensorlint::runtime
