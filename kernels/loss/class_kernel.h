#pragma once

// Kernels over a class axis: cross entropy with class indices or probabilities, softmax and log-softmax, their
// gradients, cosine embedding, negative log likelihood. Logits are [rows, classes, inner]; with inner == 1 a row is
// contiguous and belongs to some lanes, a block, or a cluster of blocks; otherwise positions (row, inner index) go
// across lanes and classes down.

#include "kernels/common/combine.h"
#include "kernels/common/divisor.h"
#include "kernels/common/launch.h"
#include "kernels/loss/plan.h"
#include "kernels/loss/pointwise_kernel.h"

namespace tensorlint::kernels {

/// What the label pass finds. Lies in the workspace and, where asked for, in the caller's memory.
struct LabelSummary {
  double weight;           // sum of weight[label] over rows that count: the divisor of the mean
  std::int64_t bad;        // labels outside [0, classes) that are not ignore_index
  std::int64_t first_bad;  // position of the first of them, else kNoBadLabel
};
constexpr std::int64_t kNoBadLabel = std::numeric_limits<std::int64_t>::max();

struct MergeLabels {
  using State = LabelSummary;
  static TL_HOST_DEVICE State identity() { return {0.0, 0, kNoBadLabel}; }
  static TL_HOST_DEVICE State combine(const State& a, const State& b) {
    return {a.weight + b.weight, a.bad + b.bad, a.first_bad < b.first_bad ? a.first_bad : b.first_bad};
  }
};

enum class ClassTask : int { kIndices, kProbabilities, kSoftmax };

struct Labels {
  const void* data = nullptr;
  bool wide = true;  // int64, else int32
  std::int64_t ignore = -100;
};

TL_DEVICE std::int64_t label_at(const Labels& labels, std::int64_t position) {
  return labels.wide ? load_global(static_cast<const std::int64_t*>(labels.data) + position)
                     : std::int64_t{load_global(static_cast<const std::int32_t*>(labels.data) + position)};
}

template <typename T>
struct ClassParameters {
  using C = Compute<T>;
  const T* logits = nullptr;
  const T* second = nullptr;    // class probabilities, or the upstream of softmax
  const T* weight = nullptr;    // one a class
  const T* upstream = nullptr;  // null: 1
  T* losses = nullptr;          // one a position
  T* output = nullptr;          // gradient, or softmax
  T* total = nullptr;
  const LabelSummary* summary = nullptr;  // null: the divisor is 1 / scale
  double* partials = nullptr;
  unsigned* ticket = nullptr;
  Labels labels;
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  std::int64_t inner = 1;
  Divisor by_inner;    // set where inner is above 1
  Divisor by_classes;  // negative log likelihood
  double scale = 1;
  C smoothing = C{0};
  C even_share = C{0};  // smoothing / classes
  bool upstream_each = false;
  bool logarithmic = false;  // log-softmax
  ClassPlan plan;
};

/// Statistics of one row: the exponential sum, and for soft targets Sum q x and Sum q with q the weighted target.
template <typename C>
struct ClassState {
  typename ExpSum<C>::State exponentials;
  C dot;
  C mass;
};

template <typename C>
struct MergeClasses {
  using State = ClassState<C>;
  static TL_HOST_DEVICE State identity() { return {ExpSum<C>::identity(), C{0}, C{0}}; }
  static TL_HOST_DEVICE State combine(const State& a, const State& b) {
    return {ExpSum<C>::combine(a.exponentials, b.exponentials), a.dot + b.dot, a.mass + b.mass};
  }
};

/// Weight times soft target of class `index`; the (1 - smoothing) at a label's own class comes on top.
template <ClassTask kTask, typename T>
TL_DEVICE Compute<T> soft_target(const ClassParameters<T>& p, std::int64_t index, Compute<T> probability) {
  using C = Compute<T>;
  C q = p.even_share;
  if constexpr (kTask == ClassTask::kProbabilities) q += (C{1} - p.smoothing) * probability;
  return p.weight != nullptr ? q * widen(load_global(p.weight + index)) : q;
}

/// What one row's second pass needs.
template <typename C>
struct RowResult {
  ExpReference<C> reference;
  C factor;    // of each term, to the gradient
  C gain;      // upstream times scale
  C at_label;  // subtracted at the label's class
  C loss;
  std::int64_t label;  // -1: none
  C log_offset;        // log-softmax: ln of the sum, relative to origin
};

/// Classifies the label of a position. Ignored: false.
template <typename T>
TL_DEVICE bool counts(const ClassParameters<T>& p, std::int64_t label) {
  return label != p.labels.ignore;
}

template <ClassTask kTask, typename T>
TL_DEVICE Compute<T> gain_at(const ClassParameters<T>& p, std::int64_t position) {
  using C = Compute<T>;
  C gain = static_cast<C>(p.scale);
  if (p.summary != nullptr) gain = static_cast<C>(1.0 / load_global(&p.summary->weight));
  if constexpr (kTask != ClassTask::kSoftmax) {
    if (p.upstream != nullptr) gain *= widen(load_global(p.upstream + (p.upstream_each ? position : 0)));
  }
  return gain;
}

/// The total of all blocks, over the weights that count or by the scale; every block calls it, the last one to arrive
/// writes.
template <typename T, typename Scratch, typename Flag>
TL_DEVICE void write_total(const ClassParameters<T>& p, double block_sum, const Scratch& scratch, const Flag& flag) {
  if (p.total == nullptr) return;
  if (!grid_sum(block_sum, p.partials, p.ticket, blocks_in_grid(), scratch, flag)) return;
  const double divisor = p.summary != nullptr ? load_global(&p.summary->weight) : 1.0 / p.scale;
  store_global(p.total, narrow<T>(static_cast<Compute<T>>(block_sum / divisor)));
}

/// From a position's statistics to its loss and the constants of its gradient.
template <ClassTask kTask, typename T>
TL_DEVICE RowResult<Compute<T>> conclude(const ClassParameters<T>& p, const ClassState<Compute<T>>& state,
                                         std::int64_t position, const T* first_class) {
  using C = Compute<T>;
  using Base = ExpBase<C>;
  RowResult<C> r{};
  r.reference = Base::reference(state.exponentials.maximum);
  r.label = -1;
  const C sum = state.exponentials.sum;
  if constexpr (kTask == ClassTask::kSoftmax) {
    r.factor = divide_fast(C{1}, sum);
    r.log_offset = Base::log_of_sum_minus(C{0}, {C{0}, C{0}}, sum);
    return r;
  }
  r.gain = gain_at<kTask>(p, position);
  // Sum q (lse - x) = (Sum q) lse - Sum q x, both relative to the maximum's reference.
  C soft = C{0};
  if (kTask == ClassTask::kProbabilities || p.smoothing != C{0}) {
    soft = state.mass * Base::log_of_sum(state.exponentials.maximum, r.reference, sum) - state.dot;
  }
  if constexpr (kTask == ClassTask::kProbabilities) {
    r.loss = soft;
    r.factor = divide_fast(r.gain * state.mass, sum);
  } else {
    const std::int64_t label = label_at(p.labels, position);
    if (label < 0 || label >= p.classes) {  // counted by the label pass; here nothing may look like a number
      r.loss = not_a_number<C>();
      r.factor = not_a_number<C>();
      r.gain = not_a_number<C>();
      return r;
    }
    const C w = p.weight != nullptr ? widen(load_global(p.weight + label)) : C{1};
    const C hard = (C{1} - p.smoothing) * w;
    r.label = label;
    r.loss = hard * Base::log_of_sum_minus(widen(load_global(first_class + label * p.inner)), r.reference, sum) + soft;
    r.factor = divide_fast(r.gain * (hard + (p.smoothing != C{0} ? state.mass : C{0})), sum);
    r.at_label = r.gain * hard;
  }
  return r;
}

/// Output of class `index` with logit x: gradient, softmax or log-softmax.
template <ClassTask kTask, typename T>
TL_DEVICE Compute<T> class_output(const ClassParameters<T>& p, const RowResult<Compute<T>>& r, Compute<T> x,
                                  std::int64_t index, Compute<T> probability) {
  using C = Compute<T>;
  if constexpr (kTask == ClassTask::kSoftmax) {
    (void)index;
    (void)probability;
    if (p.logarithmic) return -(ExpBase<C>::log_of_sum_minus(x, r.reference, C{1}) + r.log_offset);
    return ExpBase<C>::term(x, r.reference) * r.factor;
  } else {
    C value = ExpBase<C>::term(x, r.reference) * r.factor;
    if (kTask == ClassTask::kProbabilities || p.smoothing != C{0})
      value -= r.gain * soft_target<kTask>(p, index, probability);
    return index == r.label ? value - r.at_label : value;
  }
}

template <typename C>
struct RunningClasses {
  typename ExpSum<C>::Running exponentials = ExpSum<C>::start();
  C dot = C{0};
  C mass = C{0};
};

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
  if (kTask == ClassTask::kProbabilities || (kTask == ClassTask::kIndices && p.smoothing != C{0})) {
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

/// Blocks of the class kernels that fit an SM: as many as keep 64 KiB of a row each; float64 needs the registers.
template <typename T>
constexpr int kRowBlocks = sizeof(T) == 8 ? 1 : 3;
template <typename T>
constexpr int kColumnBlocks = sizeof(T) == 8 ? 1 : 2;

/// inner == 1. Each row belongs to plan.lanes threads, or to a cluster of plan.cluster blocks; the grid walks the rows.
template <ClassTask kTask, typename T>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, kRowBlocks<T>) class_rows(const ClassParameters<T> p) {
  using C = Compute<T>;
  using State = ClassState<C>;
  constexpr int kSize = Vector<T>::kSize;
  TL_SHARED(State, scratch, kWarps);
  TL_SHARED(State, block_state, 1);
  TL_SHARED(double, sum_scratch, kWarps);
  TL_SHARED(unsigned, flag, 1);
  TL_DYNAMIC_SHARED(Vector<T>, cache);
  const unsigned tid = thread_in_block();
  const unsigned lanes = p.plan.lanes;
  const unsigned cluster = p.plan.cluster;
  const unsigned rank = block_in_cluster();
  const std::int64_t rows_at_once = kThreads / lanes;
  const std::int64_t groups = (p.rows + rows_at_once - 1) / rows_at_once;
  const unsigned lane = tid & (lanes - 1);
  const std::int64_t units = (p.classes + kSize - 1) / kSize;
  const std::int64_t full = p.classes / kSize;
  const std::int64_t begin = rank * p.plan.part;
  const std::int64_t end = begin + p.plan.part < units ? begin + p.plan.part : units;
  const std::int64_t whole = end < full ? end : full;
  const int rest = static_cast<int>(p.classes - full * kSize);
  // The unit after the whole ones, in the part and at the thread whose turn it is.
  const bool owns_rest = end > whole && whole >= begin && (whole - begin) % lanes == lane;
  double block_sum = 0;

  TL_ROLLED
  for (std::int64_t group = block_in_grid() / cluster; group < groups; group += blocks_in_grid() / cluster) {
    const std::int64_t row = group * rows_at_once + tid / lanes;
    const bool active = row < p.rows;
    const std::int64_t start = active ? row * p.classes : 0;
    const T* const logits = p.logits + start;
    const T* const probabilities = kTask == ClassTask::kProbabilities ? p.second + start : nullptr;
    bool skipped = !active;
    if constexpr (kTask == ClassTask::kIndices) skipped = skipped || !counts(p, label_at(p.labels, row));

    RunningClasses<C> running;
    if (!skipped) {
      if (kTask == ClassTask::kProbabilities || (kTask == ClassTask::kIndices && p.smoothing != C{0})) {
        absorb_row<kTask, kTask != ClassTask::kSoftmax>(p, logits, probabilities, begin + lane, whole, begin, cache,
                                                        running);
      } else if constexpr (kTask != ClassTask::kProbabilities) {
        absorb_row<kTask, false>(p, logits, probabilities, begin + lane, whole, begin, cache, running);
      }
      if (owns_rest) {  // the incomplete vector at the row's end
        for (int i = 0; i < rest; ++i) {
          const std::int64_t index = full * kSize + i;
          C probability = C{0};
          if constexpr (kTask == ClassTask::kProbabilities) probability = widen(load_global(probabilities + index));
          absorb_class<kTask>(p, widen(load_global(logits + index)), probability, index, running);
        }
      }
    }

    State state = {ExpSum<C>::collapse(running.exponentials), running.dot, running.mass};
    if (lanes < kThreads) {
      state = combine_lanes<MergeClasses<C>>(state, lanes);
    } else {
      state = combine_block<MergeClasses<C>>(state, scratch);
      if (cluster > 1) {
        if (tid == 0) block_state[0] = state;
        cluster_barrier();
        state = block_state.in_block(0)[0];
        for (unsigned other = 1; other < cluster; ++other) {
          const State part = block_state.in_block(other)[0];
          state = MergeClasses<C>::combine(state, part);
        }
        cluster_barrier();  // before a neighbour writes its next row's state, or ends
      } else {
        block_barrier();  // before the next row writes the scratch
      }
    }

    if (!active) continue;
    RowResult<C> r{};
    r.label = -1;
    if (!skipped) r = conclude<kTask>(p, state, row, logits);
    if (p.output != nullptr) {
      T* const out = p.output + start;
      if (skipped) {
        const bool aligned = reinterpret_cast<std::uintptr_t>(out) % 16 == 0;
        TL_ROLLED
        for (std::int64_t unit = begin + lane; unit < whole; unit += lanes)
          store_vector(out + unit * kSize, Vector<T>{}, aligned);
      } else if (kTask == ClassTask::kProbabilities || (kTask == ClassTask::kIndices && p.smoothing != C{0}) ||
                 (kTask == ClassTask::kSoftmax && p.logarithmic)) {
        write_row<kTask, true>(p, r, logits, probabilities, out, begin + lane, whole, begin, cache);
      } else if constexpr (kTask != ClassTask::kProbabilities) {
        write_row<kTask, false>(p, r, logits, probabilities, out, begin + lane, whole, begin, cache);
      }
      if constexpr (kTask == ClassTask::kIndices) {
        // The label's class is written again by the thread that wrote its vector: no test in the loop over classes.
        const std::int64_t unit = r.label / kSize;
        if (!skipped && r.label >= 0 && unit >= begin && unit < whole && (unit - begin) % lanes == lane) {
          const C value = class_output<kTask>(p, r, widen(load_global(logits + r.label)), r.label, C{0});
          store_global(out + r.label, narrow<T>(value));
        }
      }
      if (owns_rest) {
        for (int i = 0; i < rest; ++i) {
          const std::int64_t index = full * kSize + i;
          C value = C{0};
          if (!skipped) {
            C probability = C{0};
            if constexpr (kTask == ClassTask::kProbabilities) probability = widen(load_global(probabilities + index));
            value = class_output<kTask>(p, r, widen(load_global(logits + index)), index, probability);
          }
          store_global(out + index, narrow<T>(value));
        }
      }
    }
    if (kTask != ClassTask::kSoftmax && rank == 0 && lane == 0) {
      if (p.losses != nullptr) store_global(p.losses + row, narrow<T>(r.loss));
      block_sum += static_cast<double>(r.loss);
    }
  }
  if (kTask != ClassTask::kSoftmax) write_total(p, block_sum, sum_scratch, flag);
}

/// Labels of a RowResult: the position has none, or counts for nothing and its outputs are zeros.
constexpr std::int64_t kNoLabel = -1;
constexpr std::int64_t kSkipped = -2;

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

/// The tiles of one block: plan.units strips of kWidth neighbouring positions side by side, the threads above each
/// other go down the classes. Between the passes thread t merges and concludes position t of the tile. Returns this
/// thread's part of the sum of losses.
template <ClassTask kTask, int kWidth, typename T, typename Scratch, typename Results>
TL_DEVICE double class_tiles(const ClassParameters<T>& p, const Scratch& scratch, const Results& results) {
  using C = Compute<T>;
  using State = ClassState<C>;
  using S = Strip<T, kWidth>;
  constexpr int kBatch = kTask == ClassTask::kProbabilities ? 2 : 4;  // four loads in flight either way
  const unsigned tid = thread_in_block();
  const unsigned units = p.plan.units;
  const unsigned depth = kThreads / units;
  const std::int64_t strips = p.rows * p.inner / kWidth;
  const std::int64_t tiles = (strips + units - 1) / units;
  const bool soft = kTask == ClassTask::kProbabilities || (kTask == ClassTask::kIndices && p.smoothing != C{0});
  // First class of a position, from the beginning of the tensor.
  const auto start_of = [&](std::int64_t position) {
    return p.by_inner.quotient(position) * (p.classes - 1) * p.inner + position;
  };
  double sum = 0;
  TL_ROLLED
  for (std::int64_t tile = block_in_grid(); tile < tiles; tile += blocks_in_grid()) {
    const std::int64_t strip = tile * units + tid % units;
    const bool active = strip < strips;
    const std::int64_t first = active ? strip * kWidth : 0;
    const std::int64_t start = start_of(first);
    const T* const logits = p.logits + start;
    const T* const probabilities = kTask == ClassTask::kProbabilities ? p.second + start : nullptr;
    const bool aligned = kWidth == 1 || reinterpret_cast<std::uintptr_t>(logits) % 16 == 0;
    const bool soft_aligned = kWidth == 1 || reinterpret_cast<std::uintptr_t>(probabilities) % 16 == 0;
    bool counted = active;
    if constexpr (kTask == ClassTask::kIndices) {
      counted = false;
      TL_ROLLED
      for (int k = 0; k < kWidth && active && !counted; ++k) counted = counts(p, label_at(p.labels, first + k));
    }
    const std::int64_t classes = counted ? p.classes : 0;
    const std::int64_t step = depth;

    RunningClasses<C> running[kWidth];
    std::int64_t index = tid / units;
    if (aligned && soft_aligned) {
      TL_ROLLED
      for (; index + (kBatch - 1) * step < classes; index += kBatch * step) {
        S x[kBatch];
        S t[kBatch] = {};
        TL_UNROLL
        for (int c = 0; c < kBatch; ++c) x[c] = load_strip<T, kWidth>(logits + (index + c * step) * p.inner, true);
        if constexpr (kTask == ClassTask::kProbabilities) {
          TL_UNROLL
          for (int c = 0; c < kBatch; ++c)
            t[c] = load_strip<T, kWidth>(probabilities + (index + c * step) * p.inner, true);
        }
        absorb_strips<kTask, kWidth, kBatch>(p, x, t, index, step, soft, running);
      }
    }
    TL_ROLLED
    for (; index < classes; index += step) {
      const S x[1] = {load_strip<T, kWidth>(logits + index * p.inner, aligned)};
      S t[1] = {};
      if constexpr (kTask == ClassTask::kProbabilities)
        t[0] = load_strip<T, kWidth>(probabilities + index * p.inner, soft_aligned);
      absorb_strips<kTask, kWidth, 1>(p, x, t, index, step, soft, running);
    }
    TL_UNROLL
    for (int k = 0; k < kWidth; ++k) {
      scratch[static_cast<unsigned>(k) * kThreads + tid] =
          State{ExpSum<C>::collapse(running[k].exponentials), running[k].dot, running[k].mass};
    }
    block_barrier();

    const unsigned own_k = tid / units;
    const std::int64_t own_strip = tile * units + tid % units;
    if (own_k < kWidth && own_strip < strips) {
      const std::int64_t position = own_strip * kWidth + own_k;
      RowResult<C> r{};
      bool skip = false;
      if constexpr (kTask == ClassTask::kIndices) skip = !counts(p, label_at(p.labels, position));
      if (!skip) {
        State state = scratch[own_k * kThreads + tid % units];
        TL_ROLLED
        for (unsigned level = 1; level < depth; ++level) {
          const State other = scratch[own_k * kThreads + level * units + tid % units];
          state = MergeClasses<C>::combine(state, other);
        }
        r = conclude<kTask>(p, state, position, p.logits + start_of(position));
      } else {
        r.label = kSkipped;
      }
      if constexpr (kTask != ClassTask::kSoftmax) {
        if (p.losses != nullptr) store_global(p.losses + position, narrow<T>(r.loss));
        sum += static_cast<double>(r.loss);
      }
      results[tid] = r;
    }
    block_barrier();
    if (p.output == nullptr) continue;

    if (active) {
      RowResult<C> r[kWidth];
      unsigned skipped = 0;
      TL_UNROLL
      for (int k = 0; k < kWidth; ++k) {
        r[k] = results[static_cast<unsigned>(k) * units + tid % units];
        if (r[k].label == kSkipped) skipped |= 1U << k;
      }
      T* const out = p.output + start;
      const bool out_aligned = kWidth == 1 || reinterpret_cast<std::uintptr_t>(out) % 16 == 0;
      index = tid / units;
      if (aligned && soft_aligned && out_aligned && counted) {
        TL_ROLLED
        for (; index + (kBatch - 1) * step < p.classes; index += kBatch * step) {
          S x[kBatch];
          S t[kBatch] = {};
          TL_UNROLL
          for (int c = 0; c < kBatch; ++c) x[c] = load_strip<T, kWidth>(logits + (index + c * step) * p.inner, true);
          if constexpr (kTask == ClassTask::kProbabilities) {
            TL_UNROLL
            for (int c = 0; c < kBatch; ++c)
              t[c] = load_strip<T, kWidth>(probabilities + (index + c * step) * p.inner, true);
          }
          TL_UNROLL
          for (int c = 0; c < kBatch; ++c) {
            output_strip<kTask, kWidth>(p, r, skipped, x[c], t[c], index + c * step, soft,
                                        out + (index + c * step) * p.inner, true);
          }
        }
      }
      TL_ROLLED
      for (; index < p.classes; index += step) {
        S x{};
        S t{};
        if (counted) {
          x = load_strip<T, kWidth>(logits + index * p.inner, aligned);
          if constexpr (kTask == ClassTask::kProbabilities)
            t = load_strip<T, kWidth>(probabilities + index * p.inner, soft_aligned);
        }
        output_strip<kTask, kWidth>(p, r, skipped, x, t, index, soft, out + index * p.inner, out_aligned);
      }
    }
    if constexpr (kTask == ClassTask::kIndices) {
      block_barrier();  // each label's class is written again, now with its own part
      if (own_k < kWidth && own_strip < strips) {
        const RowResult<C> r = results[tid];
        if (r.label >= 0) {
          const std::int64_t at = start_of(own_strip * kWidth + own_k) + r.label * p.inner;
          store_global(p.output + at,
                       narrow<T>(class_output<kTask>(p, r, widen(load_global(p.logits + at)), r.label, C{0})));
        }
      }
    }
  }
  return sum;
}

/// inner > 1.
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

template <typename T>
struct LabelParameters {
  Labels labels;
  const T* weight = nullptr;
  LabelSummary* summary = nullptr;
  LabelSummary* partials = nullptr;
  std::int64_t* report = nullptr;  // count and first position (-1: none); may be null
  unsigned* ticket = nullptr;
  std::int64_t positions = 0;
  std::int64_t classes = 0;
  unsigned blocks = 0;
};

/// Calls `take` with each of this thread's labels and its position.
template <typename L, typename Take>
TL_DEVICE void walk_labels(const L* labels, std::int64_t positions, unsigned blocks, const Take& take) {
  constexpr int kSize = Vector<L>::kSize;
  const std::int64_t whole = positions / kSize;
  const std::int64_t step = std::int64_t{blocks} * kThreads;
  const bool aligned = reinterpret_cast<std::uintptr_t>(labels) % 16 == 0;
  std::int64_t unit = std::int64_t{block_in_grid()} * kThreads + thread_in_block();
  const auto take_vector = [&](const Vector<L>& vector, std::int64_t first) {
    TL_UNROLL
    for (int i = 0; i < kSize; ++i) take(std::int64_t{vector.element(i)}, first + i);
  };
  if (aligned) {
    TL_ROLLED
    for (; unit + 3 * step < whole; unit += 4 * step) {
      Vector<L> batch[4];
      TL_UNROLL
      for (int i = 0; i < 4; ++i) batch[i] = load_vector(labels + (unit + i * step) * kSize, true);
      TL_UNROLL
      for (int i = 0; i < 4; ++i) take_vector(batch[i], (unit + i * step) * kSize);
    }
  }
  TL_ROLLED
  for (; unit < whole; unit += step) take_vector(load_vector(labels + unit * kSize, aligned), unit * kSize);
  if (unit == whole) {
    TL_ROLLED
    for (std::int64_t i = whole * kSize; i < positions; ++i) take(std::int64_t{load_global(labels + i)}, i);
  }
}

/// Counts bad labels and sums the weights of the good ones.
template <typename T>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, 2) scan_labels(const LabelParameters<T> p) {
  TL_SHARED(LabelSummary, scratch, kWarps);
  TL_SHARED(unsigned, flag, 1);
  const unsigned tid = thread_in_block();
  LabelSummary found = MergeLabels::identity();
  const auto take = [&](std::int64_t label, std::int64_t position) {
    if (label == p.labels.ignore) return;
    if (label < 0 || label >= p.classes) {
      found = MergeLabels::combine(found, {0.0, 1, position});
    } else {
      found.weight += p.weight != nullptr ? static_cast<double>(widen(load_global(p.weight + label))) : 1.0;
    }
  };
  if (p.labels.wide) {
    walk_labels(static_cast<const std::int64_t*>(p.labels.data), p.positions, p.blocks, take);
  } else {
    walk_labels(static_cast<const std::int32_t*>(p.labels.data), p.positions, p.blocks, take);
  }
  found = combine_block<MergeLabels>(found, scratch);
  if (p.blocks > 1) {
    if (tid == 0) store_global(p.partials + block_in_grid(), found);
    if (!arrives_last(p.ticket, p.blocks, flag)) return;
    found = MergeLabels::identity();
    for (unsigned i = tid; i < p.blocks; i += kThreads)
      found = MergeLabels::combine(found, load_shared_between_blocks(p.partials + i));
    found = combine_block<MergeLabels>(found, scratch);
  }
  if (tid != 0) return;
  store_global(p.summary, found);
  if (p.report != nullptr) {
    store_global(p.report, found.bad);
    store_global(p.report + 1, found.bad > 0 ? found.first_bad : std::int64_t{-1});
  }
}

