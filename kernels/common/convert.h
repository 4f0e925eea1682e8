#pragma once

// Conversions of single elements between any two dtypes, each rounded once, to nearest with ties to even.

#include "kernels/common/scalar.h"

namespace tensorlint::kernels {

/// A float of which rounding to fewer bits is rounding `x` once: the neighbour towards zero, its last bit set where it
/// is not exact.
TL_HOST_DEVICE float rounded_to_odd(double x) {
  const auto nearest = static_cast<float>(x);
  const auto back = static_cast<double>(nearest);
  if (back == x || x != x) return nearest;
  const std::uint32_t bits = bit_cast<std::uint32_t>(nearest);
  const bool away = fabs(back) > fabs(x);
  return bit_cast<float>((away ? bits - 1U : bits) | 1U);
}

/// The same of an integer.
TL_HOST_DEVICE float rounded_to_odd(std::int64_t x) {
  const auto magnitude = x < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(x) : static_cast<std::uint64_t>(x);
  std::uint64_t kept = magnitude;
  if (magnitude >> 48 != 0)
    kept = (magnitude & ~std::uint64_t{0xffffff}) | ((magnitude & 0xffffff) != 0 ? 1U << 24 : 0U);
  // At most 48 bits: exact in float64, and odd below them where bits were lost.
  const float odd = rounded_to_odd(static_cast<double>(kept));
  return x < 0 ? -odd : odd;
}

/// Towards zero; out of range and NaN the smallest integer.
template <typename C>
TL_HOST_DEVICE std::int64_t truncated(C x) {
  constexpr C kLimit = static_cast<C>(9223372036854775808.0);
  return x >= -kLimit && x < kLimit ? static_cast<std::int64_t>(x) : std::int64_t{-9223372036854775807} - 1;
}

/// What an element is in a compute type: float, double or int64.
template <typename C, typename T>
TL_HOST_DEVICE C computed(T element) {
  if constexpr (std::is_arithmetic_v<T>) {
    if constexpr (std::is_integral_v<C> && std::is_floating_point_v<T>) {
      return truncated(element);
    } else {
      return static_cast<C>(element);
    }
  } else if constexpr (std::is_integral_v<C>) {
    return truncated(to_float(element));
  } else {
    return static_cast<C>(to_float(element));
  }
}

/// The element nearest to a value of a compute type; integers keep their low bits.
template <typename T, typename C>
TL_HOST_DEVICE T converted(C x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    float single;
    if constexpr (std::is_same_v<C, float>) {
      single = x;
    } else {
      single = rounded_to_odd(x);
    }
    if constexpr (std::is_same_v<T, Half>) {
      return to_half(single);
    } else {
      return to_bfloat16(single);
    }
  } else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<C>) {
    return static_cast<T>(truncated(x));
  } else {
    return static_cast<T>(x);
  }
}

}  // namespace tensorlint::kernels
