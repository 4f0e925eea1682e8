#pragma once

// From a request to parameters of the kernels, and to a launch. Plain functions.

#include <cstddef>
#include <cstdint>

#include "kernels/common/divisor.h"
#include "kernels/common/vector.h"
#include "kernels/movement/movement.h"

namespace tensorlint::kernels {

/// 16 bytes, or what is repeated to them.
using MovementCell = Vector<std::uint32_t>;

struct MovementParameters {
  const unsigned char* source = nullptr;
  unsigned char* destination = nullptr;
  std::int64_t elements = 0;
  int rank = 1;
  Divisor extents[kMaxMovementRank];  // of the merged axes
  std::int64_t from_offset = 0;
  std::int64_t to_offset = 0;
  std::int64_t from_strides[kMaxMovementRank] = {};
  std::int64_t to_strides[kMaxMovementRank] = {};
  std::int64_t inside[kMaxMovementRank] = {};
  std::int64_t before[kMaxMovementRank] = {};
  Border border = Border::kConstant;
  MovementCell fill = {};
  const void* indices = nullptr;
  bool wide_indices = true;
  std::int64_t tuples = 0;
  std::int64_t tuple_elements = 1;  // kScatter: of the destination, for each tuple
  std::int64_t index_strides[kMaxMovementRank] = {};
  int parts = 1;
  std::int64_t part_extents[kMaxMovementRank] = {};
  std::int64_t part_strides[kMaxMovementRank] = {};
  const unsigned* last = nullptr;  // kScatter: by tuple, 0 where a later one has its target, or it has none
};

/// Words of a tile's edge: 128 bytes or more, and as many under way as 256 threads can have.
TL_HOST_DEVICE constexpr unsigned transpose_edge(std::size_t word) { return word <= 2 ? 64 : 32; }

/// Matrices of `rows` x `columns`: columns lie next to each other in the source, rows in the destination. In words.
struct TransposeParameters {
  const unsigned char* source = nullptr;
  unsigned char* destination = nullptr;
  std::int64_t tiles = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t from_stride = 0;  // of rows
  std::int64_t to_stride = 0;    // of columns
  Divisor by_rows;               // tiles of a matrix, by the number of a tile: columns first
  Divisor by_columns;
  int rank = 0;  // of the matrices
  Divisor extents[kMaxMovementRank];
  std::int64_t from_strides[kMaxMovementRank] = {};
  std::int64_t to_strides[kMaxMovementRank] = {};
  std::int64_t from_offset = 0;
  std::int64_t to_offset = 0;
};

struct IndexSummary {
  std::int64_t bad;
  std::int64_t first;  // the largest integer: none
};

struct IndexParameters {
  const void* indices = nullptr;
  bool wide = true;
  std::int64_t count = 0;
  Divisor parts;
  std::int64_t extents[kMaxMovementRank] = {};
  std::int64_t* report = nullptr;
  IndexSummary* partials = nullptr;
  unsigned* ticket = nullptr;
  unsigned blocks = 1;
};

struct LastUpdateParameters {
  MovementParameters movement;
  unsigned* last = nullptr;
};

/// Of a batch of 4 words a thread: 124 for each of the 132 SMs of the largest part in view, and then one after the
/// other.
constexpr std::int64_t kMaxMovementBlocks = 16384;

struct MovementPlan {
  int word = 4;  // bytes that one thread moves at once: an element, or neighbours that move together
  unsigned blocks = 0;
  unsigned index_blocks = 1;  // of the look for bad indices
};

/// Neighbouring axes along which both sides go on evenly become one; and where the last one is contiguous on both sides
/// and everything else a multiple of it, 16 bytes move as one element, or 8, 4, 2. Errors: those of movement_workspace,
/// kUnsupportedDtype. Of no elements there are no blocks.
Status plan_movement(const Movement& movement, MovementParameters* parameters, MovementPlan* plan);

/// Whether a copy of words of `word` bytes goes by tiles: each side is contiguous along an axis of its own, and both
/// axes are long enough.
bool plan_transpose(const MovementParameters& parameters, int word, TransposeParameters* transpose);

}  // namespace tensorlint::kernels
