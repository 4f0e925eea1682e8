#include "kernels/product/product.h"

#include <algorithm>

#include "kernels/common/overlap.h"
#include "kernels/common/request.h"
#include "kernels/product/dispatch.h"
#include "kernels/product/operands.h"

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

template <typename T>
ProductParameters<T> parameters_of(const MatrixProduct& request, const ProductPlan& plan) {
  const BatchAxes batch = {request.batch_rank, request.batch};
  ProductParameters<T> p;
  p.plan = plan;
  p.by_tiles = Divisor::of(plan.row_tiles * plan.column_tiles);
  p.by_columns = Divisor::of(plan.column_tiles);
  p.stack.axes.rank = request.batch_rank;
  for (int axis = 0; axis < request.batch_rank; ++axis) {
    p.stack.axes.extents[axis] = Divisor::of(request.batch[axis]);
    p.stack.a[axis] = request.a.batch[axis];
    p.stack.b[axis] = request.b.batch[axis];
    p.stack.addend[axis] = request.addend.batch[axis];
  }
  p.a = factor_of<T>(request.a, request.a.row, request.a.column, batch);
  p.b = factor_of<T>(request.b, request.b.column, request.b.row, batch);
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
  const BatchAxes batch = {request.batch_rank, request.batch};
  std::int64_t a = 0, b = 0, addend = 0;
  if (const Status status = reach_of(request.a, request.m, request.k, batch, &a); status != Status::kOk) return status;
  if (const Status status = reach_of(request.b, request.k, request.n, batch, &b); status != Status::kOk) return status;
  if (const Status status = reach_of(request.addend, request.m, request.n, batch, &addend); status != Status::kOk)
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
