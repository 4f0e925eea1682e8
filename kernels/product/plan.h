#pragma once

// How a stack of products is laid over blocks: plain functions of shape and strides. No choice here changes a bit of
// the result, for each element is the same sum in every tile.

#include <cstdint>

#include "kernels/product/product.h"

namespace tensorlint::kernels {

/// Rows and columns of the result in one block's tile: 64 times this.
constexpr int kSmallTile = 1;
constexpr int kLargeTile = 2;

struct ProductPlan {
  int tile = kSmallTile;
  std::int64_t row_tiles = 0;
  std::int64_t column_tiles = 0;
  std::int64_t tiles = 0;  // of the whole stack
  unsigned blocks = 0;
};

/// Batch axes of 1 are dropped and neighbours merged where all operands step evenly over both; rows of matrices that
/// share `b` become one matrix.
void fold_batch(MatrixProduct* request);

/// Large tiles where there are enough of them to keep a device busy: each element that is loaded is used twice as
/// often. float64 has small tiles only. Errors: kBadShape (too many tiles to count).
Status plan_product(std::int64_t m, std::int64_t n, std::int64_t stack, Dtype dtype, ProductPlan* plan);

}  // namespace tensorlint::kernels