/// -weight[label] times the log-probability at the label. The gradient is zero elsewhere.
template <typename T>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, 2) negative_log_likelihood(const ClassParameters<T> p) {
  using C = Compute<T>;
  constexpr int kSize = Vector<T>::kSize;
  TL_SHARED(double, sum_scratch, kWarps);
  TL_SHARED(unsigned, flag, 1);
  const std::int64_t thread = std::int64_t{block_in_grid()} * kThreads + thread_in_block();
  const std::int64_t threads = std::int64_t{blocks_in_grid()} * kThreads;
  const std::int64_t positions = p.rows * p.inner;
  double block_sum = 0;
  if (p.losses != nullptr || p.total != nullptr) {
    TL_ROLLED
    for (std::int64_t position = thread; position < positions; position += threads) {
      const std::int64_t label = label_at(p.labels, position);
      C loss = C{0};
      if (counts(p, label)) {
        const std::int64_t row = p.by_inner.quotient(position);
        loss = not_a_number<C>();
        if (label >= 0 && label < p.classes) {
          const C w = p.weight != nullptr ? widen(load_global(p.weight + label)) : C{1};
          loss = -w * widen(load_global(p.logits + (row * p.classes + label) * p.inner + (position - row * p.inner)));
        }
      }
      if (p.losses != nullptr) store_global(p.losses + position, narrow<T>(loss));
      block_sum += static_cast<double>(loss);
    }
  }
  if (p.output != nullptr) {
    const auto gradient_at = [&](std::int64_t row, std::int64_t index, std::int64_t inside) {
      const std::int64_t position = row * p.inner + inside;
      const std::int64_t label = label_at(p.labels, position);
      if (!counts(p, label)) return C{0};
      if (label < 0 || label >= p.classes) return not_a_number<C>();
      if (label != index) return C{0};
      const C w = p.weight != nullptr ? widen(load_global(p.weight + label)) : C{1};
      return -w * gain_at<ClassTask::kIndices>(p, position);
    };
    const std::int64_t elements = positions * p.classes;
    const bool aligned = reinterpret_cast<std::uintptr_t>(p.output) % 16 == 0;
    TL_ROLLED
    for (std::int64_t unit = thread; unit * kSize < elements; unit += threads) {
      const std::int64_t pair = p.by_inner.quotient(unit * kSize);
      std::int64_t inside = unit * kSize - pair * p.inner;
      std::int64_t row = p.by_classes.quotient(pair);
      std::int64_t index = pair - row * p.classes;
      const std::int64_t count = elements - unit * kSize < kSize ? elements - unit * kSize : kSize;
      C out[kSize];
      TL_UNROLL
      for (int i = 0; i < kSize; ++i) {
        out[i] = i < count ? gradient_at(row, index, inside) : C{0};
        if (++inside == p.inner) {
          inside = 0;
          if (++index == p.classes) {
            index = 0;
            ++row;
          }
        }
      }
      const Vector<T> vector = pack<T>(out);
      if (count == kSize) {
        store_vector(p.output + unit * kSize, vector, aligned);
      } else {
        TL_UNROLL
        for (int i = 0; i < kSize; ++i) {
          if (i < count) store_global(p.output + unit * kSize + i, vector.element(i));
        }
      }
    }
  }
  write_total(p, block_sum, sum_scratch, flag);
}

