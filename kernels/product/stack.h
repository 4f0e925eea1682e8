#pragma once

// Which matrix of a stack: its index along each axis, from its number.

#include "kernels/common/divisor.h"
#include "kernels/product/product.h"

namespace tensorlint::kernels {

struct StackAxes {
  int rank = 0;
  Divisor extents[kMaxBatchAxes];
};

/// Calls `visit(axis, index)` for each axis, the last one first.
template <typename Visit>
TL_DEVICE void each_index_of(const StackAxes& axes, std::int64_t matrix, const Visit& visit) {
  TL_ROLLED
  for (int axis = axes.rank - 1; axis >= 0; --axis) {
    const std::int64_t next = axes.extents[axis].quotient(matrix);
    visit(axis, matrix - next * axes.extents[axis].value);
    matrix = next;
  }
}

}  // namespace tensorlint::kernels
