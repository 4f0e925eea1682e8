#pragma once

// What the kernels over a class axis share: cross entropy with class indices or probabilities, softmax and log-softmax,
// their gradients, negative log likelihood. Logits are [rows, classes, inner]; with inner == 1 a row is contiguous and
// belongs to some lanes, a block, or a cluster of blocks (class_rows.h); otherwise positions (row, inner index) go
// across lanes and classes down (class_columns.h). The gradient may lie over the logits or the probabilities: a thread
// writes the elements that it read, and a label's logit is read before any thread of the row writes.

#include "kernels/common/combine.h"
#include "kernels/common/divisor.h"
#include "kernels/common/exponential.h"
#include "kernels/common/launch.h"
#include "kernels/common/store_span.h"
#include "kernels/loss/plan.h"

namespace tensorlint::kernels {

/// What the label pass finds. Lies in the workspace and, where asked for, in the caller's memory.
struct LabelSummary {
  double weight;           // sum of weight[label] over rows that count: the divisor of the mean
  std::int64_t bad;        // labels outside [0, classes) that are not ignore_index
  std::int64_t first_bad;  // position of the first of them, else kNoBadLabel
};
constexpr std::int64_t kNoBadLabel = std::numeric_limits<std::int64_t>::max();
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

  /// Targets are spread over the classes: probabilities, or labels with smoothing.
  template <ClassTask kTask>
  TL_DEVICE bool is_soft() const {
    return kTask == ClassTask::kProbabilities || (kTask == ClassTask::kIndices && smoothing != C{0});
  }
};

/// Statistics of one row: the exponential sum, and for soft targets Sum q x and Sum q with q the weighted target.
template <typename C>
struct alignas(4 * sizeof(C)) ClassState {
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

/// The state of a row in each of its `lanes`. The maximum first, and then one rescale a lane: half of what a chain of
/// combine costs, and a row is short. `soft`: dot and mass count too.
template <typename C>
TL_DEVICE ClassState<C> combine_class_lanes(ClassState<C> state, bool soft, unsigned lanes) {
  C maximum = state.exponentials.maximum;
  TL_ROLLED
  for (unsigned offset = 1; offset < lanes; offset *= 2)
    maximum = max_number(maximum, shuffle_xor(kFullMask, maximum, offset));
  C sum = ExpSum<C>::sum_at(state.exponentials.maximum, state.exponentials.sum, maximum);
  TL_ROLLED
  for (unsigned offset = 1; offset < lanes; offset *= 2) {
    sum += shuffle_xor(kFullMask, sum, offset);
    if (soft) {
      state.dot += shuffle_xor(kFullMask, state.dot, offset);
      state.mass += shuffle_xor(kFullMask, state.mass, offset);
    }
  }
  return {{maximum, sum}, state.dot, state.mass};
}

/// The same of `count` states, `state_of(i)` each.
template <typename C, typename StateOf>
TL_DEVICE ClassState<C> combine_class_states(unsigned count, const StateOf& state_of) {
  C maximum = Limits<C>::kLowest;
  TL_ROLLED
  for (unsigned i = 0; i < count; ++i) maximum = max_number(maximum, state_of(i).exponentials.maximum);
  ClassState<C> total = {{maximum, C{0}}, C{0}, C{0}};
  TL_ROLLED
  for (unsigned i = 0; i < count; ++i) {
    const ClassState<C> state = state_of(i);
    total.exponentials.sum += ExpSum<C>::sum_at(state.exponentials.maximum, state.exponentials.sum, maximum);
    total.dot += state.dot;
    total.mass += state.mass;
  }
  return total;
}

/// Weight times soft target of class `index`; the (1 - smoothing) at a label's own class comes on top.
template <ClassTask kTask, typename T>
TL_DEVICE Compute<T> soft_target(const ClassParameters<T>& p, std::int64_t index, Compute<T> probability) {
  using C = Compute<T>;
  C q = p.even_share;
  if constexpr (kTask == ClassTask::kProbabilities) q += (C{1} - p.smoothing) * probability;
  return p.weight != nullptr ? q * widen(load_global(p.weight + index)) : q;
}

/// Labels of a RowResult: the position has none, or counts for nothing and its outputs are zeros.
constexpr std::int64_t kNoLabel = -1;
constexpr std::int64_t kSkipped = -2;

/// What one row's second pass needs.
template <typename C>
struct RowResult {
  ExpReference<C> reference;
  C factor;    // of each term, to the gradient
  C gain;      // upstream times scale
  C at_label;  // subtracted at the label's class
  C loss;
  std::int64_t label;  // kNoLabel and kSkipped beside classes
  C log_offset;        // log-softmax: ln of the sum, relative to origin
  C label_logit;       // at `label`: its element may have been written over
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

/// The logit at a position's label, 0 where it has none in range. `first_class`: the position's class 0.
template <typename T>
TL_DEVICE Compute<T> label_logit_at(const ClassParameters<T>& p, std::int64_t position, const T* first_class) {
  const std::int64_t label = label_at(p.labels, position);
  if (label < 0 || label >= p.classes) return Compute<T>{0};
  return widen(load_global(first_class + label * p.inner));
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

/// From a position's statistics to its loss and the constants of its gradient. `label_logit`: of label_logit_at.
template <ClassTask kTask, typename T>
TL_DEVICE RowResult<Compute<T>> conclude(const ClassParameters<T>& p, const ClassState<Compute<T>>& state,
                                         std::int64_t position, Compute<T> label_logit) {
  using C = Compute<T>;
  using Base = ExpBase<C>;
  RowResult<C> r{};
  r.reference = Base::reference(state.exponentials.maximum);
  r.label = kNoLabel;
  // A score of +inf makes its whole row NaN, as x - m does for every x where m is +inf.
  const C sum = state.exponentials.maximum == Limits<C>::kLargest ? not_a_number<C>() : state.exponentials.sum;
  if constexpr (kTask == ClassTask::kSoftmax) {
    r.factor = divide_fast(C{1}, sum);
    r.log_offset = Base::log_of_sum_minus(C{0}, {C{0}, C{0}}, sum);
    return r;
  }
  r.gain = gain_at<kTask>(p, position);
  // Sum q (lse - x) = (Sum q) lse - Sum q x, both relative to the maximum's reference.
  C soft = C{0};
  if (p.template is_soft<kTask>()) {
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
    r.label_logit = label_logit;
    r.loss = hard * Base::log_of_sum_minus(label_logit, r.reference, sum) + soft;
    r.factor = divide_fast(r.gain * (hard + (p.template is_soft<kTask>() ? state.mass : C{0})), sum);
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
    if (p.template is_soft<kTask>()) value -= r.gain * soft_target<kTask>(p, index, probability);
    return index == r.label ? value - r.at_label : value;
  }
}

template <typename C>
struct RunningClasses {
  typename ExpSum<C>::Running exponentials = ExpSum<C>::start();
  C dot = C{0};
  C mass = C{0};
};

}  // namespace tensorlint::kernels
