#include "kernels/product/operands.h"

namespace tensorlint::kernels {

Status reach_of(const MatrixOperand& operand, std::int64_t rows, std::int64_t columns, const BatchAxes& batch,
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
  for (int axis = 0; axis < batch.rank; ++axis) {
    if (operand.batch[axis] < 0) return Status::kBadParameter;
    fits = fits && add(batch.extents[axis], operand.batch[axis]);
  }
  if (!fits) return Status::kBadShape;
  if (!empty) *elements = last + 1;
  return Status::kOk;
}

}  // namespace tensorlint::kernels
