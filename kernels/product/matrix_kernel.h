#pragma once

#include "kernels/product/plan.h"
#include "kernels/product/stack.h"
#include "kernels/product/tile.h"

namespace tensorlint::kernels {

/// Where the matrices of a stack begin, by their number.
struct StackParameters {
  StackAxes axes;
  std::int64_t a[kMaxBatchAxes] = {};
  std::int64_t b[kMaxBatchAxes] = {};
  std::int64_t addend[kMaxBatchAxes] = {};
};

struct StackOffsets {
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t addend = 0;
};

TL_DEVICE StackOffsets offsets_in(const StackParameters& stack, std::int64_t matrix) {
  StackOffsets offsets;
  each_index_of(stack.axes, matrix, [&](int axis, std::int64_t index) {
    offsets.a += index * stack.a[axis];
    offsets.b += index * stack.b[axis];
    offsets.addend += index * stack.addend[axis];
  });
  return offsets;
}

template <typename T>
struct ProductParameters {
  ProductPlan plan;
  Divisor by_tiles;    // of one matrix
  Divisor by_columns;  // tiles
  StackParameters stack;
  StridedFactor<T> a;
  StridedFactor<T> b;
  TileResult<T> result;  // of the first matrix
  std::int64_t k = 0;
};

/// Which matrix of the stack a tile is in, and where.
struct TilePlace {
  std::int64_t matrix;
  std::int64_t row;
  std::int64_t column;
};

template <int kEdge>
TL_DEVICE TilePlace place_of(const Divisor& by_tiles, const Divisor& by_columns, std::int64_t tile) {
  TilePlace place;
  place.matrix = by_tiles.quotient(tile);
  const std::int64_t in_matrix = tile - place.matrix * by_tiles.value;
  const std::int64_t row_tile = by_columns.quotient(in_matrix);
  place.row = row_tile * kEdge;
  place.column = (in_matrix - row_tile * by_columns.value) * kEdge;
  return place;
}

/// Blocks that must fit an SM: 64 sums a thread, or 16 of float64, leave room for two.
template <typename T, int kTile>
constexpr int kTileBlocks = kTile == kLargeTile || sizeof(T) == 8 ? 2 : 3;

template <typename T, int kTile>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, (kTileBlocks<T, kTile>)) multiply_matrices(const ProductParameters<T> p) {
  using Shape = TileShape<T, kTile>;
  TL_SHARED(Compute<T>, left_tile, Shape::kSharedElements);
  TL_SHARED(Compute<T>, right_tile, Shape::kSharedElements);
  TL_ROLLED
  for (std::int64_t tile = block_in_grid(); tile < p.plan.tiles; tile += blocks_in_grid()) {
    Compute<T> sums[kTile * kQuad][kTile * kQuad];
    {
      const TilePlace place = place_of<Shape::kEdge>(p.by_tiles, p.by_columns, tile);
      const StackOffsets offsets = offsets_in(p.stack, place.matrix);
      StridedLoader<T, kTile> left(p.a, offsets.a, place.row, p.result.m);
      StridedLoader<T, kTile> right(p.b, offsets.b, place.column, p.result.n);
      accumulate_tile<T, kTile>(left, right, p.k, left_tile, right_tile, sums);
    }
    // Worked out again: what is kept while the sums are made costs registers.
    const TilePlace place = place_of<Shape::kEdge>(p.by_tiles, p.by_columns, opaque(tile));
    TileResult<T> result = p.result;
    result.data += place.matrix * p.result.m * p.result.n;
    if (result.addend != nullptr) result.addend += offsets_in(p.stack, place.matrix).addend;
    write_tile<T, kTile>(result, place.row, place.column, sums);
  }
}

}  // namespace tensorlint::kernels
