#pragma once

// Class kernels of contiguous rows (inner == 1): each row belongs to plan.lanes threads, or to a cluster of
// plan.cluster blocks; the grid walks the rows. A row is absorbed (its exponential sum), combined over its threads,
// concluded and, where outputs are asked for, written.

#include "kernels/loss/class_common.h"

namespace tensorlint::kernels {

/// Sum q x and Sum q over one vector.
template <ClassTask kTask, typename T>
TL_DEVICE void absorb_soft(const ClassParameters<T>& p, const Vector<T>& vector, const T* probabilities,
                           std::int64_t first, RunningClasses<Compute<T>>& running) {
  using C = Compute<T>;
  constexpr int kSize = Vector<T>::kSize;
  C x[kSize];
  unpack(vector, x);
  C t[kSize] = {};
  if constexpr (kTask == ClassTask::kProbabilities) {
    const T* const from = probabilities + first;
    unpack(load_vector(from, reinterpret_cast<std::uintptr_t>(from) % 16 == 0), t);
  }
  TL_UNROLL
  for (int i = 0; i < kSize; ++i) {
    const C q = soft_target<kTask>(p, first + i, t[i]);
    running.dot += q * x[i];
    running.mass += q;
  }
}
/// The whole vectors of this thread's part of a row, from `unit` to `whole`. kSoft: targets are soft (smoothing,
/// probabilities).
template <ClassTask kTask, bool kSoft, typename T, typename Cache>
TL_DEVICE void absorb_row(const ClassParameters<T>& p, const T* logits, const T* probabilities, std::int64_t unit,
                          std::int64_t whole, std::int64_t begin, const Cache& cache,
                          RunningClasses<Compute<T>>& running) {
  using C = Compute<T>;
  constexpr int kSize = Vector<T>::kSize;
  const bool aligned = reinterpret_cast<std::uintptr_t>(logits) % 16 == 0;
  const std::int64_t step = p.plan.lanes;
  if (aligned) {
    const Vector<T>* const vectors = reinterpret_cast<const Vector<T>*>(logits);
    TL_ROLLED
    for (; unit + 3 * step < whole; unit += 4 * step) {
      Vector<T> batch[4];
      TL_UNROLL
      for (int i = 0; i < 4; ++i) batch[i] = load_global(vectors + (unit + i * step));
      if (p.plan.cached) {
        TL_UNROLL
        for (int i = 0; i < 4; ++i) cache[unit + i * step - begin] = batch[i];
      }
      if (!ExpSum<C>::absorb_plain(running.exponentials, batch)) break;
      if constexpr (kSoft) {
        TL_UNROLL
        for (int i = 0; i < 4; ++i) absorb_soft<kTask>(p, batch[i], probabilities, (unit + i * step) * kSize, running);
      }
    }
  }
  TL_ROLLED
  for (; unit < whole; unit += step) {
    const Vector<T> vector = load_vector(logits + unit * kSize, aligned);
    if (p.plan.cached) cache[unit - begin] = vector;
    ExpSum<C>::absorb(running.exponentials, vector);
    if constexpr (kSoft) absorb_soft<kTask>(p, vector, probabilities, unit * kSize, running);
  }
}

template <ClassTask kTask, typename T>
TL_DEVICE void absorb_class(const ClassParameters<T>& p, Compute<T> x, Compute<T> probability, std::int64_t index,
                            RunningClasses<Compute<T>>& running) {
  using C = Compute<T>;
  ExpSum<C>::step(running.exponentials, x);
  if (p.template is_soft<kTask>()) {
    const C q = soft_target<kTask>(p, index, probability);
    running.dot += q * x;
    running.mass += q;
  }
}

/// Outputs of the vector of classes that starts at `first`, without a label's own part. kSoft: soft targets, or
/// log-softmax.
template <ClassTask kTask, bool kSoft, typename T>
TL_DEVICE Vector<T> output_vector(const ClassParameters<T>& p, const RowResult<Compute<T>>& r, const Vector<T>& logits,
                                  const T* probabilities, std::int64_t first) {
  using C = Compute<T>;
  constexpr int kSize = Vector<T>::kSize;
  C out[kSize];
  unpack(logits, out);
  if constexpr (kTask == ClassTask::kSoftmax && kSoft) {
    TL_UNROLL
    for (int i = 0; i < kSize; ++i) out[i] = -(ExpBase<C>::log_of_sum_minus(out[i], r.reference, C{1}) + r.log_offset);
  } else {
    TL_UNROLL
    for (int i = 0; i < kSize; ++i) out[i] = ExpBase<C>::term(out[i], r.reference) * r.factor;
  }
  if constexpr (kTask != ClassTask::kSoftmax && kSoft) {
    C t[kSize] = {};
    if constexpr (kTask == ClassTask::kProbabilities) {
      const T* const from = probabilities + first;
      unpack(load_vector(from, reinterpret_cast<std::uintptr_t>(from) % 16 == 0), t);
    }
    TL_UNROLL
    for (int i = 0; i < kSize; ++i) out[i] -= r.gain * soft_target<kTask>(p, first + i, t[i]);
  }
  return pack<T>(out);
}

/// Writes this thread's whole vectors of a row.
template <ClassTask kTask, bool kSoft, typename T, typename Cache>
TL_DEVICE void write_row(const ClassParameters<T>& p, const RowResult<Compute<T>>& r, const T* logits,
                         const T* probabilities, T* out, std::int64_t unit, std::int64_t whole, std::int64_t begin,
                         const Cache& cache) {
  constexpr int kSize = Vector<T>::kSize;
  const bool aligned = reinterpret_cast<std::uintptr_t>(out) % 16 == 0;
  const bool logits_aligned = reinterpret_cast<std::uintptr_t>(logits) % 16 == 0;
  const std::int64_t step = p.plan.lanes;
  if (p.plan.cached && aligned) {
    TL_ROLLED
    for (; unit < whole; unit += step) {
      const Vector<T> vector = cache[unit - begin];
      store_vector(out + unit * kSize, output_vector<kTask, kSoft>(p, r, vector, probabilities, unit * kSize), true);
    }
  } else if (aligned && logits_aligned) {
    const Vector<T>* const vectors = reinterpret_cast<const Vector<T>*>(logits);
    TL_ROLLED
    for (; unit + 3 * step < whole; unit += 4 * step) {
      Vector<T> batch[4];
      TL_UNROLL
      for (int i = 0; i < 4; ++i) batch[i] = load_global(vectors + (unit + i * step));
      TL_UNROLL
      for (int i = 0; i < 4; ++i) {
        const std::int64_t at = (unit + i * step) * kSize;
        store_vector(out + at, output_vector<kTask, kSoft>(p, r, batch[i], probabilities, at), true);
      }
    }
  }
  TL_ROLLED
  for (; unit < whole; unit += step) {
    const Vector<T> vector = load_vector(logits + unit * kSize, logits_aligned);
    store_vector(out + unit * kSize, output_vector<kTask, kSoft>(p, r, vector, probabilities, unit * kSize), aligned);
  }
}

/// One row as one thread sees it: where it lies, and which of its vectors the thread takes: `first`, `first` + lanes
/// and so on below `whole`, and perhaps the incomplete one at the row's end.
template <typename T>
struct RowView {
  const T* logits;
  const T* probabilities;
  T* out;
  std::int64_t row;
  bool active;   // there is such a row
  bool skipped;  // its label counts for nothing, or it is not active
};

/// The same for every row of a block.
struct RowPart {
  unsigned lane;       // among the threads of a row
  std::int64_t begin;  // first vector of the block's part
  std::int64_t whole;  // end of its complete vectors
  int rest;            // elements of the incomplete vector; 0 where another thread has it
};

template <typename T>
TL_DEVICE RowPart part_of_rows(const ClassParameters<T>& p, unsigned rank) {
  constexpr int kSize = Vector<T>::kSize;
  const std::int64_t units = (p.classes + kSize - 1) / kSize;
  const std::int64_t full = p.classes / kSize;
  RowPart part;
  part.lane = thread_in_block() & (p.plan.lanes - 1);
  part.begin = rank * p.plan.part;
  const std::int64_t end = part.begin + p.plan.part < units ? part.begin + p.plan.part : units;
  part.whole = end < full ? end : full;
  // The unit after the whole ones, in the part and at the thread whose turn it is.
  const bool owns_rest =
      end > part.whole && part.whole >= part.begin && (part.whole - part.begin) % p.plan.lanes == part.lane;
  part.rest = owns_rest ? static_cast<int>(p.classes - full * kSize) : 0;
  return part;
}

template <ClassTask kTask, typename T>
TL_DEVICE RowView<T> view_row(const ClassParameters<T>& p, std::int64_t row) {
  RowView<T> v;
  v.row = row;
  v.active = row < p.rows;
  const std::int64_t start = v.active ? row * p.classes : 0;
  v.logits = p.logits + start;
  v.probabilities = kTask == ClassTask::kProbabilities ? p.second + start : nullptr;
  v.out = p.output + start;
  v.skipped = !v.active;
  if constexpr (kTask == ClassTask::kIndices) v.skipped = v.skipped || !counts(p, label_at(p.labels, row));
  return v;
}

/// First pass: this thread's statistics of a row.
template <ClassTask kTask, typename T, typename Cache>
TL_DEVICE ClassState<Compute<T>> absorb_part(const ClassParameters<T>& p, const RowView<T>& v, const RowPart& part,
                                             const Cache& cache) {
  using C = Compute<T>;
  RunningClasses<C> running;
  if (!v.skipped) {
    const std::int64_t first = part.begin + part.lane;
    if (p.template is_soft<kTask>()) {
      absorb_row<kTask, kTask != ClassTask::kSoftmax>(p, v.logits, v.probabilities, first, part.whole, part.begin,
                                                      cache, running);
    } else if constexpr (kTask != ClassTask::kProbabilities) {
      absorb_row<kTask, false>(p, v.logits, v.probabilities, first, part.whole, part.begin, cache, running);
    }
    for (int i = 0; i < part.rest; ++i) {
      const std::int64_t index = p.classes - part.rest + i;
      C probability = C{0};
      if constexpr (kTask == ClassTask::kProbabilities) probability = widen(load_global(v.probabilities + index));
      absorb_class<kTask>(p, widen(load_global(v.logits + index)), probability, index, running);
    }
  }
  return {ExpSum<C>::collapse(running.exponentials), running.dot, running.mass};
}

/// The statistics of a whole row, in each of its threads.
template <typename State, typename Monoid, typename Scratch, typename BlockState>
TL_DEVICE State combine_row(State state, unsigned lanes, unsigned cluster, const Scratch& scratch,
                            const BlockState& block_state) {
  if (lanes < kThreads) return combine_lanes<Monoid>(state, lanes);
  state = combine_block<Monoid>(state, scratch);
  if (cluster == 1) {
    block_barrier();  // before the next row writes the scratch
    return state;
  }
  if (thread_in_block() == 0) block_state[0] = state;
  cluster_barrier();
  state = block_state.in_block(0)[0];
  for (unsigned other = 1; other < cluster; ++other) {
    const State part = block_state.in_block(other)[0];
    state = Monoid::combine(state, part);
  }
  cluster_barrier();  // before a neighbour writes its next row's state, or ends
  return state;
}

/// Second pass: this thread's outputs of a row.
template <ClassTask kTask, typename T, typename Cache>
TL_DEVICE void write_part(const ClassParameters<T>& p, const RowResult<Compute<T>>& r, const RowView<T>& v,
                          const RowPart& part, const Cache& cache) {
  using C = Compute<T>;
  constexpr int kSize = Vector<T>::kSize;
  const std::int64_t first = part.begin + part.lane;
  if (v.skipped) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(v.out) % 16 == 0;
    TL_ROLLED
    for (std::int64_t unit = first; unit < part.whole; unit += p.plan.lanes)
      store_vector(v.out + unit * kSize, Vector<T>{}, aligned);
  } else if (p.template is_soft<kTask>() || (kTask == ClassTask::kSoftmax && p.logarithmic)) {
    write_row<kTask, true>(p, r, v.logits, v.probabilities, v.out, first, part.whole, part.begin, cache);
  } else if constexpr (kTask != ClassTask::kProbabilities) {
    write_row<kTask, false>(p, r, v.logits, v.probabilities, v.out, first, part.whole, part.begin, cache);
  }
  if constexpr (kTask == ClassTask::kIndices) {
    // The label's class is written again by the thread that wrote its vector: no test in the loop over classes.
    const std::int64_t unit = r.label / kSize;
    if (!v.skipped && r.label >= 0 && unit >= part.begin && unit < part.whole &&
        (unit - part.begin) % p.plan.lanes == part.lane) {
      store_global(v.out + r.label, narrow<T>(class_output<kTask>(p, r, r.label_logit, r.label, C{0})));
    }
  }
  for (int i = 0; i < part.rest; ++i) {
    const std::int64_t index = p.classes - part.rest + i;
    C value = C{0};
    if (!v.skipped) {
      C probability = C{0};
      if constexpr (kTask == ClassTask::kProbabilities) probability = widen(load_global(v.probabilities + index));
      value = class_output<kTask>(p, r, widen(load_global(v.logits + index)), index, probability);
    }
    store_global(v.out + index, narrow<T>(value));
  }
}

