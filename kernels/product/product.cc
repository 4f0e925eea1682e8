#include "kernels/product/product.h"

#include <algorithm>

#include "kernels/common/overlap.h"
#include "kernels/common/request.h"
#include "kernels/product/dispatch.h"

namespace tensorlint::kernels {
namespace {

std::int64_t stack_of(const MatrixProduct& request) {
  std::int64_t stack = 1;
  for (int axis = 0; axis < request.batch_rank; ++axis) stack *= request.batch[axis];
  return stack;
}

bool shape_fits(const MatrixProduct& request) {
  std::int64_t stack = 1;
  for (int axis = 0; axis < request.batch_rank; ++axis) {
    if (!product_fits(stack, request.batch[axis], 1)) return false;
    stack *= request.batch[axis];
  }
  return product_fits(stack, request.m, request.n) && product_fits(request.m, request.k, 1) &&
         product_fits(request.k, request.n, 1);
}

/// Elements from the first that an operand of `rows` x `columns` has to the last, 0 where it has none.
Status reach_of(const MatrixOperand& operand, std::int64_t rows, std::int64_t columns, const MatrixProduct& request,
                std::int64_t* elements) {
  std::int64_t last = 0;
  bool empty = false;
  const auto add = [&](std::int64_t extent, std::int64_t stride) {
    std::int64_t part = 0;
    empty = empty || extent == 0;
    return extent == 0 || (!__builtin_mul_overflow(extent - 1, stride, &part) && product_fits(last + part, 1, 1) &&
                           (last += part, true));
  };
  *elements = 0;
  if (operand.row < 0 || operand.column < 0) return Status::kBadParameter;
  bool fits = add(rows, operand.row) && add(columns, operand.column);
  for (int axis = 0; axis < request.batch_rank; ++axis) {
    if (operand.batch[axis] < 0) return Status::kBadParameter;
    fits = fits && add(request.batch[axis], operand.batch[axis]);
  }
  if (!fits) return Status::kBadShape;
  if (!empty) *elements = last + 1;
  return Status::kOk;
}

/// How the tile kernel walks an operand. Vectors need all matrices of the stack to begin at a multiple of them.
template <typename T>
StridedFactor<T> factor_of(const MatrixOperand& operand, std::int64_t position, std::int64_t depth,
                           const MatrixProduct& request) {
  using Walk = typename StridedFactor<T>::Walk;
  constexpr int kSize = Vector<T>::kSize;
  StridedFactor<T> factor;
  factor.data = static_cast<const T*>(operand.data);
  factor.position = position;
  factor.depth = depth;
  bool aligned = is_aligned(operand.data, 16);
  for (int axis = 0; axis < request.batch_rank; ++axis) aligned = aligned && operand.batch[axis] % kSize == 0;
  if (depth == 1) {
    factor.walk = Walk::kAlongDepth;
    factor.aligned = aligned && position % kSize == 0;
  } else if (position == 1 && aligned && depth % kSize == 0) {
    factor.walk = Walk::kAlongPositions;
  }
  return factor;
}

template <typename T>
ProductParameters<T> parameters_of(const MatrixProduct& request, const ProductPlan& plan) {
  ProductParameters<T> p;
  p.plan = plan;
  p.by_tiles = Divisor::of(plan.row_tiles * plan.column_tiles);
  p.by_columns = Divisor::of(plan.column_tiles);
  p.stack.rank = request.batch_rank;
  for (int axis = 0; axis < request.batch_rank; ++axis) {
    p.stack.extents[axis] = Divisor::of(request.batch[axis]);
    p.stack.a[axis] = request.a.batch[axis];
    p.stack.b[axis] = request.b.batch[axis];
    p.stack.addend[axis] = request.addend.batch[axis];
  }
  p.a = factor_of<T>(request.a, request.a.row, request.a.column, request);
  p.b = factor_of<T>(request.b, request.b.column, request.b.row, request);
  p.k = request.k;
  p.result.data = static_cast<T*>(request.result);
  p.result.addend = static_cast<const T*>(request.addend.data);
  p.result.addend_row = request.addend.row;
  p.result.addend_column = request.addend.column;
  p.result.m = request.m;
  p.result.n = request.n;
  p.result.alpha = static_cast<Compute<T>>(request.alpha);
  p.result.beta = static_cast<Compute<T>>(request.beta);
  p.result.aligned = request.n % kQuad == 0 && is_aligned(request.result, std::min<std::size_t>(16, 4 * sizeof(T)));
  return p;
}

}  // namespace

Status matrix_product(const MatrixProduct& given, Stream stream) {
  if (!is_real(given.dtype)) return Status::kUnsupportedDtype;
  if (given.batch_rank < 0 || given.batch_rank > kMaxBatchAxes) return Status::kBadParameter;
  MatrixProduct request = given;
  if (request.beta == 0) request.addend.data = nullptr;
  if (request.addend.data == nullptr) request.addend = {};
  if (!shape_fits(request)) return Status::kBadShape;
  std::int64_t a = 0, b = 0, addend = 0;
  if (const Status status = reach_of(request.a, request.m, request.k, request, &a); status != Status::kOk)
    return status;
  if (const Status status = reach_of(request.b, request.k, request.n, request, &b); status != Status::kOk)
    return status;
  if (const Status status = reach_of(request.addend, request.m, request.n, request, &addend); status != Status::kOk)
    return status;
  const std::int64_t results = stack_of(request) * request.m * request.n;
  if (results == 0) return Status::kOk;
  const Pointer pointers[] = {
      {request.a.data, a > 0}, {request.b.data, b > 0}, {request.addend.data, false}, {request.result, true}};
  const std::size_t size = size_of(request.dtype);
  if (const Status status = check_pointers(pointers, size); status != Status::kOk) return status;
  const auto bytes = [&](std::int64_t elements) { return static_cast<std::size_t>(elements) * size; };
  const Region regions[] = {{request.a.data, bytes(a)},
                            {request.b.data, bytes(b)},
                            {request.addend.data, bytes(addend)},
                            {request.result, bytes(results), true}};
  if (const Status status = check_overlap(regions); status != Status::kOk) return status;
  fold_batch(&request);
  ProductPlan plan;
  if (const Status status = plan_product(request.m, request.n, stack_of(request), request.dtype, &plan);
      status != Status::kOk)
    return status;
  return with_real(request.dtype, [&](auto element) {
    return launch_product<decltype(element)>(parameters_of<decltype(element)>(request, plan), stream);
  });
}

}  // namespace tensorlint::kernels
