#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "runtime/values/codec.h"
#include "runtime/values/parallel.h"
#include "runtime/values/simd_target.h"

namespace tensorlint::runtime {

// Loops of an element function (element_functions.h) over tensors of any numeric dtype.

/// `f` by value: what is written cannot be its parameters.
template <typename F>
[[gnu::always_inline]] inline void function_loop(F f, const double* x, double* y, std::size_t count) {
  TENSORLINT_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) y[i] = f.value(x[i]);
}

/// By rows of float64: GCC makes no vectors of loops that mix both widths with conditions.
template <typename F>
[[gnu::always_inline]] inline void function_loop(F f, const float* x, float* y, std::size_t count) {
  alignas(64) double from[kRow], to[kRow];
  for (std::size_t first = 0; first < count; first += kRow) {
    const std::size_t part = std::min(kRow, count - first);
    for (std::size_t i = 0; i < part; ++i) from[i] = static_cast<double>(x[first + i]);
    function_loop(f, from, to, part);
    for (std::size_t i = 0; i < part; ++i) y[first + i] = static_cast<float>(to[i]);
  }
}

/// The loop for the widest vectors of this processor. Without contraction all give the same bits.
template <typename F, typename T>
struct FunctionLoop {
  using Loop = void (*)(const F&, const T*, T*, std::size_t);
  [[gnu::flatten]] static void plain(const F& f, const T* x, T* y, std::size_t n) { function_loop(f, x, y, n); }
#if defined(__x86_64__)
  [[gnu::flatten, gnu::target("avx2")]] static void avx2(const F& f, const T* x, T* y, std::size_t n) {
    function_loop(f, x, y, n);
  }
  [[gnu::flatten, TENSORLINT_AVX512_TARGET("avx512f,avx512dq,avx512vl")]] static void avx512(const F& f, const T* x,
                                                                                             T* y, std::size_t n) {
    function_loop(f, x, y, n);
  }
#endif
  static Loop best() {
    if constexpr (F::kIsVector) {
#if defined(__x86_64__)
      if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return avx512;
      if (__builtin_cpu_supports("avx2")) return avx2;
#endif
    }
    return plain;
  }
};

/// Large tensors by several threads.
template <typename F, typename T>
void apply_loop(const F& f, const T* x, T* y, std::size_t count) {
  static const auto loop = FunctionLoop<F, T>::best();
  constexpr std::int64_t kPart = std::int64_t{1} << 17;
  parallel_ranges(static_cast<std::int64_t>(count), kPart, [&](std::int64_t first, std::int64_t end) {
    loop(f, x + first, y + first, static_cast<std::size_t>(end - first));
  });
}

/// y[i] = f(x[i]); dtypes are equal. Integers: truncated.
template <typename F>
void apply_function(const F& f, const HostTensor& x, HostTensor& y) {
  if (x.dtype() == DType::kFloat32) return apply_loop(f, x.as<float>().data(), y.as_mutable<float>().data(), x.size());
  if (x.dtype() == DType::kFloat64)
    return apply_loop(f, x.as<double>().data(), y.as_mutable<double>().data(), x.size());
  static const auto loop = FunctionLoop<F, double>::best();
  alignas(64) double from[kRow], to[kRow];
  const bool integers = is_integer_or_bool(x.dtype());
  for (std::size_t first = 0; first < x.size(); first += kRow) {
    const std::size_t count = std::min(kRow, x.size() - first);
    load(x, first, count, from);
    loop(f, from, to, count);
    if (integers) {
      std::int64_t whole[kRow];
      std::transform(to, to + count, whole, truncated);
      store(y, first, count, whole);
    } else {
      store(y, first, count, to);
    }
  }
}

}  // namespace tensorlint::runtime
