// Convolutions and pools. Their windows are those of the interpreter: read and placed by the same functions.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/executor/kernel_matcher.h"
#include "runtime/interpreter/window_geometry.h"

namespace tensorlint::runtime {

bool KernelMatcher::add_window(NodeId node, std::string_view name) {
  if (name == "Conv") return add_convolution(node), true;
  if (name == "MaxPool" || name == "AveragePool") return add_pool(node, name == "MaxPool"), true;
  if (name == "GlobalAveragePool") return add_global_pool(node, kernels::ReductionKind::kMean, "reduce mean"), true;
  if (name == "GlobalMaxPool") return add_global_pool(node, kernels::ReductionKind::kMax, "reduce max"), true;
  return false;
}

bool KernelMatcher::read_axes(NodeId node, const Extents& data, std::span<const std::int64_t> kernel,
                              const Extents& result, kernels::WindowAxis (&axes)[kernels::kWindowAxes]) {
  const auto refuse = [&](std::string reason) { return leave(node, std::move(reason)), false; };
  if (data.size() != kernel.size() + 2 || result.size() != data.size() || kernel.empty())
    return refuse("its operands do not fit");
  if (kernel.size() > kernels::kWindowAxes)
    return refuse(fmt::format("there is no kernel for {} spatial axes", kernel.size()));
  const dataflow::Analysis::NodeApplication call(analysis_, node);
  ops::InferenceResult unused;
  ops::Inference in(*call, unused);
  const Result<WindowGeometry> windows = window_geometry(in, data, kernel, result);
  if (!windows) return refuse(windows.error().message);
  // A thread walks its whole window, the interpreter what lies in the image.
  constexpr double kAlways = 1 << 12, kPerPlace = 16;
  double taps = 1, places = 1;
  for (std::size_t axis = 0; axis < kernel.size(); ++axis) {
    taps *= static_cast<double>(windows->kernel[axis]);
    places *= static_cast<double>(windows->in[axis]);
  }
  if (taps > kAlways + kPerPlace * places) return refuse("its windows are much larger than its images");
  const std::size_t first = kernels::kWindowAxes - kernel.size();
  for (std::size_t axis = 0; axis < kernel.size(); ++axis) {
    axes[first + axis] = {.in = windows->in[axis],
                          .out = windows->out[axis],
                          .kernel = windows->kernel[axis],
                          .stride = windows->strides[axis],
                          .dilation = windows->dilations[axis],
                          .begin = windows->begin_pads[axis],
                          .end = windows->end_pads[axis]};
    if (!kernels::is_within_limit(axes[first + axis])) return refuse("its windows are too large for a kernel");
  }
  return true;
}

void KernelMatcher::add_convolution(NodeId node) {
  const ValueId data = expressions_.operand(node, 0), filters = expressions_.operand(node, 1),
                bias = expressions_.operand(node, 2);
  const auto type = dtype(data);
  const auto shape = extents(data), weights = extents(filters), result = extents(expressions_.result(node));
  if (!type || !shape || !weights || !result) return leave(node, "its extents are not known before the run");
  if (!float_dtype(*type)) return leave(node, fmt::format("there is no kernel for {}", DTypeSet(*type).to_text()));
  if (shape->size() < 3 || weights->size() != shape->size()) return leave(node, "its operands do not fit");
  kernels::Convolution request;
  if (!read_axes(node, *shape, std::span(*weights).subspan(2), *result, request.axes)) return;
  const Attribute* const group = model_.attribute(model_.node(node), "group");
  request.dtype = *float_dtype(*type);
  request.batch = (*shape)[0];
  request.channels = (*shape)[1];
  request.filters = (*weights)[0];
  request.groups = group == nullptr ? 1 : group->i;
  const bool has_bias = bias != ValueId::kAbsent;
  if (request.groups < 1 || request.filters % request.groups != 0 ||
      request.channels != (*weights)[1] * request.groups || (*result)[0] != request.batch ||
      (*result)[1] != request.filters || dtype(filters) != type ||
      (has_bias && (dtype(bias) != type || extents(bias) != Extents{request.filters})))
    return leave(node, "its operands do not fit");
  if (count(std::span(*weights).subspan(1)) >= INT32_MAX - 255)
    return leave(node, "its filters are too large for a kernel");
  KernelCall call{.kernel = has_bias ? "convolution, bias" : "convolution",
                  .results = {{.value = expressions_.result(node)}},
                  .operands = {{.value = data}, {.value = filters}, {.value = bias}},
                  .request = request};
  std::vector<ValueId> operands{data, filters};
  if (has_bias) operands.push_back(bias);
  complete(std::move(call), operands, {node});
}

void KernelMatcher::add_pool(NodeId node, bool maximum) {
  const ValueId data = expressions_.operand(node, 0);
  if (needs_more_results(node)) return leave(node, "there is no kernel for its second result");
  const auto type = dtype(data);
  const auto shape = extents(data), result = extents(expressions_.result(node));
  if (!type || !shape || !result) return leave(node, "its extents are not known before the run");
  if (!float_dtype(*type)) return leave(node, fmt::format("there is no kernel for {}", DTypeSet(*type).to_text()));
  const Attribute* const kernel = model_.attribute(model_.node(node), "kernel_shape");
  if (kernel == nullptr) return leave(node, "its attribute kernel_shape is missing");
  kernels::Pooling request;
  if (!read_axes(node, *shape, kernel->ints, *result, request.axes)) return;
  if ((*result)[0] != (*shape)[0] || (*result)[1] != (*shape)[1]) return leave(node, "its operands do not fit");
  const Attribute* const padding = model_.attribute(model_.node(node), "count_include_pad");
  using Kind = kernels::PoolingKind;
  request.kind = maximum                                 ? Kind::kMax
                 : padding != nullptr && padding->i != 0 ? Kind::kAverageWithPadding
                                                         : Kind::kAverage;
  request.dtype = *float_dtype(*type);
  request.images = (*shape)[0] * (*shape)[1];
  KernelCall call{.kernel = maximum ? "pooling max" : "pooling average",
                  .results = {{.value = expressions_.result(node)}},
                  .operands = {{.value = data}},
                  .request = request};
  const ValueId operands[] = {data};
  complete(std::move(call), operands, {node});
}

/// One window an image: a reduction of the spatial axes.
void KernelMatcher::add_global_pool(NodeId node, kernels::ReductionKind kind, std::string kernel) {
  const ValueId data = expressions_.operand(node, 0);
  const auto type = dtype(data);
  const auto shape = extents(data);
  if (!type || !shape || !extents(expressions_.result(node)))
    return leave(node, "its extents are not known before the run");
  if (!float_dtype(*type)) return leave(node, fmt::format("there is no kernel for {}", DTypeSet(*type).to_text()));
  if (shape->size() < 3) return leave(node, "it reduces no axis");
  if (std::ranges::find(*shape, 0) != shape->end()) return leave(node, "its operand has no elements");
  ReductionCall request{.kind = kind, .extents = *shape, .axes = {}};
  request.dtype = request.result_dtype = *float_dtype(*type);
  for (std::size_t axis = 2; axis < shape->size(); ++axis) request.axes.push_back(static_cast<int>(axis));
  KernelCall call{.kernel = std::move(kernel),
                  .results = {{.value = expressions_.result(node)}},
                  .operands = {{.value = data}},
                  .request = std::move(request)};
  const ValueId operands[] = {data};
  complete(std::move(call), operands, {node});
}

}  // namespace tensorlint::runtime
