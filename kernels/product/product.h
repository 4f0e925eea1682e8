#pragma once

// Matrix products on a CUDA stream: stacks of them, of operands that lie in memory as strides say, so that transposes
// and broadcasting copy nothing.
//
// Determinism: each element of the result is one sum over k in ascending order, by fused multiply-adds, in float32
// (float64 for float64), whatever the tiles are: so results are a function of the operands' bits alone. Its error is at
// most k u sum |a b| with u the unit roundoff of that type; then alpha and the addend cost two roundings more, and the
// result's own dtype one. There is no floating-point atomic. Asynchronous: nothing is allocated, nothing waits.

#include <cstdint>

#include "kernels/common/scalar.h"
#include "kernels/common/status.h"

namespace tensorlint::kernels {

constexpr int kMaxBatchAxes = 6;

/// The matrices of a stack: element (row, column) of the one at (i, j, ...) lies at `data` + row * `row` + column *
/// `column` + i * batch[0] + j * batch[1] + ..., counted in elements. Strides are at least 0; 0 repeats.
struct MatrixOperand {
  const void* data = nullptr;
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t batch[kMaxBatchAxes] = {};
};

/// result = alpha * a * b + beta * addend, for each matrix of a stack. All are of `dtype` (float64, float32, float16,
/// bfloat16).
struct MatrixProduct {
  Dtype dtype = Dtype::kFloat32;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  int batch_rank = 0;  // up to kMaxBatchAxes
  std::int64_t batch[kMaxBatchAxes] = {};
  MatrixOperand a;       // m rows, k columns
  MatrixOperand b;       // k rows, n columns
  MatrixOperand addend;  // optional; m rows, n columns
  double alpha = 1.0;
  double beta = 1.0;       // 0: the addend is not read
  void* result = nullptr;  // [batch..., m, n], contiguous
};

/// Sums of nothing (k = 0) are 0. The result may lie over no operand. Errors: kUnsupportedDtype, kBadShape (more than
/// 2^62 elements, or an operand that reaches further), kBadParameter (a stride below 0, too many batch axes),
/// kNullPointer, kMisaligned, kOverlap, kLaunchFailed.
Status matrix_product(const MatrixProduct& request, Stream stream);

}  // namespace tensorlint::kernels
