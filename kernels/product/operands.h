#pragma once

// Operands of stacks of matrices, on the host: how far they reach, and how tiles walk them.

#include <cstdint>

#include "kernels/common/request.h"
#include "kernels/product/product.h"
#include "kernels/product/tile.h"

namespace tensorlint::kernels {

/// The stack that operands lie along.
struct BatchAxes {
  int rank;
  const std::int64_t* extents;
};

/// Elements from the first that an operand of `rows` x `columns` has to the last, 0 where it has none. Errors:
/// kBadParameter (a stride below 0), kBadShape (too far).
Status reach_of(const MatrixOperand& operand, std::int64_t rows, std::int64_t columns, const BatchAxes& batch,
                std::int64_t* elements);

/// How a tile kernel walks an operand whose positions and elements of k lie so far apart. Vectors need all matrices of
/// the stack to begin at a multiple of them.
template <typename T>
StridedFactor<T> factor_of(const MatrixOperand& operand, std::int64_t position, std::int64_t depth,
                           const BatchAxes& batch) {
  using Walk = typename StridedFactor<T>::Walk;
  constexpr int kSize = Vector<T>::kSize;
  StridedFactor<T> factor;
  factor.data = static_cast<const T*>(operand.data);
  factor.position = position;
  factor.depth = depth;
  bool aligned = is_aligned(operand.data, 16);
  for (int axis = 0; axis < batch.rank; ++axis) aligned = aligned && operand.batch[axis] % kSize == 0;
  if (depth == 1) {
    factor.walk = Walk::kAlongDepth;
    factor.aligned = aligned && position % kSize == 0;
  } else if (position == 1 && aligned && depth % kSize == 0) {
    factor.walk = Walk::kAlongPositions;
  }
  return factor;
}

}  // namespace tensorlint::kernels