/// dy/dx of softmax and log-softmax at one element: y (g - sum g y), or g - e^y sum g.
template <typename C>
struct SoftmaxSlope {
  bool logarithmic;
  TL_DEVICE C part(C y, C g) const { return logarithmic ? g : g * y; }
  TL_DEVICE C gradient(C y, C g, C sum) const { return logarithmic ? g - exponential(y) * sum : y * (g - sum); }
};

/// Both passes of softmax_gradient over units of kWidth elements, `pitch` elements apart: `index` is this thread's
/// first unit, `step` the way to its next. First: adds to `sum`; then, with kWrite, writes by it.
template <bool kWrite, int kWidth, typename T>
TL_DEVICE void walk_pair(const SoftmaxSlope<Compute<T>>& slope, const T* y, const T* g, T* out, std::int64_t index,
                         std::int64_t step, std::int64_t units, std::int64_t pitch, bool aligned,
                         Compute<T> (&sum)[kWidth]) {
  using C = Compute<T>;
  using S = Strip<T, kWidth>;
  const auto take = [&](const S& y_strip, const S& g_strip, std::int64_t at) {
    C a[kWidth];
    C b[kWidth];
    unpack_strip<T, kWidth>(y_strip, a);
    unpack_strip<T, kWidth>(g_strip, b);
    TL_UNROLL
    for (int k = 0; k < kWidth; ++k) {
      if constexpr (kWrite) a[k] = slope.gradient(a[k], b[k], sum[k]);
      if constexpr (!kWrite) sum[k] += slope.part(a[k], b[k]);
    }
    if constexpr (kWrite) store_strip<T, kWidth>(out + at, a, aligned);
  };
  if (aligned) {
    TL_ROLLED
    for (; index + step < units; index += 2 * step) {
      S a[2];
      S b[2];
      TL_UNROLL
      for (int i = 0; i < 2; ++i) a[i] = load_strip<T, kWidth>(y + (index + i * step) * pitch, true);
      TL_UNROLL
      for (int i = 0; i < 2; ++i) b[i] = load_strip<T, kWidth>(g + (index + i * step) * pitch, true);
      TL_UNROLL
      for (int i = 0; i < 2; ++i) take(a[i], b[i], (index + i * step) * pitch);
    }
  }
  TL_ROLLED
  for (; index < units; index += step) {
    take(load_strip<T, kWidth>(y + index * pitch, aligned), load_strip<T, kWidth>(g + index * pitch, aligned),
         index * pitch);
  }
}

