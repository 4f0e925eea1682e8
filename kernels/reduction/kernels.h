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
  // The elements after the last whole vector, one a lane, under way while the vectors are walked.
  const int rest = end > full ? static_cast<int>(p.axes.inner % kSize) : 0;
  int own_rest = static_cast<int>((first - full) & (stride - 1));  // strides are powers of two
  T rest_element{};
  if (own_rest < rest) rest_element = load_global(row + full * kSize + own_rest);
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
  TL_ROLLED
  while (own_rest < rest) {
    Accumulator::step_thread(thread, widen(rest_element), full * kSize + own_rest, p.options);
    own_rest += static_cast<int>(stride);
    if (own_rest < rest) rest_element = load_global(row + full * kSize + own_rest);
  }
}

/// Segments with gaps between them: units [first, end) of all of them by `stride` into `thread`.
template <typename Accumulator>
TL_DEVICE void walk_segments(const ReductionParameters& p, const Readable<typename Accumulator::Element>& readable,
                             const typename Accumulator::Element* row, std::int64_t first, std::int64_t end,
                             std::int64_t stride, typename Accumulator::Thread& thread) {
  using T = typename Accumulator::Element;
  constexpr int kSize = Vector<T>::kSize;
  const std::int64_t full = p.axes.inner / kSize;
  std::int64_t unit = first;
  // Whole vectors at boundaries, in segments at one distance: from unit to unit by additions.
  const std::int64_t pitch = p.axes.reduced.strides[0];
  if (!Accumulator::kUsesIndex && p.axes.reduced.groups == 1 && p.axes.inner % kSize == 0 && pitch % kSize == 0 &&
      bytes_past_vector(row) == 0 && full <= 1 << 30) {
    const std::int32_t length = static_cast<std::int32_t>(full);
    const std::int64_t segment = p.plan.segment_units.quotient(unit);
    std::int32_t inside = static_cast<std::int32_t>(unit - segment * full);
    const Vector<T>* from = reinterpret_cast<const Vector<T>*>(row + segment * pitch) + inside;
    // A stride is whole segments and some units more, and one segment more where these pass the end of one.
    const std::int64_t passed = p.plan.segment_units.quotient(stride);
    const std::int32_t more = static_cast<std::int32_t>(stride - passed * full);
    const std::int64_t advance = passed * (pitch / kSize) + more;
    const std::int64_t wrap = pitch / kSize - full;
    TL_ROLLED
    for (; unit + 3 * stride < end; unit += 4 * stride) {
      Vector<T> batch[4];
      TL_UNROLL
      for (int i = 0; i < 4; ++i) {
        batch[i] = load_global(from);
        inside += more;
        const bool wraps = inside >= length;
        inside -= wraps ? length : 0;
        from += advance + (wraps ? wrap : 0);
      }
      if (!Accumulator::template absorb<4>(thread, batch, unit * kSize, stride * kSize, p.options)) break;
    }
  }
  // Where a unit begins, its index in the reduced order, and whether it is a whole vector.
  const auto locate = [&](std::int64_t unit, const T*& from, std::int64_t& index) {
    const std::int64_t segment = p.plan.segment_units.quotient(unit);
    const std::int64_t inside = unit - segment * p.plan.segment_units.value;
    from = row + offset_of(p.axes.reduced, segment) + inside * kSize;
    index = segment * p.axes.inner + inside * kSize;
    return inside < full;
  };
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

/// Blocks that must fit an SM. 8-bit elements come 16 to a vector and need the registers; states of one word in rows
/// need few, before sm_90 some more for addresses; and indices of 16-bit elements few enough for three.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr int kWordStateBlocks = 3;
#else
constexpr int kWordStateBlocks = 4;
#endif
template <typename Accumulator>
constexpr int kReductionBlocks = sizeof(typename Accumulator::Element) == 1 ? 1 : 2;
/// Its batch of vectors has one reference: the registers of four blocks are enough, though its state has two words.
template <typename Accumulator>
constexpr bool kIsShortLogSumExp = false;
template <>
inline constexpr bool kIsShortLogSumExp<LogSumExp<BFloat16>> = true;
template <>
inline constexpr bool kIsShortLogSumExp<LogSumExp<Half>> = true;
template <typename Accumulator>
constexpr int kRowReductionBlocks =
    sizeof(typename Accumulator::State) == 4 || kIsShortLogSumExp<Accumulator> ? kWordStateBlocks
    : Accumulator::kUsesIndex && sizeof(typename Accumulator::Element) == 2    ? 3
                                                                               : kReductionBlocks<Accumulator>;

template <typename Accumulator>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, kRowReductionBlocks<Accumulator>) reduce_rows(const ReductionParameters p) {
  using T = typename Accumulator::Element;
  using State = typename Accumulator::State;
  const T* const input = static_cast<const T*>(p.input);
  const unsigned tid = thread_in_block();
  typename Accumulator::Thread thread = Accumulator::start();

  if (p.plan.lanes < kThreads) {
    const unsigned at_once = kThreads / p.plan.lanes;
    const unsigned lane = tid & (p.plan.lanes - 1);
    std::int64_t row = std::int64_t{block_in_grid()} * (at_once * p.plan.rows_each) + tid / p.plan.lanes;
    TL_ROLLED
    for (unsigned i = 0; i < p.plan.rows_each; ++i, row += at_once) {
      const bool active = row < p.axes.outer_kept;
      thread = Accumulator::start();
      if (active) {
        walk_row<Accumulator>(p, input + offset_of(p.axes.kept, row), lane, p.plan.split_length, p.plan.lanes, thread);
      }
      const State state = combine_lanes<Accumulator>(Accumulator::collapse(thread), p.plan.lanes);
      if (active && lane == 0) finish_and_store<Accumulator>(p, row, state);
    }
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

/// Shared memory of a block of columns: as many states of each thread at once as 32 KiB hold, all of them where a
/// result is made of several columns.
template <typename Accumulator>
constexpr int kStatesAtOnce =
    (32 << 10) / (kThreads * sizeof(typename Accumulator::State)) < Vector<typename Accumulator::Element>::kSize
        ? static_cast<int>((32 << 10) / (kThreads * sizeof(typename Accumulator::State)))
        : Vector<typename Accumulator::Element>::kSize;

/// Results can be made of several columns each: the accumulator needs no index of an element, and a block holds the
/// states of all its columns.
template <typename Accumulator>
constexpr bool kMergesColumns =
    !Accumulator::kUsesIndex && kStatesAtOnce<Accumulator> == Vector<typename Accumulator::Element>::kSize;

/// Loads under way: 8 where the states are words, for which two blocks of an SM have the registers.
template <typename Accumulator, int kWidth>
constexpr int kColumnBatch = kWidth > 1 && sizeof(typename Accumulator::State) == 4 && !Accumulator::kUsesIndex ? 8 : 4;

/// Rows [index, end) of a thread's columns by `step`, as far as whole batches go.
template <typename Accumulator, int kWidth, int kBatch>
TL_DEVICE void walk_columns(const ReductionParameters& p, const typename Accumulator::Element* column,
                            std::int64_t step, std::int64_t end, std::int64_t& index,
                            typename Accumulator::State (&state)[kWidth]) {
  using T = typename Accumulator::Element;
  const std::int64_t pitch = p.plan.columns.reduced.strides[0];
  TL_ROLLED
  for (; index + (kBatch - 1) * step < end; index += kBatch * step) {
    Strip<T, kWidth> batch[kBatch];
    TL_UNROLL
    for (int i = 0; i < kBatch; ++i) batch[i] = load_strip<T, kWidth>(column + (index + i * step) * pitch, true);
    take_columns<Accumulator, kWidth, kBatch>(batch, index, step, p.options, state);
  }
}

/// One block's tile of columns, `kWidth` to a thread.
template <typename Accumulator, int kWidth, typename Scratch, typename Flag>
TL_DEVICE void reduce_tile(const ReductionParameters& p, const Scratch& scratch, const Flag& flag) {
  using T = typename Accumulator::Element;
  using State = typename Accumulator::State;
  const ReductionPlan& plan = p.plan;
  const FoldedAxes& axes = plan.columns;
  const unsigned tid = thread_in_block();
  const unsigned split = block_in_grid() % plan.splits;
  const unsigned set = block_in_grid() / plan.splits;
  const unsigned tiles = static_cast<unsigned>(plan.tiles);  // at most the number of blocks
  const std::int64_t tile = set % tiles;
  const unsigned level = tid / plan.tile;
  const unsigned depth_index = level % plan.depth;
  const std::int64_t kept = std::int64_t{set / tiles} * plan.groups + level / plan.depth;
  const std::int64_t unit = tile * plan.tile + tid % plan.tile;
  const bool active = level < plan.depth * plan.groups && kept < axes.outer_kept && unit * kWidth < axes.inner;
  const std::int64_t begin = split * plan.split_length;
  const std::int64_t stop = begin + plan.split_length;
  const std::int64_t end = stop < axes.outer_reduced ? stop : axes.outer_reduced;

  State state[kWidth];
  TL_UNROLL
  for (int k = 0; k < kWidth; ++k) state[k] = Accumulator::identity();
  if (active) {
    const T* const column = static_cast<const T*>(p.input) + offset_of(axes.kept, kept) + unit * kWidth;
    const std::int64_t pitch = axes.reduced.strides[0];
    // Of rows that are no whole vectors each begins at another boundary. A vector over the end of one reads the next.
    const bool even = kWidth == 1 || axes.inner % kWidth == 0;
    const std::int64_t left_columns = axes.inner - unit * kWidth;
    const int width = left_columns < kWidth ? static_cast<int>(left_columns) : kWidth;
    const std::int64_t batch_end = width == kWidth || end < axes.outer_reduced ? end : end - 1;
    const T* const input = static_cast<const T*>(p.input);
    const Readable<T> readable = {input, input + p.axes.outer_kept * p.axes.outer_reduced * p.axes.inner};
    std::int64_t index = begin + depth_index;
    const std::int64_t step = plan.depth;
    if (axes.reduced.groups <= 1) {
      if (even && (kWidth == 1 || bytes_past_vector(column) == 0)) {
        if constexpr (kColumnBatch<Accumulator, kWidth> == 8)
          walk_columns<Accumulator, kWidth, 8>(p, column, step, end, index, state);
        walk_columns<Accumulator, kWidth, 4>(p, column, step, end, index, state);
      } else if constexpr (kWidth > 1) {
        TL_ROLLED
        for (; index + 3 * step < batch_end; index += 4 * step) {
          const T* const at = column + index * pitch;
          const T* const from[4] = {at, at + step * pitch, at + 2 * step * pitch, at + 3 * step * pitch};
          unsigned shift[4];
          TL_UNROLL
          for (int i = 0; i < 4; ++i) shift[i] = bytes_past_vector(from[i]);
          Vector<T> batch[4];
          load_four<T>(readable, from, shift, batch);
          take_columns<Accumulator, kWidth, 4>(batch, index, step, p.options, state);
        }
      }
    }
    TL_ROLLED
    for (; index < end; index += step) {
      const T* const at = column + offset_of(axes.reduced, index);
      if constexpr (kWidth == 1) {
        const T one[1] = {load_global(at)};
        take_columns<Accumulator, kWidth, 1>(one, index, step, p.options, state);
      } else {
        const Vector<T> one[1] = {width == kWidth ? load_anywhere(readable, at) : load_first(readable, at, width)};
        take_columns<Accumulator, kWidth, 1>(one, index, step, p.options, state);
      }
    }
    if constexpr (kWidth > 1 && kMergesColumns<Accumulator>) {
      // Elements after the last whole row of what was folded.
      const std::int64_t left = plan.rest - unit * kWidth;
      if (left > 0 && split + 1 == plan.splits && depth_index == 0) {
        const int count = left < kWidth ? static_cast<int>(left) : kWidth;
        const Vector<T> vector = load_first(readable, column + axes.outer_reduced * pitch, count);
        TL_UNROLL
        for (int k = 0; k < kWidth; ++k) {
          if (k < count) Accumulator::step(state[k], widen(vector.element(k)), 0, p.options);
        }
      }
    }
  }

  // Over the depth in shared memory: as many threads a column as there are, then one. A state lies where its thread is.
  constexpr int kAtOnce = kWidth == 1 ? 1 : kStatesAtOnce<Accumulator>;
  State* const partials = static_cast<State*>(p.partials);
  const std::int64_t results_inner = axes.inner / plan.merge;
  const std::int64_t results = axes.outer_kept * results_inner;
  const auto put = [&](std::int64_t result, const State& total) {
    if (plan.splits == 1) {
      finish_and_store<Accumulator>(p, result, total);
    } else {  // split by split, so that neighbouring results are neighbours there too
      store_global(partials + split * results + result, total);
    }
  };
  const unsigned across = plan.tile * plan.groups;  // threads of one level of the depth
  const unsigned columns_at_once = across * kAtOnce;
  const unsigned level_parts = columns_at_once < kThreads && plan.depth > 1
                                   ? (kThreads / columns_at_once < plan.depth ? kThreads / columns_at_once : plan.depth)
                                   : 1;
  const auto slot = [&](unsigned k, unsigned u, unsigned d) {
    return k * kThreads + (u / plan.tile * plan.depth + d) * plan.tile + u % plan.tile;
  };
  const auto add_levels = [&](unsigned k, unsigned u, unsigned first, unsigned stride, unsigned levels) {
    State total = scratch[slot(k, u, first)];
    TL_ROLLED
    for (unsigned d = first + stride; d < levels; d += stride) {
      const State more = scratch[slot(k, u, d)];
      total = Accumulator::combine(total, more);
    }
    scratch[slot(k, u, first)] = total;
  };
  TL_ROLLED
  for (int first = 0; first < kWidth; first += kAtOnce) {
    if (first > 0) block_barrier();
    TL_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      State picked = state[k];
      TL_UNROLL
      for (int chunk = kAtOnce; chunk < kWidth; chunk += kAtOnce) {
        if (first == chunk) picked = state[chunk + k];
      }
      scratch[static_cast<unsigned>(k) * kThreads + tid] = picked;
    }
    block_barrier();
    if (plan.depth > 1) {
      TL_ROLLED
      for (unsigned c = tid; c < columns_at_once * level_parts; c += kThreads) {
        const unsigned column = c % columns_at_once;
        add_levels(column / across, column % across, c / columns_at_once, level_parts, plan.depth);
      }
      block_barrier();
      if (level_parts > 1) {
        if (tid < columns_at_once) add_levels(tid / across, tid % across, 0, 1, level_parts);
        block_barrier();
      }
    }
    if (kWidth > 1 && kMergesColumns<Accumulator> && plan.merge > 1) continue;
    TL_ROLLED
    for (unsigned c = tid; c < columns_at_once; c += kThreads) {
      const unsigned k = c % kAtOnce;
      const unsigned u = c / kAtOnce;
      const std::int64_t of = std::int64_t{set / tiles} * plan.groups + u / plan.tile;
      const std::int64_t column = (tile * plan.tile + u % plan.tile) * kWidth + first + k;
      if (of >= axes.outer_kept || column >= axes.inner) continue;
      const State total = scratch[slot(k, u, 0)];
      put(of * axes.inner + column, total);
    }
  }
  const std::int64_t tile_results = std::int64_t{plan.tile} * kWidth / plan.merge;
  if constexpr (kWidth > 1 && kMergesColumns<Accumulator>) {
    if (plan.merge > 1) {
      // A warp a result.
      const unsigned lane = lane_in_warp();
      TL_ROLLED
      for (unsigned r = warp_in_block(); r < plan.groups * static_cast<unsigned>(tile_results); r += kWarps) {
        const unsigned group = r / static_cast<unsigned>(tile_results);
        const unsigned inside = r % static_cast<unsigned>(tile_results);
        const std::int64_t of = std::int64_t{set / tiles} * plan.groups + group;
        const std::int64_t result = tile * tile_results + inside;
        if (of >= axes.outer_kept || result >= results_inner) continue;
        State total = Accumulator::identity();
        TL_ROLLED
        for (unsigned i = lane; i < plan.merge; i += kWarpLanes) {
          const unsigned column =
              plan.merged_apart ? i * static_cast<unsigned>(results_inner) + inside : inside * plan.merge + i;
          const State more = scratch[slot(column % kWidth, group * plan.tile + column / kWidth, 0)];
          total = Accumulator::combine(total, more);
        }
        total = combine_lanes<Accumulator>(total, kWarpLanes);
        if (lane == 0) put(of * results_inner + result, total);
      }
    }
  }
  if (plan.splits == 1) return;
  if (!arrives_last(p.tickets + set, plan.splits, flag)) return;
  // Splits come with one combination of kept axes a block. A column has as many threads as there are for it.
  const std::int64_t tile_begin = tile * tile_results;
  const std::int64_t tile_end = tile_begin + tile_results < results_inner ? tile_begin + tile_results : results_inner;
  const unsigned columns = static_cast<unsigned>(tile_end - tile_begin);
  const unsigned parts = columns < kThreads ? kThreads / columns : 1;
  const unsigned part = tid / columns;  // 0 where there are more columns than threads
  for (std::int64_t j = tile_begin + tid % columns; j < tile_end && part < parts; j += kThreads) {
    const State* const from = partials + std::int64_t{set / tiles} * results_inner + j;
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
      finish_and_store<Accumulator>(p, std::int64_t{set / tiles} * results_inner + j, total);
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
  finish_and_store<Accumulator>(p, std::int64_t{set / tiles} * results_inner + tile_begin + tid, total);
}

template <typename Accumulator>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, kReductionBlocks<Accumulator>) reduce_columns(const ReductionParameters p) {
  TL_SHARED(typename Accumulator::State, scratch, kThreads * kStatesAtOnce<Accumulator>);
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
  return p.plan.by_columns ? launch(&reduce_columns<Accumulator>, geometry, stream, p)
                           : launch(&reduce_rows<Accumulator>, geometry, stream, p);
}

}  // namespace tensorlint::kernels