/// Blocks that fit an SM: as many as keep 64 KiB of a row each; float64 needs the registers.
template <typename T>
constexpr int kRowBlocks = sizeof(T) == 8 ? 1 : 3;

template <ClassTask kTask, typename T>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, kRowBlocks<T>) class_rows(const ClassParameters<T> p) {
  using C = Compute<T>;
  using State = ClassState<C>;
  TL_SHARED(State, scratch, kWarps);
  TL_SHARED(State, block_state, 1);
  TL_SHARED(double, sum_scratch, kWarps);
  TL_SHARED(unsigned, flag, 1);
  TL_DYNAMIC_SHARED(Vector<T>, cache);
  const unsigned lanes = p.plan.lanes;
  const unsigned cluster = p.plan.cluster;
  const unsigned rank = block_in_cluster();
  const RowPart part = part_of_rows(p, rank);
  const std::int64_t rows_at_once = kThreads / lanes;
  const std::int64_t groups = (p.rows + rows_at_once - 1) / rows_at_once;
  double block_sum = 0;
  TL_ROLLED
  for (std::int64_t group = block_in_grid() / cluster; group < groups; group += blocks_in_grid() / cluster) {
    const RowView<T> v = view_row<kTask>(p, group * rows_at_once + thread_in_block() / lanes);
    C label_logit = C{0};
    if constexpr (kTask == ClassTask::kIndices) {
      if (!v.skipped) label_logit = label_logit_at(p, v.row, v.logits);
    }
    const State state = combine_row<State, MergeClasses<C>>(absorb_part<kTask>(p, v, part, cache), lanes, cluster,
                                                            scratch, block_state);
    if constexpr (kTask == ClassTask::kIndices) {
      // Every lane has read the label's logit before one writes over it: a shuffle orders no memory.
      if (lanes < kThreads) warp_barrier(kFullMask);
    }
    if (!v.active) continue;
    RowResult<C> r{};
    r.label = kNoLabel;
    if (!v.skipped) r = conclude<kTask>(p, state, v.row, label_logit);
    if (p.output != nullptr) write_part<kTask>(p, r, v, part, cache);
    if (kTask != ClassTask::kSoftmax && rank == 0 && part.lane == 0) {
      if (p.losses != nullptr) store_global(p.losses + v.row, narrow<T>(r.loss));
      block_sum += static_cast<double>(r.loss);
    }
  }
  if (kTask != ClassTask::kSoftmax) write_total(p, block_sum, sum_scratch, flag);
}

}  // namespace tensorlint::kernels
