#pragma once

// From extents and axes to a launch. Plain functions of the shape only: never of a pointer, a device or the time, since
// results depend on the partition.

#include <cstddef>
#include <cstdint>

#include "kernels/common/divisor.h"
#include "kernels/common/status.h"

namespace tensorlint::kernels {

/// Alternations of kept and reduced axes that one call takes, on each side. Eight of each is rank 16 at its most
/// interleaved.
constexpr int kMaxAxisGroups = 8;

/// Mixed-radix index: element offset of the i-th combination, the last group fastest.
struct IndexMap {
  std::int32_t groups = 0;
  Divisor extents[kMaxAxisGroups];
  std::int64_t strides[kMaxAxisGroups] = {};  // in elements
};

/// A contiguous tensor with axes to reduce, adjacent axes of one kind merged and extents of 1 dropped.
struct FoldedAxes {
  bool inner_reduced = false;   // the fastest group is reduced (rows) or kept (columns)
  std::int64_t inner = 1;       // its extent; contiguous
  std::int64_t outer_kept = 1;  // combinations of `kept`
  std::int64_t outer_reduced = 1;
  IndexMap kept;     // without the fastest group
  IndexMap reduced;  // without the fastest group

  std::int64_t results() const { return inner_reduced ? outer_kept : outer_kept * inner; }
  std::int64_t elements_each() const { return inner_reduced ? outer_reduced * inner : outer_reduced; }
};

/// `axes` in [-rank, rank), each once; none: every element is its own result.
/// Errors: kBadShape, kTooManyAxisGroups.
Status fold_axes(const std::int64_t* extents, int rank, const int* axes, int axis_count, FoldedAxes* folded);

struct ReductionPlan {
  unsigned blocks = 0;              // 0: nothing to launch
  unsigned splits = 1;              // blocks that share one row or one tile of columns
  Divisor segment_units;            // rows: units of one contiguous segment
  std::int64_t split_length = 0;    // units (rows) or steps along the reduced side (columns) of one split
  unsigned lanes = 1;               // rows: threads of one row, a power of two up to 32, or kThreads
  unsigned rows_each = 1;           // rows: that the same lanes take one after the other
  bool by_columns = false;          // which of the kernels
  FoldedAxes columns;               // columns: the axes as the kernel walks them; see regroup_columns
  unsigned merge = 1;               // columns: that one result is made of, all in one tile
  bool merged_apart = false;        // they lie one row of results apart, else side by side
  std::int64_t rest = 0;            // columns: elements after the last row of `columns`
  int width = 1;                    // columns: elements of one thread's load
  unsigned tile = 1;                // columns: loads side by side in a tile
  unsigned depth = 1;               // columns: threads above each other in a tile
  unsigned groups = 1;              // columns: combinations of kept axes that one block takes
  std::int64_t tiles = 1;           // columns: tiles of one combination of kept axes
  std::size_t workspace_bytes = 0;  // tickets and partial states; see common/workspace.h
};

/// `vector_size`: elements in 16 bytes. `state_bytes`: of the accumulator. `merges`: its kernel makes results of
/// several columns each. Errors: kBadShape when a grid would pass 2^31 - 1 blocks.
Status plan_reduction(const FoldedAxes& folded, int vector_size, std::size_t state_bytes, bool merges,
                      ReductionPlan* plan);

}  // namespace tensorlint::kernels
