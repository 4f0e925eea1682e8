#pragma once

// Class kernels of columns (inner > 1): the positions of a tile side by side, the threads above each other go down the
// classes. A tile is absorbed, each of its positions concluded by one thread, and then written.

#include "kernels/loss/class_common.h"

namespace tensorlint::kernels {

/// `kCount` classes of a strip of kWidth positions, `step` apart from class `index` on.
template <ClassTask kTask, int kWidth, int kCount, typename T>
TL_DEVICE void absorb_strips(const ClassParameters<T>& p, const Strip<T, kWidth> (&logits)[kCount],
                             const Strip<T, kWidth> (&probabilities)[kCount], std::int64_t index, std::int64_t step,
                             bool soft, RunningClasses<Compute<T>> (&running)[kWidth]) {
  using C = Compute<T>;
  C x[kCount][kWidth];
  TL_UNROLL
  for (int c = 0; c < kCount; ++c) unpack_strip<T, kWidth>(logits[c], x[c]);
  C largest[kWidth];
  bool raised = false;
  TL_UNROLL
  for (int k = 0; k < kWidth; ++k) {
    largest[k] = x[0][k];
    TL_UNROLL
    for (int c = 1; c < kCount; ++c) largest[k] = max_number(largest[k], x[c][k]);
    raised = raised || largest[k] > running[k].exponentials.maximum;
  }
  if (raised) {  // seldom, once the first classes have been seen
    TL_UNROLL
    for (int k = 0; k < kWidth; ++k) ExpSum<C>::raise(running[k].exponentials, largest[k]);
  }
  TL_UNROLL
  for (int k = 0; k < kWidth; ++k) {
    C part = ExpBase<C>::term(x[0][k], running[k].exponentials.reference);
    TL_UNROLL
    for (int c = 1; c < kCount; ++c) part += ExpBase<C>::term(x[c][k], running[k].exponentials.reference);
    running[k].exponentials.sum += part;
  }
  if (kTask != ClassTask::kSoftmax && soft) {
    TL_UNROLL
    for (int c = 0; c < kCount; ++c) {
      C t[kWidth] = {};
      if constexpr (kTask == ClassTask::kProbabilities) unpack_strip<T, kWidth>(probabilities[c], t);
      TL_UNROLL
      for (int k = 0; k < kWidth; ++k) {
        const C q = soft_target<kTask>(p, index + c * step, t[k]);
        running[k].dot += q * x[c][k];
        running[k].mass += q;
      }
    }
  }
}

/// Outputs of one class for a strip of positions, without a label's own part.
template <ClassTask kTask, int kWidth, typename T>
TL_DEVICE void output_strip(const ClassParameters<T>& p, const RowResult<Compute<T>> (&r)[kWidth], unsigned skipped,
                            const Strip<T, kWidth>& logits, const Strip<T, kWidth>& probabilities, std::int64_t index,
                            bool soft, T* to, bool aligned) {
  using C = Compute<T>;
  C out[kWidth];
  unpack_strip<T, kWidth>(logits, out);
  if (kTask == ClassTask::kSoftmax && p.logarithmic) {
    TL_UNROLL
    for (int k = 0; k < kWidth; ++k)
      out[k] = -(ExpBase<C>::log_of_sum_minus(out[k], r[k].reference, C{1}) + r[k].log_offset);
  } else {
    TL_UNROLL
    for (int k = 0; k < kWidth; ++k) out[k] = ExpBase<C>::term(out[k], r[k].reference) * r[k].factor;
  }
  if (kTask != ClassTask::kSoftmax && soft) {
    C t[kWidth] = {};
    if constexpr (kTask == ClassTask::kProbabilities) unpack_strip<T, kWidth>(probabilities, t);
    TL_UNROLL
    for (int k = 0; k < kWidth; ++k) out[k] -= r[k].gain * soft_target<kTask>(p, index, t[k]);
  }
  if (skipped != 0) {
    TL_UNROLL
    for (int k = 0; k < kWidth; ++k) out[k] = (skipped >> k & 1U) != 0 ? C{0} : out[k];
  }
  store_strip<T, kWidth>(to, out, aligned);
}
/// One thread's place in one tile: plan.units strips of kWidth neighbouring positions side by side.
template <typename T, int kWidth>
struct TileView {
  const T* logits;  // class 0 of the strip
  const T* probabilities;
  T* out;
  std::int64_t first;  // first position of the strip
  std::int64_t index;  // this thread's first class
  std::int64_t step;   // the way to its next
  bool active;         // there is such a strip
  bool counted;        // some label of it counts
  bool aligned;        // logits and probabilities
  std::int64_t own;    // the position that this thread concludes; -1: none
};

/// Class 0 of a position, from the beginning of the tensor.
template <typename T>
TL_DEVICE std::int64_t start_of(const ClassParameters<T>& p, std::int64_t position) {
  return p.by_inner.quotient(position) * (p.classes - 1) * p.inner + position;
}

template <ClassTask kTask, int kWidth, typename T>
TL_DEVICE TileView<T, kWidth> view_tile(const ClassParameters<T>& p, std::int64_t tile) {
  const unsigned tid = thread_in_block();
  const unsigned units = p.plan.units;
  const std::int64_t strips = p.rows * p.inner / kWidth;
  const std::int64_t strip = tile * units + tid % units;
  TileView<T, kWidth> v;
  v.active = strip < strips;
  v.first = v.active ? strip * kWidth : 0;
  const std::int64_t start = start_of(p, v.first);
  v.logits = p.logits + start;
  v.probabilities = kTask == ClassTask::kProbabilities ? p.second + start : nullptr;
  v.out = p.output + start;
  v.index = tid / units;
  v.step = kThreads / units;
  v.aligned = kWidth == 1 || (reinterpret_cast<std::uintptr_t>(v.logits) % 16 == 0 &&
                              reinterpret_cast<std::uintptr_t>(v.probabilities) % 16 == 0);
  v.counted = v.active;
  if constexpr (kTask == ClassTask::kIndices) {
    v.counted = false;
    TL_ROLLED
    for (int k = 0; k < kWidth && v.active && !v.counted; ++k) v.counted = counts(p, label_at(p.labels, v.first + k));
  }
  v.own = v.active && tid / units < kWidth ? v.first + tid / units : -1;
  return v;
}

/// Calls `take(logits, probabilities, index, batch)` with strips of this thread's classes, kBatch at a time where
/// `batches` (all are aligned: `batch` is std::true_type), then singly (std::false_type); `count` classes in all.
template <ClassTask kTask, int kWidth, typename T, typename Take>
TL_DEVICE void walk_classes(const ClassParameters<T>& p, const TileView<T, kWidth>& v, std::int64_t count, bool batches,
                            const Take& take) {
  using S = Strip<T, kWidth>;
  constexpr int kBatch = kTask == ClassTask::kProbabilities ? 2 : 4;  // four loads in flight either way
  std::int64_t index = v.index;
  if (batches) {
    TL_ROLLED
    for (; index + (kBatch - 1) * v.step < count; index += kBatch * v.step) {
      S x[kBatch];
      S t[kBatch] = {};
      TL_UNROLL
      for (int c = 0; c < kBatch; ++c) x[c] = load_strip<T, kWidth>(v.logits + (index + c * v.step) * p.inner, true);
      if constexpr (kTask == ClassTask::kProbabilities) {
        TL_UNROLL
        for (int c = 0; c < kBatch; ++c)
          t[c] = load_strip<T, kWidth>(v.probabilities + (index + c * v.step) * p.inner, true);
      }
      take(x, t, index, std::true_type{});
    }
  }
  TL_ROLLED
  for (; index < count; index += v.step) {
    const S x[1] = {load_strip<T, kWidth>(v.logits + index * p.inner, v.aligned)};
    S t[1] = {};
    if constexpr (kTask == ClassTask::kProbabilities)
      t[0] = load_strip<T, kWidth>(v.probabilities + index * p.inner, v.aligned);
    take(x, t, index, std::false_type{});
  }
}

/// First pass: this thread's statistics of its strip, into the block's scratch.
template <ClassTask kTask, int kWidth, typename T, typename Scratch>
TL_DEVICE void absorb_tile(const ClassParameters<T>& p, const TileView<T, kWidth>& v, bool soft,
                           const Scratch& scratch) {
  using C = Compute<T>;
  RunningClasses<C> running[kWidth];
  walk_classes<kTask, kWidth>(p, v, v.counted ? p.classes : 0, v.aligned,
                              [&](const auto& x, const auto& t, std::int64_t index, auto) {
                                absorb_strips<kTask, kWidth>(p, x, t, index, v.step, soft, running);
                              });
  TL_UNROLL
  for (int k = 0; k < kWidth; ++k) {
    scratch[static_cast<unsigned>(k) * kThreads + thread_in_block()] =
        ClassState<C>{ExpSum<C>::collapse(running[k].exponentials), running[k].dot, running[k].mass};
  }
}

/// Between the passes: merges and concludes this thread's own position, into `results`. Returns its loss.
template <ClassTask kTask, int kWidth, typename T, typename Scratch, typename Results>
TL_DEVICE double conclude_position(const ClassParameters<T>& p, const TileView<T, kWidth>& v, const Scratch& scratch,
                                   const Results& results) {
  using C = Compute<T>;
  using State = ClassState<C>;
  const unsigned tid = thread_in_block();
  const unsigned column = tid / p.plan.units * kThreads + tid % p.plan.units;
  RowResult<C> r{};
  bool skip = false;
  if constexpr (kTask == ClassTask::kIndices) skip = !counts(p, label_at(p.labels, v.own));
  if (!skip) {
    State state = scratch[column];
    TL_ROLLED
    for (unsigned level = 1; level < kThreads / p.plan.units; ++level) {
      const State other = scratch[column + level * p.plan.units];
      state = MergeClasses<C>::combine(state, other);
    }
    C label_logit = C{0};
    if constexpr (kTask == ClassTask::kIndices) label_logit = label_logit_at(p, v.own, p.logits + start_of(p, v.own));
    r = conclude<kTask>(p, state, v.own, label_logit);
  } else {
    r.label = kSkipped;
  }
  results[tid] = r;
  if constexpr (kTask == ClassTask::kSoftmax) return 0.0;
  if (p.losses != nullptr) store_global(p.losses + v.own, narrow<T>(r.loss));
  return static_cast<double>(r.loss);
}

/// Second pass: this thread's outputs of its strip, without the labels' own parts.
template <ClassTask kTask, int kWidth, typename T, typename Results>
TL_DEVICE void write_tile(const ClassParameters<T>& p, const TileView<T, kWidth>& v, bool soft,
                          const Results& results) {
  using C = Compute<T>;
  using S = Strip<T, kWidth>;
  RowResult<C> r[kWidth];
  unsigned skipped = 0;
  TL_UNROLL
  for (int k = 0; k < kWidth; ++k) {
    r[k] = results[static_cast<unsigned>(k) * p.plan.units + thread_in_block() % p.plan.units];
    if (r[k].label == kSkipped) skipped |= 1U << k;
  }
  const bool aligned = kWidth == 1 || reinterpret_cast<std::uintptr_t>(v.out) % 16 == 0;
  const auto write = [&](const auto& x, const auto& t, std::int64_t index, auto batch) {
    constexpr int kCount = static_cast<int>(sizeof(x) / sizeof(x[0]));
    TL_UNROLL
    for (int c = 0; c < kCount; ++c) {
      const std::int64_t at = index + c * v.step;
      output_strip<kTask, kWidth>(p, r, skipped, x[c], t[c], at, soft, v.out + at * p.inner,
                                  decltype(batch)::value || aligned);
    }
  };
  if (v.counted) {
    walk_classes<kTask, kWidth>(p, v, p.classes, v.aligned && aligned, write);
    return;
  }
  TL_ROLLED
  for (std::int64_t index = v.index; index < p.classes; index += v.step) {  // all skipped: zeros
    const S nothing[1] = {};
    write(nothing, nothing, index, std::false_type{});
  }
}

/// The tiles of one block. Returns this thread's part of the sum of losses.
template <ClassTask kTask, int kWidth, typename T, typename Scratch, typename Results>
TL_DEVICE double class_tiles(const ClassParameters<T>& p, const Scratch& scratch, const Results& results) {
  const unsigned tid = thread_in_block();
  const std::int64_t strips = p.rows * p.inner / kWidth;
  const std::int64_t tiles = (strips + p.plan.units - 1) / p.plan.units;
  const bool soft = p.template is_soft<kTask>();
  double sum = 0;
  TL_ROLLED
  for (std::int64_t tile = block_in_grid(); tile < tiles; tile += blocks_in_grid()) {
    const TileView<T, kWidth> v = view_tile<kTask, kWidth>(p, tile);
    absorb_tile<kTask, kWidth>(p, v, soft, scratch);
    block_barrier();
    if (v.own >= 0) sum += conclude_position<kTask, kWidth>(p, v, scratch, results);
    block_barrier();
    if (p.output == nullptr) continue;
    if (v.active) write_tile<kTask, kWidth>(p, v, soft, results);
    if constexpr (kTask == ClassTask::kIndices) {
      block_barrier();  // each label's class is written again, now with its own part
      if (v.own >= 0) {
        const RowResult<Compute<T>> r = results[tid];
        if (r.label >= 0) {
          store_global(p.output + start_of(p, v.own) + r.label * p.inner,
                       narrow<T>(class_output<kTask>(p, r, r.label_logit, r.label, Compute<T>{0})));
        }
      }
    }
  }
  return sum;
}

/// Blocks that fit an SM; float64 needs the registers.
template <typename T>
constexpr int kColumnBlocks = sizeof(T) == 8 ? 1 : 2;

template <ClassTask kTask, typename T>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, kColumnBlocks<T>) class_columns(const ClassParameters<T> p) {
  using C = Compute<T>;
  constexpr int kSize = Vector<T>::kSize;
  TL_SHARED(ClassState<C>, scratch, kThreads * kSize);
  TL_SHARED(RowResult<C>, results, kColumnUnits * kSize);
  TL_SHARED(double, sum_scratch, kWarps);
  TL_SHARED(unsigned, flag, 1);
  double block_sum = p.plan.width == kSize ? class_tiles<kTask, kSize>(p, scratch, results)
                                           : class_tiles<kTask, 1>(p, scratch, results);
  if (kTask != ClassTask::kSoftmax) write_total(p, block_sum, sum_scratch, flag);
}

}  // namespace tensorlint::kernels