template <typename T>
TL_DEVICE bool all_aligned(const T* a, const T* b, const T* c) {
  return ((reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) |
           reinterpret_cast<std::uintptr_t>(c)) %
          16) == 0;
}

/// Columns, as class_tiles goes through them.
template <int kWidth, typename T, typename Scratch>
TL_DEVICE void softmax_gradient_tiles(const ClassParameters<T>& p, const Scratch& scratch) {
  using C = Compute<T>;
  const SoftmaxSlope<C> slope = {p.logarithmic};
  const unsigned tid = thread_in_block();
  const unsigned units = p.plan.units;
  const unsigned depth = kThreads / units;
  const std::int64_t strips = p.rows * p.inner / kWidth;
  TL_ROLLED
  for (std::int64_t tile = block_in_grid(); tile * units < strips; tile += blocks_in_grid()) {
    const std::int64_t strip = tile * units + tid % units;
    const bool active = strip < strips;
    const std::int64_t first = active ? strip * kWidth : 0;
    const std::int64_t start = p.by_inner.quotient(first) * (p.classes - 1) * p.inner + first;
    const std::int64_t classes = active ? p.classes : 0;
    const bool aligned = kWidth == 1 || all_aligned(p.logits + start, p.second + start, p.output + start);
    C sum[kWidth] = {};
    walk_pair<false, kWidth>(slope, p.logits + start, p.second + start, p.output + start, tid / units, depth, classes,
                             p.inner, aligned, sum);
    TL_UNROLL
    for (int k = 0; k < kWidth; ++k) scratch[static_cast<unsigned>(k) * kThreads + tid] = sum[k];
    block_barrier();
    if (tid / units < kWidth) {  // thread t: position t of the tile
      const unsigned column = tid / units * kThreads + tid % units;
      C total = scratch[column];
      TL_ROLLED
      for (unsigned level = 1; level < depth; ++level) total += scratch[column + level * units];
      scratch[column] = total;
    }
    block_barrier();
    TL_UNROLL
    for (int k = 0; k < kWidth; ++k) sum[k] = scratch[static_cast<unsigned>(k) * kThreads + tid % units];
    block_barrier();  // before the next tile writes
    walk_pair<true, kWidth>(slope, p.logits + start, p.second + start, p.output + start, tid / units, depth, classes,
                            p.inner, aligned, sum);
  }
}

