#pragma once

// Helpers of the kernel tests: element values, schedules, bounds.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "kernels/common/vector.h"
#include "tests/kernels/device.h"

namespace tensorlint::kernels::testing {

/// In order, then random and priority in turn.
inline std::vector<Schedule> schedules(int count) {
  std::vector<Schedule> all = {{Order::kInOrder, 1}};
  for (int i = 1; i < count; ++i) {
    all.push_back({i % 2 == 1 ? Order::kRandom : Order::kPriority, static_cast<std::uint64_t>(i)});
  }
  return all;
}

/// Schedules for a synchronisation structure; TENSORLINT_SCHEDULES overrides for long runs.
inline int schedule_count(int wanted) {
  const char* text = std::getenv("TENSORLINT_SCHEDULES");
  return text != nullptr ? std::atoi(text) : wanted;
}

/// The element nearest to `x` among those of T (fp8 by search).
template <typename T>
T element_from(double x) {
  if constexpr (std::is_same_v<T, Half>) {
    return to_half(static_cast<float>(x));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(static_cast<float>(x));
  } else if constexpr (std::is_same_v<T, Float8E4M3> || std::is_same_v<T, Float8E5M2>) {
    if (x != x) return T{0x7f};
    if (std::isinf(x) && std::is_same_v<T, Float8E5M2>) return T{static_cast<std::uint8_t>(x > 0 ? 0x7c : 0xfc)};
    T best{0};
    double distance = INFINITY;
    for (int bits = 0; bits < 256; ++bits) {
      const T candidate{static_cast<std::uint8_t>(bits)};
      const double value = static_cast<double>(to_float(candidate));
      if (std::isfinite(value) && std::fabs(value - x) < distance) {
        distance = std::fabs(value - x);
        best = candidate;
      }
    }
    return best;
  } else {
    return static_cast<T>(x);
  }
}

template <typename T>
double value_of(T x) {
  return static_cast<double>(widen(x));
}

/// Half the distance between neighbours near 1, relative: the rounding of a result of type T.
template <typename T>
constexpr double unit_roundoff() {
  if constexpr (std::is_same_v<T, double>) return 0x1p-53;
  if constexpr (std::is_same_v<T, float>) return 0x1p-24;
  if constexpr (std::is_same_v<T, Half>) return 0x1p-11;
  if constexpr (std::is_same_v<T, BFloat16>) return 0x1p-8;
  return 0.0;
}
/// What rounding to T may lose of a value near 0.
template <typename T>
constexpr double smallest_subnormal() {
  if constexpr (std::is_same_v<T, Half>) return 0x1p-24;
  if constexpr (std::is_same_v<T, BFloat16>) return 0x1p-133;
  if constexpr (std::is_same_v<T, float>) return 0x1p-149;
  return 0.0;
}
/// What an exponential of the compute type may lose of a value near 0: ex2.approx.ftz flushes below 2^-126.
template <typename T>
constexpr double flushed_exponential() {
  return std::is_same_v<T, double> ? 0.0 : 0x1p-126;
}
template <typename T>
constexpr double largest() {
  if constexpr (std::is_same_v<T, Half>) return 65504.0;
  if constexpr (std::is_same_v<T, BFloat16>) return 0x1.fep127;
  if constexpr (std::is_same_v<T, float>) return 0x1.fffffep127;
  return std::numeric_limits<double>::max();
}

/// |got - want| / bound, 0 for equal (also infinities) and for two NaN, infinite for one NaN. A result rounds to
/// infinity from the largest number of its type plus half a step on, hence `overflow`.
inline double error_ratio(double got, double want, double bound, double overflow = INFINITY) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0.0 : INFINITY;
  if (got == want) return 0.0;
  if (std::isinf(got) && std::fabs(want) + bound >= overflow) return 0.0;
  return std::fabs(got - want) / bound;
}

}  // namespace tensorlint::kernels::testing
