#pragma once

// Cosine embedding loss of rows, forward and backward.

#include "kernels/common/combine.h"
#include "kernels/common/launch.h"
#include "kernels/common/vector.h"

namespace tensorlint::kernels {

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

/// Hands the vectors `unit`, `unit` + `step`... of two rows to `take(a, b, first element, batch)`: two pairs at a time
/// where `batches` (rows, and what is written, are aligned: `batch` is std::true_type), then singly (std::false_type).
template <typename T, typename Take>
TL_DEVICE void walk_vectors(const T* first, const T* second, std::int64_t vectors, std::int64_t unit, std::int64_t step,
                            bool batches, bool aligned, const Take& take) {
  constexpr int kSize = Vector<T>::kSize;
  if (batches) {
    TL_ROLLED
    for (; unit + step < vectors; unit += 2 * step) {
      Vector<T> a[2];
      Vector<T> b[2];
      TL_UNROLL
      for (int i = 0; i < 2; ++i) a[i] = load_vector(first + (unit + i * step) * kSize, true);
      TL_UNROLL
      for (int i = 0; i < 2; ++i) b[i] = load_vector(second + (unit + i * step) * kSize, true);
      TL_UNROLL
      for (int i = 0; i < 2; ++i) take(a[i], b[i], (unit + i * step) * kSize, std::true_type{});
    }
  }
  TL_ROLLED
  for (; unit < vectors; unit += step)
    take(load_vector(first + unit * kSize, aligned), load_vector(second + unit * kSize, aligned), unit * kSize,
         std::false_type{});
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
    const auto take_vectors = [&](const Vector<T>& a_vector, const Vector<T>& b_vector, std::int64_t, auto) {
      C a[kSize];
      C b[kSize];
      unpack(a_vector, a);
      unpack(b_vector, b);
      TL_UNROLL
      for (int i = 0; i < kSize; ++i) take(a[i], b[i]);
    };
    walk_vectors(first, second, full, lane, p.lanes, aligned, aligned, take_vectors);
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
    const auto write_vectors = [&](const Vector<T>& a_vector, const Vector<T>& b_vector, std::int64_t at, auto batch) {
      C a[kSize];
      C b[kSize];
      unpack(a_vector, a);
      unpack(b_vector, b);
      TL_UNROLL
      for (int i = 0; i < kSize; ++i) slopes(a[i], b[i], a[i], b[i]);
      if (first_out != nullptr) store_vector(first_out + at, pack<T>(a), decltype(batch)::value || first_aligned);
      if (second_out != nullptr) store_vector(second_out + at, pack<T>(b), decltype(batch)::value || second_aligned);
    };
    walk_vectors(first, second, full, lane, p.lanes, aligned && first_aligned && second_aligned, aligned,
                 write_vectors);
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
