#include "kernels/normalization/normalization.h"

#include <algorithm>

#include "kernels/common/overlap.h"
#include "kernels/common/request.h"
#include "kernels/loss/plan.h"
#include "kernels/normalization/dispatch.h"

namespace tensorlint::kernels {

Status normalization(const Normalization& request, Stream stream) {
  if (!is_real(request.dtype)) return Status::kUnsupportedDtype;
  if (!product_fits(request.rows, request.length, 1) || !product_fits(request.groups, request.each, 1))
    return Status::kBadShape;
  const bool given = request.kind == NormalizationKind::kGiven;
  if (request.groups < 1 || request.each < 1 || request.rows % request.groups != 0 ||
      request.length % request.each != 0 || (given && request.each != 1))
    return Status::kBadParameter;
  if (request.rows * request.length == 0) return Status::kOk;
  const Pointer pointers[] = {{request.data, true},  {request.scale, false},    {request.bias, false},
                              {request.mean, given}, {request.variance, given}, {request.result, true}};
  const std::size_t size = size_of(request.dtype);
  if (const Status status = check_pointers(pointers, size); status != Status::kOk) return status;
  const std::size_t bytes = static_cast<std::size_t>(request.rows * request.length) * size;
  const std::size_t parameters = static_cast<std::size_t>(request.groups * request.each) * size;
  const Region regions[] = {{request.data, bytes, false, true},
                            {request.scale, parameters},
                            {request.bias, parameters},
                            {given ? request.mean : nullptr, parameters},
                            {given ? request.variance : nullptr, parameters},
                            {request.result, bytes, true, true}};
  if (const Status status = check_overlap(regions); status != Status::kOk) return status;
  ClassPlan plan;
  if (const Status status =
          plan_class_rows(request.rows, request.length, vector_size(request.dtype), false, 0, kPartBytes, &plan);
      status != Status::kOk)
    return status;
  return with_real(request.dtype, [&](auto element) {
    using T = decltype(element);
    NormalizationParameters<T> p;
    p.data = static_cast<const T*>(request.data);
    p.scale = static_cast<const T*>(request.scale);
    p.bias = static_cast<const T*>(request.bias);
    p.mean = given ? static_cast<const T*>(request.mean) : nullptr;
    p.variance = static_cast<const T*>(request.variance);
    p.result = static_cast<T*>(request.result);
    p.rows = request.rows;
    p.length = request.length;
    p.each = request.each;
    p.by_groups = Divisor::of(request.groups);
    p.by_part = Divisor::of(request.length / request.each);
    p.epsilon = static_cast<Compute<T>>(request.epsilon);
    p.lanes = plan.lanes;
    p.centred = request.kind != NormalizationKind::kRootMeanSquare;
    return launch_normalization<T>(p, plan.blocks, stream);
  });
}

}  // namespace tensorlint::kernels
