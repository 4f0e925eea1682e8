#pragma once

// Class kernels of contiguous rows (inner == 1): each row belongs to plan.lanes threads, or to a cluster of
// plan.cluster blocks; the grid walks the rows. A row is absorbed (its exponential sum), combined over its threads,
// concluded and, where outputs are asked for, written.

#include "kernels/loss/class_common.h"

namespace tensorlint::kernels {

/// Sum q x and Sum q over one vector.
template <ClassTask kTask, typename T>
TL_DEVICE void absorb_soft(const ClassParameters<T>& p, const Vector<T>& vector, const Readable<T>& probabilities,
                           std::int64_t first, RunningClasses<Compute<T>>& running) {
  using C = Compute<T>;
  constexpr int kSize = Vector<T>::kSize;
  C x[kSize];
  unpack(vector, x);
  C t[kSize] = {};
  if constexpr (kTask == ClassTask::kProbabilities) {
    unpack(load_anywhere(probabilities, probabilities.begin + first), t);
  }
  TL_UNROLL
  for (int i = 0; i < kSize; ++i) {
    const C q = soft_target<kTask>(p, first + i, t[i]);
    running.dot += q * x[i];
    running.mass += q;
  }
}
/// The whole vectors of this thread's part of a row, from `unit` to `whole`. kSoft: targets are soft (smoothing,
/// probabilities). kShifted: the row does not begin at a 16-byte boundary.
template <ClassTask kTask, bool kSoft, bool kShifted, typename T, typename Cache>
TL_DEVICE void absorb_row(const ClassParameters<T>& p, const Readable<T>& logits, const Readable<T>& probabilities,
                          std::int64_t unit, std::int64_t whole, const Cache& cache, std::int64_t slot,
                          RunningClasses<Compute<T>>& running) {
  using C = Compute<T>;
  constexpr int kSize = Vector<T>::kSize;
  const std::int64_t step = p.plan.lanes;
  TL_ROLLED
  for (; unit + 3 * step < whole; unit += 4 * step) {
    Vector<T> batch[4];
    if constexpr (kShifted) {
      const T* const at = logits.begin + unit * kSize;
      const unsigned shift = bytes_past_vector(logits.begin);
      load_four<T>(logits, {at, at + step * kSize, at + 2 * step * kSize, at + 3 * step * kSize},
                   {shift, shift, shift, shift}, batch);
    } else {
      const Vector<T>* const vectors = reinterpret_cast<const Vector<T>*>(logits.begin);
      TL_UNROLL
      for (int i = 0; i < 4; ++i) batch[i] = load_global(vectors + (unit + i * step));
    }
    if (p.plan.cached) {
      TL_UNROLL
      for (int i = 0; i < 4; ++i) cache[unit + i * step + slot] = batch[i];
    }
    if (!ExpSum<C>::absorb_plain(running.exponentials, batch)) break;
    if constexpr (kSoft) {
      TL_UNROLL
      for (int i = 0; i < 4; ++i) absorb_soft<kTask>(p, batch[i], probabilities, (unit + i * step) * kSize, running);
    }
  }
  TL_ROLLED
  for (; unit < whole; unit += step) {
    const Vector<T> vector = load_anywhere(logits, logits.begin + unit * kSize);
    if (p.plan.cached) cache[unit + slot] = vector;
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
                                  const Readable<T>& probabilities, std::int64_t first) {
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
      unpack(load_anywhere(probabilities, probabilities.begin + first), t);
    }
    TL_UNROLL
    for (int i = 0; i < kSize; ++i) out[i] -= r.gain * soft_target<kTask>(p, first + i, t[i]);
  }
  return pack<T>(out);
}

/// One row as one thread sees it.
template <typename T>
struct RowView {
  Readable<T> logits;
  Readable<T> probabilities;
  T* out;
  std::int64_t row;
  bool active;   // there is such a row
  bool skipped;  // its label counts for nothing, or it is not active
};

/// The thread's part of every row. It reads whole vectors of the row, `lane`, `lane` + lanes and so on from `begin` on,
/// and perhaps the incomplete one at the row's end; it writes vectors of the output (StoreSpan).
struct RowPart {
  unsigned lane;       // among the threads of a row
  std::int64_t begin;  // first vector of the block's part
  std::int64_t whole;  // end of its complete vectors
  std::int64_t end;    // the element after its last
  std::int64_t slot;   // the cache has vector `unit` at unit + slot
  int rest;            // elements of the incomplete vector; 0 where another thread has it
};

