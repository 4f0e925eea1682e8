#pragma once

// The two reduction kernels: along rows (the fastest axes are reduced) and down columns (the fastest axes are kept).
// Each combination of kept axes owns a set of elements; the set is cut into splits of fixed length, a split into units
// of one 16-byte load that go round the threads.

#include "kernels/common/combine.h"
#include "kernels/common/launch.h"
#include "kernels/common/unaligned.h"
#include "kernels/reduction/accumulators.h"
#include "kernels/reduction/plan.h"

namespace tensorlint::kernels {

struct ReductionParameters {
  const void* input = nullptr;
  void* output = nullptr;
  unsigned* tickets = nullptr;  // zero between calls
  void* partials = nullptr;
  FoldedAxes axes;
  ReductionPlan plan;
  std::int64_t elements_each = 0;
  double inverse_count = 1;  // 1 / elements_each, NaN-making infinity for none
  Dtype output_dtype = Dtype::kFloat32;
  Finish finish = Finish::kPlain;
  AccumulatorOptions options;
};

TL_HOST_DEVICE std::int64_t offset_of(const IndexMap& map, std::int64_t index) {
  std::int64_t offset = 0;
  TL_ROLLED
  for (int group = map.groups - 1; group > 0; --group) {
    const std::int64_t rest = map.extents[group].quotient(index);
    offset += (index - rest * map.extents[group].value) * map.strides[group];
    index = rest;
  }
  return map.groups == 0 ? 0 : offset + index * map.strides[0];
}

/// Converts and stores; floats become integers by truncation, integers wrap.
template <typename Value>
TL_DEVICE void store_as(void* output, Dtype dtype, std::int64_t index, Value value) {
  switch (dtype) {
    case Dtype::kFloat64:
      store_global(static_cast<double*>(output) + index, static_cast<double>(value));
      break;
    case Dtype::kFloat32:
      store_global(static_cast<float*>(output) + index, static_cast<float>(value));
      break;
    case Dtype::kFloat16:
      store_global(static_cast<Half*>(output) + index, to_half(static_cast<float>(value)));
      break;
    case Dtype::kBFloat16:
      store_global(static_cast<BFloat16*>(output) + index, to_bfloat16(static_cast<float>(value)));
      break;
    case Dtype::kInt64:
      store_global(static_cast<std::int64_t*>(output) + index, static_cast<std::int64_t>(value));
      break;
    case Dtype::kInt32: {
      store_global(static_cast<std::int32_t*>(output) + index,
                   static_cast<std::int32_t>(static_cast<std::int64_t>(value)));
      break;
    }
    case Dtype::kInt16: {
      store_global(static_cast<std::int16_t*>(output) + index,
                   static_cast<std::int16_t>(static_cast<std::int64_t>(value)));
      break;
    }
    case Dtype::kInt8:
      store_global(static_cast<std::int8_t*>(output) + index,
                   static_cast<std::int8_t>(static_cast<std::int64_t>(value)));
      break;
    case Dtype::kUInt8:
      store_global(static_cast<std::uint8_t*>(output) + index,
                   static_cast<std::uint8_t>(static_cast<std::int64_t>(value)));
      break;
    case Dtype::kBool:
      store_global(static_cast<std::uint8_t*>(output) + index, static_cast<std::uint8_t>(value != 0));
      break;
    default:
      break;  // refused before the launch
  }
}

template <typename Accumulator>
TL_DEVICE void finish_and_store(const ReductionParameters& p, std::int64_t index,
                                const typename Accumulator::State& state) {
  using Result = typename Accumulator::Result;
  const Result value = Accumulator::result(state, p.options);
  // Roots, logarithms and means of integers are taken in float64.
  using Real = std::conditional_t<std::is_same_v<Result, float>, float, double>;
  const Real real = static_cast<Real>(value);
  const auto is = [&](Finish finish) {
    return (Accumulator::kFinishes & finish_bit(finish)) != 0 && p.finish == finish;
  };
  if (is(Finish::kMean)) {
    store_as(p.output, p.output_dtype, index, real * static_cast<Real>(p.inverse_count));
  } else if (is(Finish::kRoot)) {
    store_as(p.output, p.output_dtype, index, sqrt(real));
  } else if (is(Finish::kLog)) {
    store_as(p.output, p.output_dtype, index, log(real));
  } else if (is(Finish::kAny)) {
    store_as(p.output, p.output_dtype, index, static_cast<Result>(value != 0));
  } else if (is(Finish::kAll)) {
    store_as(p.output, p.output_dtype, index, static_cast<Result>(static_cast<std::int64_t>(value) == p.elements_each));
  } else {
    store_as(p.output, p.output_dtype, index, value);
  }
}

/// The elements after the last whole vector of a row or segment, from `from` on.
template <typename Accumulator>
TL_DEVICE void absorb_rest(const ReductionParameters& p, const Readable<typename Accumulator::Element>& readable,
                           const typename Accumulator::Element* from, std::int64_t index,
                           typename Accumulator::Thread& thread) {
  using T = typename Accumulator::Element;
  constexpr int kSize = Vector<T>::kSize;
  const int rest = static_cast<int>(p.axes.inner % kSize);
  const Vector<T> vector = load_first(readable, from, rest);
  TL_ROLLED
  for (int i = 0; i < rest; ++i) Accumulator::step_thread(thread, widen(element_at(vector, i)), index + i, p.options);
}

/// A row without gaps: units [first, end) of it by `stride` into `thread`.
template <typename Accumulator>
TL_DEVICE void walk_line(const ReductionParameters& p, const Readable<typename Accumulator::Element>& readable,
                         const typename Accumulator::Element* row, std::int64_t first, std::int64_t end,
                         std::int64_t stride, typename Accumulator::Thread& thread) {
  using T = typename Accumulator::Element;
  constexpr int kSize = Vector<T>::kSize;
  const std::int64_t full = p.axes.inner / kSize;
  const std::int64_t whole = end < full ? end : full;
  const unsigned shift = bytes_past_vector(row);
  std::int64_t unit = first;
  // Rolled here and below: to unroll it the compiler divides by the stride, which is a call, and spills around it.
  if (shift == 0) {
    const Vector<T>* vectors = reinterpret_cast<const Vector<T>*>(row);
    TL_ROLLED
    for (; unit + 3 * stride < whole; unit += 4 * stride) {
      Vector<T> batch[4];
      TL_UNROLL
      for (int i = 0; i < 4; ++i) batch[i] = load_global(vectors + (unit + i * stride));
      if (!Accumulator::template absorb<4>(thread, batch, unit * kSize, stride * kSize, p.options)) break;
    }
  } else {
    TL_ROLLED
    for (; unit + 3 * stride < whole; unit += 4 * stride) {
      const T* const at = row + unit * kSize;
      const std::int64_t step = stride * kSize;
      const T* const from[4] = {at, at + step, at + 2 * step, at + 3 * step};
      const unsigned shifts[4] = {shift, shift, shift, shift};
      Vector<T> batch[4];
      load_four(readable, from, shifts, batch);
      if (!Accumulator::template absorb<4>(thread, batch, unit * kSize, step, p.options)) break;
    }
  }
  TL_ROLLED
  for (; unit < whole; unit += stride) {
    Vector<T> batch[1] = {load_anywhere(readable, row + unit * kSize)};
    Accumulator::template absorb<1>(thread, batch, unit * kSize, 0, p.options);
  }
  if (unit < end) absorb_rest<Accumulator>(p, readable, row + full * kSize, full * kSize, thread);
}

/// Segments with gaps between them: units [first, end) of all of them by `stride` into `thread`.
template <typename Accumulator>
TL_DEVICE void walk_segments(const ReductionParameters& p, const Readable<typename Accumulator::Element>& readable,
                             const typename Accumulator::Element* row, std::int64_t first, std::int64_t end,
                             std::int64_t stride, typename Accumulator::Thread& thread) {
  using T = typename Accumulator::Element;
  constexpr int kSize = Vector<T>::kSize;
  const std::int64_t full = p.axes.inner / kSize;
  // Where a unit begins, its index in the reduced order, and whether it is a whole vector.
  const auto locate = [&](std::int64_t unit, const T*& from, std::int64_t& index) {
    const std::int64_t segment = p.plan.segment_units.quotient(unit);
    const std::int64_t inside = unit - segment * p.plan.segment_units.value;
    from = row + offset_of(p.axes.reduced, segment) + inside * kSize;
    index = segment * p.axes.inner + inside * kSize;
    return inside < full;
  };
  std::int64_t unit = first;
  TL_ROLLED
  while (unit < end) {
    if constexpr (!Accumulator::kUsesIndex) {
      TL_ROLLED
      for (; unit + 3 * stride < end; unit += 4 * stride) {
        const T* from[4];
        unsigned shift[4];
        bool whole = true;
        TL_UNROLL
        for (int i = 0; i < 4; ++i) {
          std::int64_t index = 0;
          whole = locate(unit + i * stride, from[i], index) && whole;
          shift[i] = bytes_past_vector(from[i]);
        }
        if (!whole) break;
        Vector<T> batch[4];
        load_four<T>(readable, {from[0], from[1], from[2], from[3]}, shift, batch);
        if (!Accumulator::template absorb<4>(thread, batch, 0, 0, p.options)) break;
      }
      if (unit >= end) return;
    }
    const T* from = nullptr;
    std::int64_t index = 0;
    if (locate(unit, from, index)) {
      Vector<T> batch[1] = {load_anywhere(readable, from)};
      Accumulator::template absorb<1>(thread, batch, index, 0, p.options);
    } else {
      absorb_rest<Accumulator>(p, readable, from, index, thread);
    }
    unit += stride;
  }
}

template <typename Accumulator>
TL_DEVICE void walk_row(const ReductionParameters& p, const typename Accumulator::Element* row, std::int64_t first,
                        std::int64_t end, std::int64_t stride, typename Accumulator::Thread& thread) {
  using T = typename Accumulator::Element;
  const T* const input = static_cast<const T*>(p.input);
  const Readable<T> readable = {input, input + p.axes.outer_kept * p.axes.outer_reduced * p.axes.inner};
  if (p.axes.outer_reduced == 1) {
    walk_line<Accumulator>(p, readable, row, first, end, stride, thread);
  } else {
    walk_segments<Accumulator>(p, readable, row, first, end, stride, thread);
  }
}

/// Blocks that must fit an SM. 8-bit elements come 16 to a vector and need the registers; sums and extremes of 16 and
/// 32 bits in rows need few.
template <typename Accumulator>
constexpr int kReductionBlocks = sizeof(typename Accumulator::Element) == 1 ? 1 : 2;
template <typename Accumulator>
constexpr int kRowReductionBlocks = sizeof(typename Accumulator::Element) > 1 &&
                                            sizeof(typename Accumulator::State) == 4
                                        ? 4
                                        : kReductionBlocks<Accumulator>;

template <typename Accumulator>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, kRowReductionBlocks<Accumulator>) reduce_rows(const ReductionParameters p) {
  using T = typename Accumulator::Element;
  using State = typename Accumulator::State;
  const T* const input = static_cast<const T*>(p.input);
  const unsigned tid = thread_in_block();
  typename Accumulator::Thread thread = Accumulator::start();

  if (p.plan.lanes < kThreads) {
    const std::int64_t row = std::int64_t{block_in_grid()} * (kThreads / p.plan.lanes) + tid / p.plan.lanes;
    const bool active = row < p.axes.outer_kept;
    const unsigned lane = tid & (p.plan.lanes - 1);
    if (active) {
      walk_row<Accumulator>(p, input + offset_of(p.axes.kept, row), lane, p.plan.split_length, p.plan.lanes, thread);
    }
    const State state = combine_lanes<Accumulator>(Accumulator::collapse(thread), p.plan.lanes);
    if (active && lane == 0) finish_and_store<Accumulator>(p, row, state);
    return;
  }

  TL_SHARED(State, scratch, kWarps);
  TL_SHARED(unsigned, flag, 1);
  const unsigned splits = p.plan.splits;
  const std::int64_t row = block_in_grid() / splits;
  const unsigned split = block_in_grid() % splits;
  const std::int64_t units = p.axes.outer_reduced * ((p.axes.inner + Vector<T>::kSize - 1) / Vector<T>::kSize);
  const std::int64_t begin = split * p.plan.split_length;
  const std::int64_t end = begin + p.plan.split_length < units ? begin + p.plan.split_length : units;
  walk_row<Accumulator>(p, input + offset_of(p.axes.kept, row), begin + tid, end, kThreads, thread);
  State state = combine_block<Accumulator>(Accumulator::collapse(thread), scratch);
  if (splits > 1) {
    State* const partials = static_cast<State*>(p.partials) + row * splits;
    if (tid == 0) store_global(partials + split, state);
    if (!arrives_last(p.tickets + row, splits, flag)) return;
    state = Accumulator::identity();
    for (unsigned i = tid; i < splits; i += kThreads)
      state = Accumulator::combine(state, load_shared_between_blocks(partials + i));
    state = combine_block<Accumulator>(state, scratch);
  }
  if (tid == 0) finish_and_store<Accumulator>(p, row, state);
}

