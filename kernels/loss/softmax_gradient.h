#pragma once

// Gradient of softmax and log-softmax from their result, any inner extent.

#include "kernels/loss/class_common.h"

namespace tensorlint::kernels {

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

}  // namespace tensorlint::kernels
