#pragma once

// Copies whose source is contiguous along one axis and whose destination is along another: tiles go through shared
// memory, so that both sides move whole sectors.

#include "kernels/common/combine.h"
#include "kernels/common/device.h"
#include "kernels/movement/plan.h"

namespace tensorlint::kernels {

/// Words from one row of a tile to the next: an odd number of 4 bytes, so that words below each other are in different
/// banks.
template <typename Word>
constexpr unsigned kTransposePitch = transpose_edge(sizeof(Word)) + (sizeof(Word) < 4 ? 4 / sizeof(Word) : 1);

/// A tile has the same number of rows, along which the destination is contiguous, and of columns, along which the
/// source is.
template <typename Word>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, 4) transpose_tiles(const TransposeParameters p) {
  constexpr unsigned kEdge = transpose_edge(sizeof(Word));
  constexpr unsigned kPitch = kTransposePitch<Word>;
  constexpr unsigned kRowsAtOnce = kThreads / kEdge;
  constexpr int kSteps = kEdge / kRowsAtOnce;
  TL_SHARED(Word, words, kEdge * kPitch);
  const Word* const source = reinterpret_cast<const Word*>(p.source);
  Word* const destination = reinterpret_cast<Word*>(p.destination);
  const unsigned lane = thread_in_block() % kEdge;
  const unsigned first = thread_in_block() / kEdge;
  TL_ROLLED
  for (std::int64_t tile = block_in_grid(); tile < p.tiles; tile += blocks_in_grid()) {
    const std::int64_t strip = p.by_columns.quotient(tile);
    std::int64_t matrix = p.by_rows.quotient(strip);
    const std::int64_t column = (tile - strip * p.by_columns.value) * kEdge;
    const std::int64_t row = (strip - matrix * p.by_rows.value) * kEdge;
    std::int64_t from = p.from_offset + row * p.from_stride + column;
    std::int64_t to = p.to_offset + column * p.to_stride + row;
    TL_ROLLED
    for (int axis = p.rank - 1; axis >= 0; --axis) {
      const std::int64_t outer = p.extents[axis].quotient(matrix);
      const std::int64_t index = matrix - outer * p.extents[axis].value;
      matrix = outer;
      from += index * p.from_strides[axis];
      to += index * p.to_strides[axis];
    }
    Word batch[kSteps];
    TL_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      const unsigned down = first + static_cast<unsigned>(step) * kRowsAtOnce;
      batch[step] = Word{0};
      if (column + lane < p.columns && row + down < p.rows)
        batch[step] = load_global(source + from + down * p.from_stride + lane);
    }
    TL_UNROLL
    for (int step = 0; step < kSteps; ++step)
      words[(first + static_cast<unsigned>(step) * kRowsAtOnce) * kPitch + lane] = batch[step];
    block_barrier();
    TL_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      const unsigned across = first + static_cast<unsigned>(step) * kRowsAtOnce;
      const Word word = words[lane * kPitch + across];
      if (column + across < p.columns && row + lane < p.rows)
        store_global(destination + to + across * p.to_stride + lane, word);
    }
    block_barrier();  // before the next tile is written
  }
}

}  // namespace tensorlint::kernels
