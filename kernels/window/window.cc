#include "kernels/window/window.h"

#include <algorithm>

#include "kernels/common/overlap.h"
#include "kernels/common/request.h"
#include "kernels/product/product.h"
#include "kernels/window/dispatch.h"

namespace tensorlint::kernels {
namespace {

/// Fewer filters of a group than this leave most of a tile's rows empty.
constexpr std::int64_t kFewFilters = 4;
constexpr std::int64_t kMostBlocks = 65536;

Status check_axes(const WindowAxis (&axes)[kWindowAxes]) {
  for (const WindowAxis& axis : axes) {
    for (const std::int64_t number : {axis.in, axis.out, axis.kernel, axis.begin, axis.end})
      if (number < 0) return number == axis.begin || number == axis.end ? Status::kBadParameter : Status::kBadShape;
    if (axis.stride < 1 || axis.dilation < 1) return Status::kBadParameter;
    if (!is_within_limit(axis)) return Status::kBadShape;
  }
  return Status::kOk;
}

std::int64_t extent_of(const WindowAxis (&axes)[kWindowAxes], std::int64_t WindowAxis::* extent) {
  return axes[0].*extent * (axes[1].*extent);
}

WindowSteps steps_of(const WindowAxis& axis) {
  return {static_cast<std::int32_t>(axis.in), static_cast<std::int32_t>(axis.stride),
          static_cast<std::int32_t>(axis.dilation), static_cast<std::int32_t>(axis.begin)};
}

unsigned blocks_of(std::int64_t elements) {
  return static_cast<unsigned>(std::min(ceil_div(elements, kThreads), kMostBlocks));
}

/// Each window is one element, and they are those of the data in order.
bool is_product(const Convolution& request) {
  for (const WindowAxis& axis : request.axes)
    if (axis.kernel != 1 || axis.stride != 1 || axis.begin != 0 || axis.in != axis.out) return false;
  return true;
}

Status convolve_as_product(const Convolution& request, Stream stream) {
  MatrixProduct product;
  product.dtype = request.dtype;
  product.m = request.filters / request.groups;
  product.k = request.channels / request.groups;
  product.n = extent_of(request.axes, &WindowAxis::in);
  product.batch_rank = 2;
  product.batch[0] = request.batch;
  product.batch[1] = request.groups;
  product.a = {request.weight, product.k, 1, {0, product.m * product.k}};
  product.b = {request.data, product.n, 1, {request.channels * product.n, product.k * product.n}};
  if (request.bias != nullptr) product.addend = {request.bias, 1, 0, {0, product.m}};
  product.result = request.result;
  return matrix_product(product, stream);
}

template <typename T>
Status convolve_tiled(const Convolution& request, const ProductPlan& plan, Stream stream) {
  ConvolutionParameters<T> p;
  const WindowAxis &rows = request.axes[0], &columns = request.axes[1];
  const std::int64_t window = rows.kernel * columns.kernel, depth = request.channels / request.groups * window;
  p.plan = plan;
  p.by_tiles = Divisor::of(plan.row_tiles * plan.column_tiles);
  p.by_columns = Divisor::of(plan.column_tiles);
  p.by_groups = Divisor::of(request.groups);
  p.filters.data = static_cast<const T*>(request.weight);
  p.filters.position = depth;
  p.filters.depth = 1;
  p.filters.walk = StridedFactor<T>::Walk::kAlongDepth;
  p.filters.aligned = depth % Vector<T>::kSize == 0 && is_aligned(request.weight, 16);
  p.patches.data = static_cast<const T*>(request.data);
  p.patches.rows = steps_of(rows);
  p.patches.columns = steps_of(columns);
  p.patches.by_width = Divisor::of(columns.out);
  p.patches.by_window = SmallDivisor::of(static_cast<std::int32_t>(std::max<std::int64_t>(window, 1)));
  p.patches.by_columns = SmallDivisor::of(static_cast<std::int32_t>(std::max<std::int64_t>(columns.kernel, 1)));
  p.patches.plane = rows.in * columns.in;
  p.patches.depth = static_cast<std::int32_t>(depth);
  p.result.data = static_cast<T*>(request.result);
  p.result.addend = static_cast<const T*>(request.bias);
  p.result.addend_row = 1;
  p.result.m = request.filters / request.groups;
  p.result.n = rows.out * columns.out;
  p.result.aligned =
      p.result.n % kQuad == 0 && is_aligned(request.result, std::min<std::size_t>(16, kQuad * sizeof(T)));
  p.group_data = request.channels / request.groups * p.patches.plane;
  return launch_convolution<T>(p, stream);
}

template <typename T>
Status convolve_few(const Convolution& request, std::int64_t results, Stream stream) {
  FewFiltersParameters<T> p;
  const WindowAxis &rows = request.axes[0], &columns = request.axes[1];
  p.data = static_cast<const T*>(request.data);
  p.weight = static_cast<const T*>(request.weight);
  p.bias = static_cast<const T*>(request.bias);
  p.result = static_cast<T*>(request.result);
  p.rows = steps_of(rows);
  p.columns = steps_of(columns);
  p.kernel_rows = static_cast<std::int32_t>(rows.kernel);
  p.kernel_columns = static_cast<std::int32_t>(columns.kernel);
  p.by_width = Divisor::of(columns.out);
  p.by_positions = Divisor::of(rows.out * columns.out);
  p.by_filters = Divisor::of(request.filters);
  p.by_group_filters = Divisor::of(request.filters / request.groups);
  p.plane = rows.in * columns.in;
  p.channels = request.channels;
  p.group_channels = request.channels / request.groups;
  p.elements = results;
  return launch_few_filters<T>(p, blocks_of(results), stream);
}

template <typename T>
Status pool(const Pooling& request, std::int64_t results, Stream stream) {
  PoolingParameters<T> p;
  const WindowAxis &rows = request.axes[0], &columns = request.axes[1];
  p.data = static_cast<const T*>(request.data);
  p.result = static_cast<T*>(request.result);
  p.rows = steps_of(rows);
  p.columns = steps_of(columns);
  p.kernel_rows = static_cast<std::int32_t>(rows.kernel);
  p.kernel_columns = static_cast<std::int32_t>(columns.kernel);
  p.counts_padding = request.kind == PoolingKind::kAverageWithPadding;
  p.counted_rows = static_cast<std::int32_t>(rows.in + (p.counts_padding ? rows.end : 0));
  p.counted_columns = static_cast<std::int32_t>(columns.in + (p.counts_padding ? columns.end : 0));
  p.by_width = Divisor::of(columns.out);
  p.by_positions = Divisor::of(rows.out * columns.out);
  p.plane = rows.in * columns.in;
  p.elements = results;
  return launch_pooling<T>(request.kind == PoolingKind::kMax, p, blocks_of(results), stream);
}

}  // namespace

Status convolution(const Convolution& request, Stream stream) {
  if (!is_real(request.dtype)) return Status::kUnsupportedDtype;
  if (const Status status = check_axes(request.axes); status != Status::kOk) return status;
  if (request.batch < 0 || request.channels < 0 || request.filters < 0) return Status::kBadShape;
  if (request.groups < 1 || request.channels % request.groups != 0 || request.filters % request.groups != 0)
    return Status::kBadParameter;
  const std::int64_t plane = extent_of(request.axes, &WindowAxis::in);
  const std::int64_t window = extent_of(request.axes, &WindowAxis::kernel);
  const std::int64_t positions = extent_of(request.axes, &WindowAxis::out);
  const std::int64_t group_channels = request.channels / request.groups;
  constexpr std::int64_t kMostDepth = 0x7fffff00;  // its steps stay below 2^31

  if (!product_fits(request.batch, request.channels, plane) || !product_fits(group_channels, window, 1) ||
      group_channels * window > kMostDepth || !product_fits(request.filters, group_channels * window, 1) ||
      !product_fits(request.batch, request.filters, positions))
    return Status::kBadShape;
  const std::int64_t results = request.batch * request.filters * positions;
  if (results == 0) return Status::kOk;
  const std::int64_t data = request.batch * request.channels * plane;
  const std::int64_t weight = request.filters * group_channels * window;
  const Pointer pointers[] = {
      {request.data, data > 0}, {request.weight, weight > 0}, {request.bias, false}, {request.result, true}};
  const std::size_t size = size_of(request.dtype);
  if (const Status status = check_pointers(pointers, size); status != Status::kOk) return status;
  const auto bytes = [&](std::int64_t elements) { return static_cast<std::size_t>(elements) * size; };
  const Region regions[] = {{request.data, bytes(data)},
                            {request.weight, bytes(weight)},
                            {request.bias, bytes(request.filters)},
                            {request.result, bytes(results), true}};
  if (const Status status = check_overlap(regions); status != Status::kOk) return status;
  if (is_product(request)) return convolve_as_product(request, stream);
  const std::int64_t group_filters = request.filters / request.groups;
  return with_real(request.dtype, [&](auto element) -> Status {
    using T = decltype(element);
    if (group_filters < kFewFilters) return convolve_few<T>(request, results, stream);
    ProductPlan plan;
    if (const Status status =
            plan_product(group_filters, positions, request.batch * request.groups, request.dtype, &plan);
        status != Status::kOk)
      return status;
    return convolve_tiled<T>(request, plan, stream);
  });
}

Status pooling(const Pooling& request, Stream stream) {
  if (!is_real(request.dtype)) return Status::kUnsupportedDtype;
  if (const Status status = check_axes(request.axes); status != Status::kOk) return status;
  const std::int64_t plane = extent_of(request.axes, &WindowAxis::in);
  const std::int64_t positions = extent_of(request.axes, &WindowAxis::out);
  if (!product_fits(request.images, plane, 1) || !product_fits(request.images, positions, 1)) return Status::kBadShape;
  const std::int64_t results = request.images * positions, data = request.images * plane;
  if (results == 0) return Status::kOk;
  const Pointer pointers[] = {{request.data, data > 0}, {request.result, true}};
  const std::size_t size = size_of(request.dtype);
  if (const Status status = check_pointers(pointers, size); status != Status::kOk) return status;
  const Region regions[] = {{request.data, static_cast<std::size_t>(data) * size},
                            {request.result, static_cast<std::size_t>(results) * size, true}};
  if (const Status status = check_overlap(regions); status != Status::kOk) return status;
  return with_real(request.dtype, [&](auto element) { return pool<decltype(element)>(request, results, stream); });
}

}  // namespace tensorlint::kernels