/// Gradient of softmax or log-softmax from its result (`logits`) and the upstream gradient (`second`), any inner.
template <typename T>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, 2) softmax_gradient(const ClassParameters<T> p) {
  using C = Compute<T>;
  constexpr int kSize = Vector<T>::kSize;
  TL_SHARED(C, scratch, kThreads * kSize);
  const SoftmaxSlope<C> slope = {p.logarithmic};
  const unsigned tid = thread_in_block();
  if (p.inner > 1) {
    if (p.plan.width == kSize) {
      softmax_gradient_tiles<kSize>(p, scratch);
    } else {
      softmax_gradient_tiles<1>(p, scratch);
    }
    return;
  }
  const unsigned lanes = p.plan.lanes;
  const unsigned lane = tid & (lanes - 1);
  const std::int64_t rows_at_once = kThreads / lanes;
  TL_ROLLED
  for (std::int64_t group = block_in_grid(); group * rows_at_once < p.rows; group += blocks_in_grid()) {
    const std::int64_t row = group * rows_at_once + tid / lanes;
    const bool active = row < p.rows;
    const std::int64_t start = active ? row * p.classes : 0;
    const T* const y = p.logits + start;
    const T* const g = p.second + start;
    T* const out = p.output + start;
    const bool aligned = all_aligned(y, g, static_cast<const T*>(out));
    const std::int64_t full = active ? p.classes / kSize : 0;
    C sums[kSize] = {};
    walk_pair<false, kSize>(slope, y, g, out, lane, lanes, full, kSize, aligned, sums);
    C sum = sums[0];
    TL_UNROLL
    for (int k = 1; k < kSize; ++k) sum += sums[k];
    TL_ROLLED
    for (std::int64_t i = full * kSize + lane; active && i < p.classes; i += lanes)
      sum += slope.part(widen(load_global(y + i)), widen(load_global(g + i)));
    if (lanes < kThreads) {
      sum = combine_lanes<Add<C>>(sum, lanes);
    } else {
      sum = combine_block<Add<C>>(sum, scratch);
      block_barrier();  // before the next row writes the scratch
    }
    TL_UNROLL
    for (int k = 0; k < kSize; ++k) sums[k] = sum;
    walk_pair<true, kSize>(slope, y, g, out, lane, lanes, full, kSize, aligned, sums);
    TL_ROLLED
    for (std::int64_t i = full * kSize + lane; active && i < p.classes; i += lanes)
      store_global(out + i, narrow<T>(slope.gradient(widen(load_global(y + i)), widen(load_global(g + i)), sum)));
  }
}

