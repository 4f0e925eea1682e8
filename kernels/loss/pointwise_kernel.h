#pragma once

// One kernel for every pointwise loss: element values, their sum and the gradient, whichever are asked for, in one
// pass.

#include "kernels/common/combine.h"
#include "kernels/common/divisor.h"
#include "kernels/common/launch.h"
#include "kernels/loss/pointwise_ops.h"

namespace tensorlint::kernels {

template <typename T>
struct PointwiseParameters {
  using C = Compute<T>;
  const T* input = nullptr;
  const T* target = nullptr;
  const T* weight = nullptr;           // multiplies the loss; element i uses weight[i % weight_period]
  const T* positive_weight = nullptr;  // BinaryLogitsOp; likewise
  const T* upstream = nullptr;         // null: 1
  T* losses = nullptr;
  T* gradient = nullptr;
  T* total = nullptr;
  double* partials = nullptr;  // one a block
  unsigned* ticket = nullptr;
  Divisor weight_period;
  Divisor positive_period;
  std::int64_t elements = 0;
  std::int64_t split_length = 0;  // vectors of one block
  unsigned blocks = 0;
  double scale = 1;  // of total and gradient
  PointwiseOptions<C> options;
  bool upstream_each = false;  // one upstream value an element, else one for all
  bool aligned = false;        // all of input, target, losses, gradient and (if each) upstream
};

template <typename Op, typename T>
TL_DEVICE ValueAndSlope<Compute<T>> weighted(const PointwiseParameters<T>& p, Compute<T> x, Compute<T> t,
                                             std::int64_t index) {
  PointwiseOptions<Compute<T>> options = p.options;
  if (p.positive_weight != nullptr)
    options.positive = widen(load_global(p.positive_weight + p.positive_period.remainder(index)));
  ValueAndSlope<Compute<T>> result = Op::at(x, t, options);
  if (p.weight != nullptr) {
    const Compute<T> w = widen(load_global(p.weight + p.weight_period.remainder(index)));
    result.value *= w;
    result.slope *= w;
  }
  return result;
}

/// `kCount` whole vectors from `unit` on by kThreads.
template <typename Op, int kCount, typename T>
TL_DEVICE void pointwise_vectors(const PointwiseParameters<T>& p, std::int64_t unit, bool aligned, Compute<T> gain,
                                 Compute<T>& sum) {
  using C = Compute<T>;
  constexpr int kSize = Vector<T>::kSize;
  Vector<T> x_vectors[kCount];
  Vector<T> t_vectors[kCount];
  TL_UNROLL
  for (int v = 0; v < kCount; ++v)
    x_vectors[v] = load_vector(p.input + (unit + std::int64_t{kThreads} * v) * kSize, aligned);
  TL_UNROLL
  for (int v = 0; v < kCount; ++v)
    t_vectors[v] = load_vector(p.target + (unit + std::int64_t{kThreads} * v) * kSize, aligned);
  TL_UNROLL
  for (int v = 0; v < kCount; ++v) {
    const std::int64_t first = (unit + std::int64_t{kThreads} * v) * kSize;
    C x[kSize];
    C t[kSize];
    C values[kSize];
    C slopes[kSize];
    unpack(x_vectors[v], x);
    unpack(t_vectors[v], t);
    C part = C{0};
    TL_UNROLL
    for (int i = 0; i < kSize; ++i) {
      const ValueAndSlope<C> result = weighted<Op>(p, x[i], t[i], first + i);
      values[i] = result.value;
      slopes[i] = result.slope * gain;
      part += result.value;
    }
    sum += part;
    if (p.losses != nullptr) store_vector(p.losses + first, pack<T>(values), aligned);
    if (p.gradient != nullptr) {
      if (p.upstream_each) {
        C upstream[kSize];
        unpack(load_vector(p.upstream + first, aligned), upstream);
        TL_UNROLL
        for (int i = 0; i < kSize; ++i) slopes[i] *= upstream[i];
      }
      store_vector(p.gradient + first, pack<T>(slopes), aligned);
    }
  }
}

template <typename Op, typename T>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, 2) pointwise_loss(const PointwiseParameters<T> p) {
  using C = Compute<T>;
  constexpr int kSize = Vector<T>::kSize;
  TL_SHARED(double, scratch, kWarps);
  TL_SHARED(unsigned, flag, 1);
  const unsigned tid = thread_in_block();
  C gain = static_cast<C>(p.scale);
  if (p.upstream != nullptr && !p.upstream_each) gain *= widen(load_global(p.upstream));

  const std::int64_t whole = p.elements / kSize;
  const std::int64_t begin = std::int64_t{block_in_grid()} * p.split_length;
  const std::int64_t end = begin + p.split_length < whole ? begin + p.split_length : whole;
  C sum = C{0};
  std::int64_t unit = begin + tid;
  if (p.aligned) {
    TL_ROLLED
    for (; unit + kThreads < end; unit += 2 * kThreads) pointwise_vectors<Op, 2>(p, unit, true, gain, sum);
  }
  TL_ROLLED
  for (; unit < end; unit += kThreads) pointwise_vectors<Op, 1>(p, unit, p.aligned, gain, sum);
  const std::int64_t rest = whole * kSize + tid;
  if (block_in_grid() + 1 == p.blocks && rest < p.elements) {
    const ValueAndSlope<C> result =
        weighted<Op>(p, widen(load_global(p.input + rest)), widen(load_global(p.target + rest)), rest);
    sum += result.value;
    if (p.losses != nullptr) store_global(p.losses + rest, narrow<T>(result.value));
    if (p.gradient != nullptr) {
      C slope = result.slope * gain;
      if (p.upstream_each) slope *= widen(load_global(p.upstream + rest));
      store_global(p.gradient + rest, narrow<T>(slope));
    }
  }
  if (p.total == nullptr) return;
  double total = static_cast<double>(sum);
  if (grid_sum(total, p.partials, p.ticket, p.blocks, scratch, flag))
    store_global(p.total, narrow<T>(static_cast<C>(total * p.scale)));
}

}  // namespace tensorlint::kernels