/// `kCount` loads of kWidth columns, elements `index`, `index + step`, ... of each, into their states.
template <typename Accumulator, int kWidth, int kCount>
TL_DEVICE void take_columns(const Strip<typename Accumulator::Element, kWidth> (&batch)[kCount], std::int64_t index,
                            std::int64_t step, const AccumulatorOptions& options,
                            typename Accumulator::State (&state)[kWidth]) {
  using T = typename Accumulator::Element;
  Compute<T> x[kCount][kWidth];
  TL_UNROLL
  for (int c = 0; c < kCount; ++c) unpack_strip<T, kWidth>(batch[c], x[c]);
  if constexpr (Accumulator::kStepsColumns) {
    Accumulator::step_columns(state, x);
  } else {
    TL_UNROLL
    for (int c = 0; c < kCount; ++c) {
      TL_UNROLL
      for (int k = 0; k < kWidth; ++k) Accumulator::step(state[k], x[c][k], index + c * step, options);
    }
  }
}

/// One block's tile of columns, `kWidth` to a thread.
template <typename Accumulator, int kWidth, typename Scratch, typename Flag>
TL_DEVICE void reduce_tile(const ReductionParameters& p, const Scratch& scratch, const Flag& flag) {
  using T = typename Accumulator::Element;
  using State = typename Accumulator::State;
  const ReductionPlan& plan = p.plan;
  const unsigned tid = thread_in_block();
  const unsigned split = block_in_grid() % plan.splits;
  const unsigned set = block_in_grid() / plan.splits;
  const unsigned tiles = static_cast<unsigned>(plan.tiles);  // at most the number of blocks
  const std::int64_t tile = set % tiles;
  const unsigned level = tid / plan.tile;
  const unsigned depth_index = level % plan.depth;
  const std::int64_t kept = std::int64_t{set / tiles} * plan.groups + level / plan.depth;
  const std::int64_t unit = tile * plan.tile + tid % plan.tile;
  const bool active = level < plan.depth * plan.groups && kept < p.axes.outer_kept && unit * kWidth < p.axes.inner;
  const std::int64_t begin = split * plan.split_length;
  const std::int64_t stop = begin + plan.split_length;
  const std::int64_t end = stop < p.axes.outer_reduced ? stop : p.axes.outer_reduced;

  State state[kWidth];
  TL_UNROLL
  for (int k = 0; k < kWidth; ++k) state[k] = Accumulator::identity();
  if (active) {
    const T* const column = static_cast<const T*>(p.input) + offset_of(p.axes.kept, kept) + unit * kWidth;
    const std::int64_t pitch = p.axes.reduced.strides[0];
    // Where kWidth divides the inner extent it divides every stride: one shift holds for the whole column.
    const unsigned shift = kWidth == 1 ? 0U : bytes_past_vector(column);
    const T* const input = static_cast<const T*>(p.input);
    const Readable<T> readable = {input, input + p.axes.outer_kept * p.axes.outer_reduced * p.axes.inner};
    std::int64_t index = begin + depth_index;
    const std::int64_t step = plan.depth;
    if (p.axes.reduced.groups <= 1) {
      if (shift == 0) {
        TL_ROLLED
        for (; index + 3 * step < end; index += 4 * step) {
          Strip<T, kWidth> batch[4];
          TL_UNROLL
          for (int i = 0; i < 4; ++i) batch[i] = load_strip<T, kWidth>(column + (index + i * step) * pitch, true);
          take_columns<Accumulator, kWidth, 4>(batch, index, step, p.options, state);
        }
      } else if constexpr (kWidth > 1) {
        TL_ROLLED
        for (; index + 3 * step < end; index += 4 * step) {
          const T* const at = column + index * pitch;
          Vector<T> batch[4];
          load_four<T>(readable, {at, at + step * pitch, at + 2 * step * pitch, at + 3 * step * pitch},
                       {shift, shift, shift, shift}, batch);
          take_columns<Accumulator, kWidth, 4>(batch, index, step, p.options, state);
        }
      }
    }
    TL_ROLLED
    for (; index < end; index += step) {
      const T* const at = column + offset_of(p.axes.reduced, index);
      if constexpr (kWidth == 1) {
        const T one[1] = {load_global(at)};
        take_columns<Accumulator, kWidth, 1>(one, index, step, p.options, state);
      } else {
        const Vector<T> one[1] = {load_anywhere(readable, at)};
        take_columns<Accumulator, kWidth, 1>(one, index, step, p.options, state);
      }
    }
  }

  // A tree over the depth, one element of the vector at a time. The loops over elements are rolled and the element is
  // selected: what follows is long, and runs once a block.
  const auto element = [&](int k) {
    State picked = state[0];
    TL_UNROLL
    for (int i = 1; i < kWidth; ++i) {
      if (i == k) picked = state[i];
    }
    return picked;
  };
  unsigned half = 1;
  while (half < plan.depth) half *= 2;
  TL_ROLLED
  for (int k = 0; k < kWidth && half > 1; ++k) {
    State sum = element(k);
    TL_ROLLED
    for (unsigned reach = half / 2; reach > 0; reach /= 2) {
      block_barrier();
      scratch[tid] = sum;
      block_barrier();
      if (depth_index < reach && depth_index + reach < plan.depth && tid + reach * plan.tile < kThreads) {
        const State other = scratch[tid + reach * plan.tile];
        sum = Accumulator::combine(sum, other);
      }
    }
    TL_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      if (i == k) state[i] = sum;
    }
  }

  const bool writer = active && depth_index == 0;
  const std::int64_t first_column = unit * kWidth;
  if (plan.splits == 1) {
    if (!writer) return;
    TL_ROLLED
    for (int k = 0; k < kWidth; ++k) {
      finish_and_store<Accumulator>(p, kept * p.axes.inner + first_column + k, element(k));
    }
    return;
  }
  // Split by split, so that neighbouring columns are neighbours there too.
  State* const partials = static_cast<State*>(p.partials);
  const std::int64_t results = p.axes.outer_kept * p.axes.inner;
  if (writer) {
    constexpr int kPacked = kWidth == 1 || sizeof(State) >= 16 ? 1 : static_cast<int>(16 / sizeof(State));
    struct alignas(kPacked == 1 ? alignof(State) : 16) Pack {
      State states[kPacked];
    };
    State* const to = partials + split * results + kept * p.axes.inner + first_column;
    TL_UNROLL
    for (int k = 0; k < kWidth; k += kPacked) {
      Pack pack;
      TL_UNROLL
      for (int i = 0; i < kPacked; ++i) pack.states[i] = state[k + i];
      store_global(reinterpret_cast<Pack*>(to + k), pack);
    }
  }
  if (!arrives_last(p.tickets + set, plan.splits, flag)) return;
  // Splits come with one combination of kept axes a block. A column has as many threads as there are for it.
  const std::int64_t tile_begin = tile * plan.tile * kWidth;
  const std::int64_t tile_end = tile_begin + std::int64_t{plan.tile} * kWidth < p.axes.inner
                                    ? tile_begin + std::int64_t{plan.tile} * kWidth
                                    : p.axes.inner;
  const unsigned columns = static_cast<unsigned>(tile_end - tile_begin);
  const unsigned parts = columns < kThreads ? kThreads / columns : 1;
  const unsigned part = tid / columns;  // 0 where there are more columns than threads
  for (std::int64_t j = tile_begin + tid % columns; j < tile_end && part < parts; j += kThreads) {
    const State* const from = partials + std::int64_t{set / tiles} * p.axes.inner + j;
    State total = Accumulator::identity();
    unsigned i = part;
    TL_ROLLED
    for (; i + 3 * parts < plan.splits; i += 4 * parts) {
      State batch[4];
      TL_UNROLL
      for (unsigned k = 0; k < 4; ++k) batch[k] = load_shared_between_blocks(from + (i + k * parts) * results);
      TL_UNROLL
      for (unsigned k = 0; k < 4; ++k) total = Accumulator::combine(total, batch[k]);
    }
    TL_ROLLED
    for (; i < plan.splits; i += parts)
      total = Accumulator::combine(total, load_shared_between_blocks(from + i * results));
    if (parts == 1) {
      finish_and_store<Accumulator>(p, std::int64_t{set / tiles} * p.axes.inner + j, total);
    } else {
      scratch[tid] = total;
    }
  }
  if (parts == 1) return;
  block_barrier();
  if (tid >= columns) return;
  State total = scratch[tid];
  TL_ROLLED
  for (unsigned other = 1; other < parts; ++other) {
    const State more = scratch[tid + other * columns];
    total = Accumulator::combine(total, more);
  }
  finish_and_store<Accumulator>(p, std::int64_t{set / tiles} * p.axes.inner + tile_begin + tid, total);
}

template <typename Accumulator>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, kReductionBlocks<Accumulator>) reduce_columns(const ReductionParameters p) {
  TL_SHARED(typename Accumulator::State, scratch, kThreads);
  TL_SHARED(unsigned, flag, 1);
  constexpr int kSize = Vector<typename Accumulator::Element>::kSize;
  if (p.plan.width == kSize) {
    reduce_tile<Accumulator, kSize>(p, scratch, flag);
  } else {
    reduce_tile<Accumulator, 1>(p, scratch, flag);
  }
}

template <typename Accumulator>
Status launch_reduction(const ReductionParameters& p, Stream stream) {
  const Geometry geometry = {p.plan.blocks, kThreads, 1, 0};
  return p.axes.inner_reduced ? launch(&reduce_rows<Accumulator>, geometry, stream, p)
                              : launch(&reduce_columns<Accumulator>, geometry, stream, p);
}

}  // namespace tensorlint::kernels