template <typename T>
struct CosineParameters {
  const T* first = nullptr;
  const T* second = nullptr;
  const T* target = nullptr;  // 1 or -1 a row; other values: loss 0
  const T* upstream = nullptr;
  T* losses = nullptr;
  T* first_gradient = nullptr;
  T* second_gradient = nullptr;
  T* total = nullptr;
  double* partials = nullptr;
  unsigned* ticket = nullptr;
  std::int64_t rows = 0;
  std::int64_t length = 0;
  double margin = 0;
  double scale = 1;
  bool upstream_each = false;
  unsigned lanes = 1;
};

struct CosineSums {
  double dot;
  double first;
  double second;
};
struct MergeCosine {
  using State = CosineSums;
  static TL_HOST_DEVICE State identity() { return {0.0, 0.0, 0.0}; }
  static TL_HOST_DEVICE State combine(const State& a, const State& b) {
    return {a.dot + b.dot, a.first + b.first, a.second + b.second};
  }
};

/// Hands the vectors `unit`, `unit` + `step`... of two rows to `take(a, b, first element)`. Where both rows are
/// aligned, two pairs are on their way at a time.
template <typename T, typename Take>
TL_DEVICE void walk_vectors(const T* first, const T* second, std::int64_t vectors, std::int64_t unit, std::int64_t step,
                            bool aligned, const Take& take) {
  constexpr int kSize = Vector<T>::kSize;
  if (aligned) {
    TL_ROLLED
    for (; unit + step < vectors; unit += 2 * step) {
      Vector<T> a[2];
      Vector<T> b[2];
      TL_UNROLL
      for (int i = 0; i < 2; ++i) a[i] = load_vector(first + (unit + i * step) * kSize, true);
      TL_UNROLL
      for (int i = 0; i < 2; ++i) b[i] = load_vector(second + (unit + i * step) * kSize, true);
      TL_UNROLL
      for (int i = 0; i < 2; ++i) take(a[i], b[i], (unit + i * step) * kSize);
    }
  }
  TL_ROLLED
  for (; unit < vectors; unit += step)
    take(load_vector(first + unit * kSize, aligned), load_vector(second + unit * kSize, aligned), unit * kSize);
}