/// Writes this thread's whole vectors of the output of a block's part. The logits come from the cache, which other
/// threads have filled, or else from memory; there the row may be its own output, and then a vector is read by the
/// thread that writes it.
template <ClassTask kTask, bool kSoft, typename T, typename Cache>
TL_DEVICE void write_row(const ClassParameters<T>& p, const RowResult<Compute<T>>& r, const RowView<T>& v,
                         const RowPart& part, const StoreSpan<T>& span, const Cache& cache) {
  constexpr int kSize = Vector<T>::kSize;
  const std::int64_t step = p.plan.lanes;
  const std::int64_t first = part.begin * kSize + span.head;  // element of the span's vector 0
  Vector<T>* const to = reinterpret_cast<Vector<T>*>(span.to + span.head);
  const auto store = [&](std::int64_t j, const Vector<T>& vector) {
    store_global(to + j, output_vector<kTask, kSoft>(p, r, vector, v.probabilities, first + j * kSize));
  };
  std::int64_t j = part.lane;
  if (p.plan.cached) {
    const std::int64_t slot = part.begin + part.slot;
    if (span.head == 0) {
      TL_ROLLED
      for (; j < span.vectors; j += step) store(j, cache[j + slot]);
    } else {
      const unsigned shift = static_cast<unsigned>(span.head) * static_cast<unsigned>(sizeof(T));
      TL_ROLLED
      for (; j < span.vectors; j += step) {
        const Vector<T> low = cache[j + slot];
        const Vector<T> high = cache[j + 1 + slot];
        store(j, splice(low, high, shift));
      }
    }
    return;
  }
  const T* const from = v.logits.begin + first;
  const unsigned shift = bytes_past_vector(from);
  if (shift == 0) {
    const Vector<T>* const vectors = reinterpret_cast<const Vector<T>*>(from);
    TL_ROLLED
    for (; j + 3 * step < span.vectors; j += 4 * step) {
      Vector<T> batch[4];
      TL_UNROLL
      for (int i = 0; i < 4; ++i) batch[i] = load_global(vectors + (j + i * step));
      TL_UNROLL
      for (int i = 0; i < 4; ++i) store(j + i * step, batch[i]);
    }
  }
  TL_ROLLED
  for (; j < span.vectors; j += step) store(j, load_anywhere(v.logits, from + j * kSize));
}

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
  part.end = end * kSize < p.classes ? end * kSize : p.classes;
  part.slot = std::int64_t{thread_in_block() / p.plan.lanes} * p.plan.part - part.begin;
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
  v.logits = {p.logits + start, p.logits + start + p.classes};
  v.probabilities = {nullptr, nullptr};
  if constexpr (kTask == ClassTask::kProbabilities) v.probabilities = {p.second + start, p.second + start + p.classes};
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
    const auto absorb = [&](auto soft, auto shifted) {
      absorb_row<kTask, decltype(soft)::value, decltype(shifted)::value>(p, v.logits, v.probabilities, first,
                                                                         part.whole, cache, part.slot, running);
    };
    const bool shifted = bytes_past_vector(v.logits.begin) != 0;
    if (p.template is_soft<kTask>()) {
      shifted ? absorb(std::true_type{}, std::true_type{}) : absorb(std::true_type{}, std::false_type{});
    } else if constexpr (kTask != ClassTask::kProbabilities) {
      shifted ? absorb(std::false_type{}, std::true_type{}) : absorb(std::false_type{}, std::false_type{});
    }
    if (part.rest > 0) {
      const std::int64_t index = p.classes - part.rest;
      const Vector<T> vector = load_first(v.logits, v.logits.begin + index, part.rest);
      if (p.plan.cached) cache[part.whole + part.slot] = vector;
      TL_ROLLED
      for (int i = 0; i < part.rest; ++i) {
        C probability = C{0};
        if constexpr (kTask == ClassTask::kProbabilities)
          probability = widen(load_global(v.probabilities.begin + index + i));
        absorb_class<kTask>(p, widen(element_at(vector, i)), probability, index + i, running);
      }
    }
  }
  return {ExpSum<C>::collapse(running.exponentials), running.dot, running.mass};
}

