#pragma once

// A stack of products as a library of matrices that lie column by column takes it. What lies row by row is the
// transpose of that, so the operands change places: the transpose of a b is that of b times that of a. Nothing is
// copied for it.

#include <cstdint>

#include "kernels/product/product.h"

namespace tensorlint::kernels {

struct ColumnMatrix {
  bool is_transposed = false;  // before it is multiplied
  std::int64_t rows = 0;       // as it lies in memory
  std::int64_t columns = 0;
  std::int64_t leading = 0;  // elements from one column to the next one, at least `rows`
  std::int64_t step = 0;     // elements to the next matrix of the stack; 0 repeats
};

enum class ColumnAddend {
  kNone,
  kMatrix,
  kBias,  // one element for each row of the result, which beta does not scale
};

/// result = alpha * first * second + the addend, for each matrix of the stack.
struct ColumnProduct {
  std::int64_t stack = 1;
  ColumnMatrix first;   // the request's b
  ColumnMatrix second;  // the request's a
  ColumnAddend kind = ColumnAddend::kNone;
  ColumnMatrix addend;  // kMatrix
  ColumnMatrix result;
};

/// Null, or why there is no such product, in words that follow "because". `has_addend`: the request has one, whether
/// its pointer is known or not. Every extent of the product is at least 1 and fits 32 bits.
const char* column_product(MatrixProduct request, bool has_addend, ColumnProduct* product);

}  // namespace tensorlint::kernels
