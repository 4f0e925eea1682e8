#pragma once

// Attention on a CUDA stream, in one kernel: softmax(scale * query * key^T, masked) * value for each matrix of a stack,
// of operands that lie in memory as strides say. Scores are nowhere in memory: a block has 64 queries and walks the
// keys 64 at a time, with the largest score and the sum of exponentials so far of each query (Milakov and Gimelshein
// 2018; Dao et al. 2022).
//
// Determinism: keys are walked in ascending order and sums over lanes are fixed trees, in float32, so results are a
// function of the operands' bits alone. With u the unit roundoff of float32, a score is within (width + 2) u scale
// sum |q k| of what it is exactly; a weight then has a relative error of that, of the score's distance from the largest
// one times 2 u, and of 8 u for each 64 keys after it; the sums over the keys add keys * u, and the result's own dtype
// rounds once. Asynchronous: nothing is allocated, nothing waits.

#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/product/product.h"

namespace tensorlint::kernels {

/// Most elements of a query, and of a value.
constexpr std::int64_t kMaxAttentionWidth = 256;

/// Queries of a block's tile, keys of a step, and columns of values that are one part.
constexpr int kAttentionEdge = 64;
/// Elements from one row of a tile to the next, as tiles of products have them.
constexpr int kAttentionPitch = 68;

/// Parts of values, by which the kernel is compiled: 1, 2 or 4.
constexpr int attention_parts(std::int64_t value_width) {
  return value_width <= kAttentionEdge ? 1 : value_width <= 2 * kAttentionEdge ? 2 : 4;
}

/// Shared memory that a block takes, 51 to 153 KiB: the queries, keys or values, and weights. On a device that has less
/// (device_shared_memory) the call fails with kLaunchFailed. Widths up to kMaxAttentionWidth.
constexpr std::size_t attention_shared_bytes(std::int64_t width, std::int64_t value_width) {
  const std::int64_t padded = (width + kAttentionEdge - 1) / kAttentionEdge * kAttentionEdge;
  const std::int64_t values = std::int64_t{kAttentionEdge} * attention_parts(value_width);
  return static_cast<std::size_t>(padded + (padded > values ? padded : values) + kAttentionEdge) * kAttentionPitch *
         sizeof(float);
}

enum class AttentionMask : int {
  kNone,
  kAdded,  // of the dtype of all tensors; added to the scaled scores
  kKeeps,  // of bytes; where one is 0 the score is `fill`
  kDrops,  // of bytes; where one is not 0 the score is `fill`
};

/// Queries whose weights are 0 / 0: all of their scores are -infinity, one is +infinity, or one is not a number.
enum class UndefinedRows : int {
  kNotANumber,       // as the formula has it
  kZeroWithoutKeys,  // zeros where all scores are -infinity
  kZero,             // zeros
};

struct Attention {
  Dtype dtype = Dtype::kFloat32;  // float32, float16, bfloat16
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t width = 0;        // of a query and a key, up to kMaxAttentionWidth
  std::int64_t value_width = 0;  // of a value and a result, up to kMaxAttentionWidth
  int batch_rank = 0;            // up to kMaxBatchAxes
  std::int64_t batch[kMaxBatchAxes] = {};
  MatrixOperand query;  // `queries` rows, `width` columns
  MatrixOperand key;    // `keys` rows, `width` columns
  MatrixOperand value;  // `keys` rows, `value_width` columns
  MatrixOperand mask;   // `queries` rows, `keys` columns; not with kNone
  AttentionMask mask_kind = AttentionMask::kNone;
  double fill = -std::numeric_limits<double>::infinity();
  double scale = 1.0;
  bool causal = false;             // query i sees key j where j <= i + causal_offset
  std::int64_t causal_offset = 0;  // within 2^40 of 0
  UndefinedRows undefined = UndefinedRows::kNotANumber;
  // Row i begins result_row elements after row i - 1; strides of the stack as those of operands. No two elements share
  // a place.
  void* result = nullptr;
  std::int64_t result_row = 0;
  std::int64_t result_batch[kMaxBatchAxes] = {};
};

/// Without keys results are zeros. The result may lie over no operand. Errors: kUnsupportedDtype, kBadShape (widths
/// over kMaxAttentionWidth, more than 2^62 elements, or an operand that reaches further), kBadParameter (a stride below
/// 0, a result whose rows overlap, too many batch axes), kNullPointer, kMisaligned, kOverlap, kLaunchFailed.
Status attention(const Attention& request, Stream stream);

}  // namespace tensorlint::kernels
