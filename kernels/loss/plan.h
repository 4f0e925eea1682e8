#pragma once

// Launch choice of the losses: plain functions of shape and compute capability.

#include <cstddef>
#include <cstdint>

#include "kernels/common/status.h"

namespace tensorlint::kernels {

/// Vectors (16 bytes) over blocks; the last block also takes what does not fill a vector.
struct StreamPlan {
  unsigned blocks = 1;
  std::int64_t split_length = 0;  // vectors of one block
};
StreamPlan plan_stream(std::int64_t elements, int vector_size);

/// Bytes of a row that one block keeps in shared memory between its passes: three such blocks fit an SM of sm_90 (227
/// KiB), two one of sm_80 (163 KiB).
constexpr std::size_t kPartBytes = 64 * 1024;
/// The largest cluster that every sm_90 part takes without asking.
constexpr unsigned kMaxCluster = 8;

struct ClassPlan {
  unsigned blocks = 0;           // a multiple of `cluster`
  unsigned lanes = 1;            // threads of one row: a power of two up to 32, or kThreads
  unsigned cluster = 1;          // blocks of one row
  std::int64_t part = 0;         // vectors of one block's part of a row
  bool cached = false;           // the part is kept in shared memory between the passes
  std::size_t shared_bytes = 0;  // dynamic
  int width = 1;                 // columns: neighbouring positions of one thread
  unsigned units = 1;            // columns: threads side by side, a power of two up to kColumnUnits
};

/// Strips of positions side by side in one block of the column kernels, at most; the other threads go down the classes.
constexpr unsigned kColumnUnits = 32;

/// inner > 1: positions (row, inner index) side by side, in vectors where these fill the inner extent. A result does
/// not depend on the width; on how many threads share its classes it does, by shape alone. Errors: kBadShape.
Status plan_class_columns(std::int64_t rows, std::int64_t classes, std::int64_t inner, int vector_size,
                          ClassPlan* plan);

/// Rows of `classes` contiguous elements. `second_pass`: something is written for each class. `capability`: 10 major +
/// minor. The partition of a row depends on classes, and from more than `part_bytes` on also on whether there are
/// clusters (90 on). Errors: kBadShape.
Status plan_class_rows(std::int64_t rows, std::int64_t classes, int vector_size, bool second_pass, int capability,
                       std::size_t part_bytes, ClassPlan* plan);

/// Blocks of the kernels that walk `items` of work, `per_block` at a time: at most 8192, so that one block can add
/// their partial sums.
unsigned walking_blocks(std::int64_t items, std::int64_t per_block);

}  // namespace tensorlint::kernels
