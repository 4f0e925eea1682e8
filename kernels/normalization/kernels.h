#pragma once

#include "kernels/common/combine.h"
#include "kernels/common/divisor.h"
#include "kernels/common/vector.h"
#include "kernels/normalization/normalization.h"

namespace tensorlint::kernels {

template <typename T>
struct NormalizationParameters {
  const T* data = nullptr;
  const T* scale = nullptr;
  const T* bias = nullptr;
  const T* mean = nullptr;
  const T* variance = nullptr;
  T* result = nullptr;
  std::int64_t rows = 0;
  std::int64_t length = 0;
  std::int64_t each = 1;
  Divisor by_groups;
  Divisor by_part;  // elements of a row that share parameters
  Compute<T> epsilon{};
  unsigned lanes = kThreads;  // of a row: a power of two up to 32, or kThreads
  bool centred = true;
};

/// Count, sum and sum of squared deviations from the mean. The sum is kept, not the mean, so that sums that are exact
/// give exact means. The count is a number of the compute type: past 2^24 it rounds, which costs what divisions do, and
/// the product of two, at most 2^62 in all, stays finite.
template <typename C>
struct Moments {
  struct State {
    C count;
    C sum;
    C squares;
  };
  static TL_HOST_DEVICE State identity() { return {C{0}, C{0}, C{0}}; }
  static TL_HOST_DEVICE State combine(State a, State b) {
    if (b.count == C{0}) return a;
    if (a.count == C{0}) return b;
    const C count = a.count + b.count;
    const C difference = divide_fast(b.sum, b.count) - divide_fast(a.sum, a.count);
    const C weight = divide_fast(a.count * b.count, count);
    return {count, a.sum + b.sum, a.squares + b.squares + difference * difference * weight};
  }
};

/// Of some vectors: their mean, then the squares of what each element differs from it; without `centred` from 0.
template <typename T, int kCount>
TL_DEVICE typename Moments<Compute<T>>::State moments_of(const Vector<T> (&vectors)[kCount], bool centred) {
  using C = Compute<T>;
  constexpr int kSize = Vector<T>::kSize;
  constexpr C kElements = static_cast<C>(kCount * kSize);
  C sum{0};
  TL_UNROLL
  for (int v = 0; v < kCount; ++v) {
    C x[kSize];
    unpack(vectors[v], x);
    TL_UNROLL
    for (int i = 0; i < kSize; ++i) sum += x[i];
  }
  if (!centred) sum = C{0};
  const C mean = sum * (C{1} / kElements);
  C squares{0};
  TL_UNROLL
  for (int v = 0; v < kCount; ++v) {
    C x[kSize];
    unpack(vectors[v], x);
    TL_UNROLL
    for (int i = 0; i < kSize; ++i) squares = fused_multiply_add(x[i] - mean, x[i] - mean, squares);
  }
  return {kElements, sum, squares};
}

/// Moments of this thread's part of a row.
template <typename T>
TL_DEVICE typename Moments<Compute<T>>::State walk_moments(const T* row, std::int64_t length, unsigned lane,
                                                           unsigned lanes, bool centred) {
  using C = Compute<T>;
  constexpr int kSize = Vector<T>::kSize;
  const bool aligned = reinterpret_cast<std::uintptr_t>(row) % 16 == 0;
  const std::int64_t full = length / kSize;
  const auto step = static_cast<std::int64_t>(lanes);
  auto state = Moments<C>::identity();
  std::int64_t unit = lane;
  if (aligned) {
    TL_ROLLED
    for (; unit + 3 * step < full; unit += 4 * step) {
      Vector<T> batch[4];
      TL_UNROLL
      for (int v = 0; v < 4; ++v) batch[v] = load_vector(row + (unit + v * step) * kSize, true);
      state = Moments<C>::combine(state, moments_of(batch, centred));
    }
  }
  TL_ROLLED
  for (; unit < full; unit += step) {
    const Vector<T> one[1] = {load_vector(row + unit * kSize, aligned)};
    state = Moments<C>::combine(state, moments_of(one, centred));
  }
  TL_ROLLED
  for (std::int64_t i = full * kSize + lane; i < length; i += step) {
    const C x = widen(load_global(row + i));
    state = Moments<C>::combine(state, {C{1}, centred ? x : C{0}, centred ? C{0} : x * x});
  }
  return state;
}

/// Scale or bias of elements of a row from `i` on; `otherwise` where there is none.
template <typename T, int kCount>
TL_DEVICE void load_parameters(const T* parameters, const Divisor& by_part, std::int64_t i, Compute<T> otherwise,
                               Compute<T> (&x)[kCount]) {
  if constexpr (kCount == Vector<T>::kSize) {  // one for each: i is a multiple of the vector
    if (by_part.value == 1 && parameters != nullptr && reinterpret_cast<std::uintptr_t>(parameters) % 16 == 0) {
      unpack(load_vector(parameters + i, true), x);
      return;
    }
  }
  if (parameters == nullptr) {
    TL_UNROLL
    for (int k = 0; k < kCount; ++k) x[k] = otherwise;
  } else if (kCount > 1 && by_part.value % kCount == 0) {  // one for all of them
    const Compute<T> shared = widen(load_global(parameters + by_part.quotient(i)));
    TL_UNROLL
    for (int k = 0; k < kCount; ++k) x[k] = shared;
  } else {
    TL_UNROLL
    for (int k = 0; k < kCount; ++k) x[k] = widen(load_global(parameters + by_part.quotient(i + k)));
  }
}

template <typename T>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, 2) normalize_rows(const NormalizationParameters<T> p) {
  using C = Compute<T>;
  constexpr int kSize = Vector<T>::kSize;
  TL_SHARED(typename Moments<C>::State, scratch, kWarps);
  const unsigned lane = thread_in_block() & (p.lanes - 1);
  const std::int64_t rows_at_once = kThreads / p.lanes;
  TL_ROLLED
  for (std::int64_t group = block_in_grid(); group * rows_at_once < p.rows; group += blocks_in_grid()) {
    const std::int64_t row = group * rows_at_once + thread_in_block() / p.lanes;
    const bool active = row < p.rows;
    const std::int64_t length = active ? p.length : 0;
    const T* const from = p.data + (active ? row * p.length : 0);
    T* const to = p.result + (active ? row * p.length : 0);
    const std::int64_t kind = active ? p.by_groups.remainder(row) : 0;
    C mean{0};
    C variance{0};
    if (p.mean == nullptr) {
      auto state = walk_moments(from, length, lane, p.lanes, p.centred);
      if (p.lanes < kThreads) {
        state = combine_lanes<Moments<C>>(state, p.lanes);
      } else {
        state = combine_block<Moments<C>>(state, scratch);
        block_barrier();  // before the next row writes the scratch
      }
      mean = state.sum / static_cast<C>(p.length);
      variance = state.squares / static_cast<C>(p.length);
    } else {
      mean = widen(load_global(p.mean + kind));
      variance = widen(load_global(p.variance + kind));
    }
    const C factor = C{1} / std::sqrt(variance + p.epsilon);
    const T* const scale = p.scale == nullptr ? nullptr : p.scale + kind * p.each;
    const T* const bias = p.bias == nullptr ? nullptr : p.bias + kind * p.each;
    const bool aligned = (reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to)) % 16 == 0;
    const std::int64_t full = length / kSize;
    TL_ROLLED
    for (std::int64_t unit = lane; unit < full; unit += p.lanes) {
      C x[kSize];
      C scales[kSize];
      C biases[kSize];
      unpack(load_vector(from + unit * kSize, aligned), x);
      load_parameters(scale, p.by_part, unit * kSize, C{1}, scales);
      load_parameters(bias, p.by_part, unit * kSize, C{0}, biases);
      TL_UNROLL
      for (int k = 0; k < kSize; ++k) x[k] = fused_multiply_add((x[k] - mean) * factor, scales[k], biases[k]);
      store_vector(to + unit * kSize, pack<T>(x), aligned);
    }
    TL_ROLLED
    for (std::int64_t i = full * kSize + lane; i < length; i += p.lanes) {
      C scales[1];
      C biases[1];
      load_parameters(scale, p.by_part, i, C{1}, scales);
      load_parameters(bias, p.by_part, i, C{0}, biases);
      const C x = (widen(load_global(from + i)) - mean) * factor;
      store_global(to + i, narrow<T>(fused_multiply_add(x, scales[0], biases[0])));
    }
  }
}

}  // namespace tensorlint::kernels
