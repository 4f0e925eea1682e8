#include "kernels/attention/attention.h"

#include <algorithm>

#include "kernels/attention/dispatch.h"
#include "kernels/common/overlap.h"
#include "kernels/common/request.h"
#include "kernels/product/operands.h"

namespace tensorlint::kernels {
namespace {

constexpr std::int64_t kMostAttentionBlocks = 0x7fffffff;
constexpr std::int64_t kMostCausalOffset = std::int64_t{1} << 40;

/// Each step of the result is at least as long as all that the smaller steps reach.
bool rows_lie_apart(const Attention& request) {
  struct Axis {
    std::int64_t stride;
    std::int64_t extent;
  };
  Axis axes[kMaxBatchAxes + 2] = {{1, request.value_width}, {request.result_row, request.queries}};
  int count = 2;
  for (int axis = 0; axis < request.batch_rank; ++axis)
    axes[count++] = {request.result_batch[axis], request.batch[axis]};
  std::sort(axes, axes + count, [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  std::int64_t reach = 0;
  for (int axis = 0; axis < count; ++axis) {
    if (axes[axis].extent == 1) continue;
    if (axes[axis].stride <= reach) return false;
    reach += (axes[axis].extent - 1) * axes[axis].stride;  // reach_of has held it below 2^62
  }
  return true;
}

template <typename T>
AttentionParameters<T> parameters_of(const Attention& request) {
  const BatchAxes batch = {request.batch_rank, request.batch};
  AttentionParameters<T> p;
  p.stack.axes.rank = request.batch_rank;
  bool aligned =
      request.result_row % kQuad == 0 && is_aligned(request.result, std::min<std::size_t>(16, 4 * sizeof(T)));
  for (int axis = 0; axis < request.batch_rank; ++axis) {
    p.stack.axes.extents[axis] = Divisor::of(request.batch[axis]);
    p.stack.steps[axis] = {request.query.batch[axis], request.key.batch[axis], request.value.batch[axis],
                           request.mask.batch[axis], request.result_batch[axis]};
    aligned = aligned && request.result_batch[axis] % kQuad == 0;
  }
  p.queries = request.queries;
  p.keys = request.keys;
  p.width = static_cast<int>(request.width);
  p.value_width = static_cast<int>(request.value_width);
  p.query = factor_of<T>(request.query, request.query.row, request.query.column, batch);
  p.key = factor_of<T>(request.key, request.key.row, request.key.column, batch);
  p.value = factor_of<T>(request.value, request.value.column, request.value.row, batch);
  p.mask = request.mask.data;
  p.mask_kind = request.mask_kind;
  p.mask_row = request.mask.row;
  p.mask_column = request.mask.column;
  p.fill = static_cast<float>(request.fill);
  p.scale = static_cast<float>(request.scale);
  p.causal = request.causal;
  p.causal_offset = request.causal_offset;
  p.undefined = request.keys == 0 ? UndefinedRows::kZero : request.undefined;
  p.result = static_cast<T*>(request.result);
  p.result_row = request.result_row;
  p.aligned = aligned;
  return p;
}

}  // namespace

Status attention(const Attention& given, Stream stream) {
  if (!is_real(given.dtype) || given.dtype == Dtype::kFloat64) return Status::kUnsupportedDtype;
  if (given.batch_rank < 0 || given.batch_rank > kMaxBatchAxes) return Status::kBadParameter;
  if (given.causal_offset < -kMostCausalOffset || given.causal_offset > kMostCausalOffset) return Status::kBadParameter;
  Attention request = given;
  const bool has_mask = request.mask_kind != AttentionMask::kNone;
  if (!has_mask) request.mask = {};
  std::int64_t stack = 1;
  for (int axis = 0; axis < request.batch_rank; ++axis) {
    if (!product_fits(stack, request.batch[axis], 1)) return Status::kBadShape;
    stack *= request.batch[axis];
  }
  const auto is_wide = [](std::int64_t width) { return width < 0 || width > kMaxAttentionWidth; };
  if (is_wide(request.width) || is_wide(request.value_width) || !product_fits(request.queries, request.keys, 1) ||
      !product_fits(stack, request.queries, std::max<std::int64_t>(request.value_width, 1)))
    return Status::kBadShape;
  const BatchAxes batch = {request.batch_rank, request.batch};
  MatrixOperand result;
  result.row = request.result_row;
  result.column = 1;
  std::copy_n(request.result_batch, kMaxBatchAxes, result.batch);
  struct Part {
    const MatrixOperand& operand;
    std::int64_t rows, columns;
  };
  const Part parts[] = {{request.query, request.queries, request.width},
                        {request.key, request.keys, request.width},
                        {request.value, request.keys, request.value_width},
                        {request.mask, request.queries, request.keys},
                        {result, request.queries, request.value_width}};
  std::int64_t elements[5] = {};
  for (int i = 0; i < 5; ++i) {
    if (const Status status = reach_of(parts[i].operand, parts[i].rows, parts[i].columns, batch, &elements[i]);
        status != Status::kOk)
      return status;
  }
  if (elements[4] == 0) return Status::kOk;
  if (!rows_lie_apart(request)) return Status::kBadParameter;
  const std::size_t size = size_of(request.dtype);
  const bool is_bytes = request.mask_kind == AttentionMask::kKeeps || request.mask_kind == AttentionMask::kDrops;
  const Pointer pointers[] = {{request.query.data, elements[0] > 0},
                              {request.key.data, elements[1] > 0},
                              {request.value.data, elements[2] > 0},
                              {request.result, true}};
  if (const Status status = check_pointers(pointers, size); status != Status::kOk) return status;
  if (const Status status = check_pointer(request.mask.data, is_bytes ? 1 : size, has_mask && elements[3] > 0);
      status != Status::kOk)
    return status;
  const auto bytes = [&](int i, std::size_t each) { return static_cast<std::size_t>(elements[i]) * each; };
  const Region regions[] = {{request.query.data, bytes(0, size)},
                            {request.key.data, bytes(1, size)},
                            {request.value.data, bytes(2, size)},
                            {request.mask.data, bytes(3, is_bytes ? 1 : size)},
                            {request.result, bytes(4, size), true}};
  if (const Status status = check_overlap(regions); status != Status::kOk) return status;
  const std::int64_t of_matrix = ceil_div(request.queries, kAttentionEdge);
  if (!product_fits(of_matrix, stack, 1)) return Status::kBadShape;
  return with_real(request.dtype, [&](auto element) -> Status {
    using T = decltype(element);
    if constexpr (sizeof(T) == 8) {
      return Status::kUnsupportedDtype;
    } else {
      AttentionParameters<T> p = parameters_of<T>(request);
      p.tiles = of_matrix * stack;
      p.by_tiles = Divisor::of(of_matrix);
      return launch_attention<T>(p, static_cast<unsigned>(std::min(p.tiles, kMostAttentionBlocks)), stream);
    }
  });
}

}  // namespace tensorlint::kernels