/// 1 - cos for target 1, max(0, cos - margin) for target -1; squared norms carry 1e-12 as in PyTorch. Sums in float64:
/// the squares of float32 and bfloat16 do not fit float32.
template <typename T>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, 2) cosine_embedding(const CosineParameters<T> p) {
  using C = Compute<T>;
  constexpr int kSize = Vector<T>::kSize;
  TL_SHARED(CosineSums, scratch, kWarps);
  TL_SHARED(double, sum_scratch, kWarps);
  TL_SHARED(unsigned, flag, 1);
  const unsigned tid = thread_in_block();
  const unsigned lane = tid & (p.lanes - 1);
  const std::int64_t rows_at_once = kThreads / p.lanes;
  double block_sum = 0;
  TL_ROLLED
  for (std::int64_t group = block_in_grid(); group * rows_at_once < p.rows; group += blocks_in_grid()) {
    const std::int64_t row = group * rows_at_once + tid / p.lanes;
    const bool active = row < p.rows;
    const std::int64_t start = active ? row * p.length : 0;
    const T* const first = p.first + start;
    const T* const second = p.second + start;
    const bool aligned =
        ((reinterpret_cast<std::uintptr_t>(first) | reinterpret_cast<std::uintptr_t>(second)) % 16) == 0;
    const std::int64_t length = active ? p.length : 0;
    const std::int64_t full = length / kSize;
    CosineSums sums = MergeCosine::identity();
    const auto take = [&](C a, C b) {
      const double x = static_cast<double>(a);
      const double y = static_cast<double>(b);
      sums = {fma(x, y, sums.dot), fma(x, x, sums.first), fma(y, y, sums.second)};
    };
    const auto take_vectors = [&](const Vector<T>& a_vector, const Vector<T>& b_vector, std::int64_t) {
      C a[kSize];
      C b[kSize];
      unpack(a_vector, a);
      unpack(b_vector, b);
      TL_UNROLL
      for (int i = 0; i < kSize; ++i) take(a[i], b[i]);
    };
    walk_vectors(first, second, full, lane, p.lanes, aligned, take_vectors);
    TL_ROLLED
    for (std::int64_t i = full * kSize + lane; i < length; i += p.lanes)
      take(widen(load_global(first + i)), widen(load_global(second + i)));
    if (p.lanes < kThreads) {
      sums = combine_lanes<MergeCosine>(sums, p.lanes);
    } else {
      sums = combine_block<MergeCosine>(sums, scratch);
      block_barrier();  // before the next row writes the scratch
    }
    if (!active) continue;
    const double norm = sqrt(sums.first + 1e-12) * sqrt(sums.second + 1e-12);
    const double cosine = sums.dot / norm;
    const double sign = static_cast<double>(widen(load_global(p.target + row)));
    const double excess = cosine - p.margin;
    const double loss = sign == 1.0 ? 1.0 - cosine : sign == -1.0 ? (excess < 0.0 ? 0.0 : excess) : 0.0;
    if (lane == 0) {
      if (p.losses != nullptr) store_global(p.losses + row, narrow<T>(static_cast<C>(loss)));
      block_sum += loss;
    }
    if (p.first_gradient == nullptr && p.second_gradient == nullptr) continue;
    double gain = p.scale;
    if (p.upstream != nullptr)
      gain *= static_cast<double>(widen(load_global(p.upstream + (p.upstream_each ? row : 0))));
    const double slope = gain * (sign == 1.0 ? -1.0 : sign == -1.0 && !(excess <= 0.0) ? 1.0 : 0.0);
    // d cos / d a = b / (|a| |b|) - cos a / |a|^2
    const double cross = slope / norm;
    const double own_first = slope * cosine / (sums.first + 1e-12);
    const double own_second = slope * cosine / (sums.second + 1e-12);
    const auto slopes = [&](C a_element, C b_element, C& a_slope, C& b_slope) {
      const double a = static_cast<double>(a_element);
      const double b = static_cast<double>(b_element);
      a_slope = static_cast<C>(cross * b - own_first * a);
      b_slope = static_cast<C>(cross * a - own_second * b);
    };
    T* const first_out = p.first_gradient != nullptr ? p.first_gradient + start : nullptr;
    T* const second_out = p.second_gradient != nullptr ? p.second_gradient + start : nullptr;
    const bool first_aligned = reinterpret_cast<std::uintptr_t>(first_out) % 16 == 0;
    const bool second_aligned = reinterpret_cast<std::uintptr_t>(second_out) % 16 == 0;
    const auto write_vectors = [&](const Vector<T>& a_vector, const Vector<T>& b_vector, std::int64_t at) {
      C a[kSize];
      C b[kSize];
      unpack(a_vector, a);
      unpack(b_vector, b);
      TL_UNROLL
      for (int i = 0; i < kSize; ++i) slopes(a[i], b[i], a[i], b[i]);
      if (first_out != nullptr) store_vector(first_out + at, pack<T>(a), first_aligned);
      if (second_out != nullptr) store_vector(second_out + at, pack<T>(b), second_aligned);
    };
    walk_vectors(first, second, full, lane, p.lanes, aligned, write_vectors);
    TL_ROLLED
    for (std::int64_t i = full * kSize + lane; i < length; i += p.lanes) {
      C a = widen(load_global(first + i));
      C b = widen(load_global(second + i));
      slopes(a, b, a, b);
      if (first_out != nullptr) store_global(first_out + i, narrow<T>(a));
      if (second_out != nullptr) store_global(second_out + i, narrow<T>(b));
    }
  }
  if (p.total == nullptr) return;
  if (grid_sum(block_sum, p.partials, p.ticket, blocks_in_grid(), sum_scratch, flag)) {
    store_global(p.total, narrow<T>(static_cast<C>(block_sum * p.scale)));
  }
}

}  // namespace tensorlint::kernels
