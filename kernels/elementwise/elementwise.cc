#include "kernels/elementwise/elementwise.h"

#include "kernels/common/overlap.h"
#include "kernels/elementwise/dispatch.h"

namespace tensorlint::kernels {
namespace {

/// From the first to the last element that is read.
std::size_t bytes_of(const StagedOperand& operand, const ElementwiseParameters& p) {
  if (operand.staging == Staging::kNumber) return 0;
  std::int64_t last = 0;
  for (int axis = 0; axis < p.rank; ++axis) last += (p.extents[axis].value - 1) * operand.strides[axis];
  return static_cast<std::size_t>(last + 1) * static_cast<std::size_t>(operand.bytes);
}

Status check_operands(const ElementwiseParameters& p) {
  const std::size_t result_bytes = static_cast<std::size_t>(p.elements) * static_cast<std::size_t>(p.result_bytes);
  Region regions[kMaxElementOperands + 1] = {};
  regions[kMaxElementOperands] = {p.result, result_bytes, true, true};
  for (int k = 0; k < p.operand_count; ++k) {
    const StagedOperand& operand = p.operands[k];
    // A warp has read its tile before it writes there; elements of its own alone where they lie like the result's.
    bool is_dense = operand.bytes == p.result_bytes;
    std::int64_t stride = 1;
    for (int axis = p.rank - 1; axis >= 0; stride *= p.extents[axis--].value)
      is_dense = is_dense && operand.strides[axis] == stride;
    regions[k] = {operand.data, bytes_of(operand, p), false, is_dense};
  }
  return check_overlap(regions);
}

}  // namespace

Status elementwise(const Elementwise& request, Stream stream) {
  ElementwiseParameters parameters;
  Geometry geometry;
  if (const Status status = plan_elementwise(request, &parameters, &geometry); status != Status::kOk) return status;
  if (geometry.blocks == 0) return Status::kOk;
  if (const Status status = check_operands(parameters); status != Status::kOk) return status;
  switch (request.compute) {
    case Dtype::kFloat64:
      return launch_elementwise<double>(parameters, geometry, stream);
    case Dtype::kInt64:
      return launch_elementwise<std::int64_t>(parameters, geometry, stream);
    default:
      return launch_elementwise<float>(parameters, geometry, stream);
  }
}

}  // namespace tensorlint::kernels
