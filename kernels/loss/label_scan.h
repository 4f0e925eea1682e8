#pragma once

// The label pass of losses with class indices: the divisor of the mean, and the labels outside the classes.

#include "kernels/common/walk.h"
#include "kernels/loss/class_common.h"

namespace tensorlint::kernels {

struct MergeLabels {
  using State = LabelSummary;
  static TL_HOST_DEVICE State identity() { return {0.0, 0, kNoBadLabel}; }
  static TL_HOST_DEVICE State combine(const State& a, const State& b) {
    return {a.weight + b.weight, a.bad + b.bad, a.first_bad < b.first_bad ? a.first_bad : b.first_bad};
  }
};
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
    walk_integers(static_cast<const std::int64_t*>(p.labels.data), p.positions, p.blocks, take);
  } else {
    walk_integers(static_cast<const std::int32_t*>(p.labels.data), p.positions, p.blocks, take);
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

}  // namespace tensorlint::kernels