/// The statistics of a whole row, in each of its threads. What they put into the cache is visible to all of them after
/// it where `lanes` is a block.
template <typename C, typename Scratch, typename BlockState>
TL_DEVICE ClassState<C> combine_row(ClassState<C> state, bool soft, unsigned lanes, unsigned cluster,
                                    const Scratch& scratch, const BlockState& block_state) {
  using State = ClassState<C>;
  if (lanes < kThreads) return combine_class_lanes(state, soft, lanes);
  state = combine_class_lanes(state, soft, kWarpLanes);
  if (lane_in_warp() == 0) scratch[warp_in_block()] = state;
  block_barrier();
  state = combine_class_states<C>(kWarps, [&](unsigned i) -> State { return scratch[i]; });
  if (cluster == 1) {
    block_barrier();  // before the next row writes the scratch
    return state;
  }
  if (thread_in_block() == 0) block_state[0] = state;
  cluster_barrier();
  state = combine_class_states<C>(cluster, [&](unsigned i) -> State { return block_state.in_block(i)[0]; });
  cluster_barrier();  // before a neighbour writes its next row's state, or ends
  return state;
}

/// Second pass: this thread's outputs of a row.
template <ClassTask kTask, typename T, typename Cache>
TL_DEVICE void write_part(const ClassParameters<T>& p, const RowResult<Compute<T>>& r, const RowView<T>& v,
                          const RowPart& part, const Cache& cache) {
  using C = Compute<T>;
  constexpr int kSize = Vector<T>::kSize;
  const std::int64_t begin = part.begin * kSize;
  const StoreSpan<T> span(v.out + begin, part.end - begin);
  if (v.skipped) {
    Vector<T>* const to = reinterpret_cast<Vector<T>*>(span.to + span.head);
    TL_ROLLED
    for (std::int64_t j = part.lane; j < span.vectors; j += p.plan.lanes) store_global(to + j, Vector<T>{});
  } else if (p.template is_soft<kTask>() || (kTask == ClassTask::kSoftmax && p.logarithmic)) {
    write_row<kTask, true>(p, r, v, part, span, cache);
  } else if constexpr (kTask != ClassTask::kProbabilities) {
    write_row<kTask, false>(p, r, v, part, span, cache);
  }
  if constexpr (kTask == ClassTask::kIndices) {
    // The label's class is written again by the thread that wrote its vector: no test in the loop over classes.
    const std::int64_t inside = r.label - begin;
    if (!v.skipped && r.label >= begin && r.label < part.end && inside >= span.head &&
        inside < span.first_of(span.vectors) && span.writer(inside, p.plan.lanes) == part.lane) {
      store_global(v.out + r.label, narrow<T>(class_output<kTask>(p, r, r.label_logit, r.label, C{0})));
    }
  }
  TL_ROLLED
  for (int i = static_cast<int>(part.lane); i < span.head + span.tail; i += static_cast<int>(p.plan.lanes)) {
    const std::int64_t inside = span.edge(i);
    const std::int64_t index = begin + inside;
    C value = C{0};
    if (!v.skipped) {
      C probability = C{0};
      if constexpr (kTask == ClassTask::kProbabilities) probability = widen(load_global(v.probabilities.begin + index));
      T logit;
      if (p.plan.cached) {
        const Vector<T> vector = cache[index / kSize + part.slot];
        logit = element_at(vector, static_cast<int>(index % kSize));
      } else {
        logit = load_global(v.logits.begin + index);
      }
      value = class_output<kTask>(p, r, widen(logit), index, probability);
    }
    store_global(v.out + index, narrow<T>(value));
  }
}

/// Among the threads of rows that a warp or a block shares.
TL_DEVICE void row_barrier(unsigned lanes) {
  if (lanes < kThreads) {
    warp_barrier(kFullMask);
  } else {
    block_barrier();
  }
}

/// Blocks that fit an SM: as many as keep 64 KiB of a row each; float64 and a second operand need the registers.
template <ClassTask kTask, typename T>
constexpr int kRowBlocks = sizeof(T) == 8                       ? 1
                           : kTask == ClassTask::kProbabilities ? 2
                                                                : 3;

template <ClassTask kTask, typename T>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, (kRowBlocks<kTask, T>)) class_rows(const ClassParameters<T> p) {
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
    if (p.plan.cached) row_barrier(lanes);  // before the row before is written over, which other threads read
    const RowView<T> v = view_row<kTask>(p, group * rows_at_once + thread_in_block() / lanes);
    C label_logit = C{0};
    if constexpr (kTask == ClassTask::kIndices) {
      if (!v.skipped) label_logit = label_logit_at(p, v.row, v.logits.begin);
    }
    const State state = combine_row(absorb_part<kTask>(p, v, part, cache), p.template is_soft<kTask>(), lanes, cluster,
                                    scratch, block_state);
    // Every lane has read the row, and filled the cache, before one writes: a shuffle orders no memory.
    if (lanes < kThreads) warp_barrier(kFullMask);
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
