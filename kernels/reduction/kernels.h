#pragma once

// The two reduction kernels: along rows (the fastest axes are reduced) and down columns (the fastest axes are kept).
// Each combination of kept axes owns a set of elements; the set is cut into splits of fixed length, a split into units
// of one 16-byte load that go round the threads.

#include "kernels/common/combine.h"
#include "kernels/common/launch.h"
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

/// Units [first, end) of one row by `stride` into `thread`. The row begins at `row`.
template <typename Accumulator>
TL_DEVICE void walk_row(const ReductionParameters& p, const typename Accumulator::Element* row, std::int64_t first,
                        std::int64_t end, std::int64_t stride, typename Accumulator::Thread& thread) {
  using T = typename Accumulator::Element;
  constexpr int kSize = Vector<T>::kSize;
  const std::int64_t full = p.axes.inner / kSize;
  std::int64_t unit = first;
  if (p.axes.outer_reduced == 1 && reinterpret_cast<std::uintptr_t>(row) % 16 == 0) {
    const std::int64_t whole = end < full ? end : full;
    const Vector<T>* vectors = reinterpret_cast<const Vector<T>*>(row);
    // Rolled here and below: to unroll it the compiler divides by the stride, which is a call, and spills around it.
    TL_ROLLED
    for (; unit + 3 * stride < whole; unit += 4 * stride) {
      Vector<T> batch[4];
      TL_UNROLL
      for (int i = 0; i < 4; ++i) batch[i] = load_global(vectors + (unit + i * stride));
      if (!Accumulator::template absorb<4>(thread, batch, unit * kSize, stride * kSize, p.options)) break;
    }
    TL_ROLLED
    for (; unit < whole; unit += stride) {
      Vector<T> batch[1] = {load_global(vectors + unit)};
      Accumulator::template absorb<1>(thread, batch, unit * kSize, 0, p.options);
    }
  }
  // Segments, misaligned rows (by element: the same partition and the same sums), and the end of a row.
  TL_ROLLED
  for (; unit < end; unit += stride) {
    const std::int64_t segment = p.axes.outer_reduced == 1 ? 0 : p.plan.segment_units.quotient(unit);
    const std::int64_t inside = unit - segment * p.plan.segment_units.value;
    const T* from = row + offset_of(p.axes.reduced, segment) + inside * kSize;
    const std::int64_t index = segment * p.axes.inner + inside * kSize;
    if (inside < full) {
      Vector<T> batch[1] = {load_vector(from, reinterpret_cast<std::uintptr_t>(from) % 16 == 0)};
      Accumulator::template absorb<1>(thread, batch, index, 0, p.options);
    } else {
      const int rest = static_cast<int>(p.axes.inner - full * kSize);
      for (int i = 0; i < rest; ++i)
        Accumulator::step_thread(thread, widen(load_global(from + i)), index + i, p.options);
    }
  }
}

/// Blocks that must fit an SM. 8-bit elements come 16 to a vector and need the registers.
template <typename Accumulator>
constexpr int kReductionBlocks = sizeof(typename Accumulator::Element) == 1 ? 1 : 2;

template <typename Accumulator>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, kReductionBlocks<Accumulator>) reduce_rows(const ReductionParameters p) {
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
    // Where kWidth divides the inner extent it divides every stride: one test holds for the whole column.
    const bool aligned = reinterpret_cast<std::uintptr_t>(column) % 16 == 0;
    std::int64_t index = begin + depth_index;
    const std::int64_t step = plan.depth;
    if (p.axes.reduced.groups <= 1 && (aligned || kWidth == 1)) {
      TL_ROLLED
      for (; index + 3 * step < end; index += 4 * step) {
        Strip<T, kWidth> batch[4];
        TL_UNROLL
        for (int i = 0; i < 4; ++i) batch[i] = load_strip<T, kWidth>(column + (index + i * step) * pitch, true);
        take_columns<Accumulator, kWidth, 4>(batch, index, step, p.options, state);
      }
    }
    TL_ROLLED
    for (; index < end; index += step) {
      const Strip<T, kWidth> one[1] = {load_strip<T, kWidth>(column + offset_of(p.axes.reduced, index), aligned)};
      take_columns<Accumulator, kWidth, 1>(one, index, step, p.options, state);
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
  State* const partials = static_cast<State*>(p.partials);
  if (writer) {
    TL_ROLLED
    for (int k = 0; k < kWidth; ++k) {
      store_global(partials + (kept * p.axes.inner + first_column + k) * plan.splits + split, element(k));
    }
  }
  if (!arrives_last(p.tickets + set, plan.splits, flag)) return;
  // Splits come with one combination of kept axes a block.
  const std::int64_t tile_begin = tile * plan.tile * kWidth;
  const std::int64_t tile_end = tile_begin + std::int64_t{plan.tile} * kWidth < p.axes.inner
                                    ? tile_begin + std::int64_t{plan.tile} * kWidth
                                    : p.axes.inner;
  for (std::int64_t j = tile_begin + tid; j < tile_end; j += kThreads) {
    const std::int64_t result = std::int64_t{set / tiles} * p.axes.inner + j;
    State total = load_shared_between_blocks(partials + result * plan.splits);
    for (unsigned i = 1; i < plan.splits; ++i) {
      total = Accumulator::combine(total, load_shared_between_blocks(partials + result * plan.splits + i));
    }
    finish_and_store<Accumulator>(p, result, total);
  }
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
