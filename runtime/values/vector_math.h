#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tensorlint::runtime {

// Functions of float64 without branches, so that loops over them become vector instructions. Relative errors lie below
// 4e-16 (4 units in the last place), which rounding to float32 hides but for 1 number in some 10^7; NaN, infinities and
// results beyond the range of float64 are those of the standard library. Series are Taylor's unless said otherwise.

namespace vector_math {

/// 1.5 * 2^52: added to a number below 2^51, it leaves the nearest integer in the low bits.
inline constexpr double kShift = 0x1.8p52;
inline constexpr double kLog2E = 0x1.71547652b82fep0;
/// The leading 41 bits of ln 2, a product of which with an exponent is exact, and the rest.
inline constexpr double kLn2High = 0x1.62e42fefa38p-1, kLn2Low = 0x1.ef35793c7673p-45;

/// x = n ln 2 + r with |r| <= ln 2 / 2.
struct Reduced {
  double r;
  std::int64_t n;
};

[[gnu::always_inline]] inline Reduced reduced(double x) {
  const double shifted = x * kLog2E + kShift;
  const double n = shifted - kShift;
  return {(x - n * kLn2High) - n * kLn2Low,
          static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(shifted) - std::bit_cast<std::uint64_t>(kShift))};
}

/// a - b modulo 2^64: of NaN the exponent is any number, which nothing reads.
[[gnu::always_inline]] inline std::int64_t difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

/// 2^n for -1022 <= n <= 1023.
[[gnu::always_inline]] inline double power_of_two(std::int64_t n) {
  return std::bit_cast<double>((static_cast<std::uint64_t>(n) + 1023) << 52);
}

/// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2; the series' next term is below 2^-58.
[[gnu::always_inline]] inline double exp_tail(double r) {
  double sum = 1.0 / 6227020800.0;
  sum = sum * r + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  return sum * r + 0.5;
}

/// `x` within [least, most]; NaN stays.
[[gnu::always_inline]] inline double bounded(double x, double least, double most) {
  x = x < least ? least : x;
  return x > most ? most : x;
}

}  // namespace vector_math

[[gnu::always_inline]] inline double fast_exp(double x) {
  using namespace vector_math;
  const auto [r, n] = reduced(bounded(x, -746.0, 710.0));
  const double p = 1.0 + (r + r * r * exp_tail(r));
  // Two factors, since 2^n alone may leave float64's range. n / 2 of unsigned numbers, which every processor shifts.
  const auto half = static_cast<std::int64_t>((static_cast<std::uint64_t>(n) + 4096) >> 1) - 2048;
  return p * power_of_two(half) * power_of_two(difference(n, half));
}

/// e^x - 1.
[[gnu::always_inline]] inline double fast_expm1(double x) {
  using namespace vector_math;
  const auto [r, n] = reduced(bounded(x, -40.0, 710.0));
  const double p = r + r * r * exp_tail(r), half = power_of_two(difference(n, 1));
  return 2.0 * (half * p + (half - 0.5));
}

namespace vector_math {

/// ln x for x > 0, normal: x = 2^n (1 + f) with 1 + f in [sqrt 1/2, sqrt 2). With s = f / (2 + f),
/// ln(1 + f) = 2 artanh s = f - f^2 / 2 + s (f^2 / 2 + 2 s^2 (1/3 + s^2 / 5 + ...)).
[[gnu::always_inline]] inline double log_of_normal(double x, double offset) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  constexpr std::uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdU;
  const std::uint64_t above = bits - kSqrtHalf;  // its exponent: n, modulo 2^12
  // The exponent as a number: its bits below those of 2^52.
  const std::uint64_t biased = (above + (std::uint64_t{1024} << 52)) >> 52;
  const double n = std::bit_cast<double>(biased | 0x4330000000000000U) - (0x1p52 + 1024.0) + offset;
  const double m = std::bit_cast<double>(bits - ((biased - 1024U) << 52));
  const double f = m - 1.0, s = f / (2.0 + f), z = s * s, half_square = 0.5 * f * f;
  double sum = 2.0 / 23.0;
  sum = sum * z + 2.0 / 21.0;
  sum = sum * z + 2.0 / 19.0;
  sum = sum * z + 2.0 / 17.0;
  sum = sum * z + 2.0 / 15.0;
  sum = sum * z + 2.0 / 13.0;
  sum = sum * z + 2.0 / 11.0;
  sum = sum * z + 2.0 / 9.0;
  sum = sum * z + 2.0 / 7.0;
  sum = sum * z + 2.0 / 5.0;
  sum = sum * z + 2.0 / 3.0;
  const double small = s * (half_square + sum * z) + n * kLn2Low;
  return n * kLn2High - ((half_square - small) - f);
}

}  // namespace vector_math

[[gnu::always_inline]] inline double fast_log(double x) {
  const bool tiny = x < 0x1p-1022;
  const double scaled = tiny ? x * 0x1p54 : x;
  double y = vector_math::log_of_normal(scaled, tiny ? -54.0 : 0.0);
  y = x == HUGE_VAL ? x : y;
  y = x == 0.0 ? -HUGE_VAL : y;
  return x >= 0.0 ? y : std::bit_cast<double>(0x7ff8000000000000U);
}

/// ln(1 + x) for x in [0, 1].
[[gnu::always_inline]] inline double fast_log1p(double x) {
  const double one = 1.0 + x;
  return vector_math::log_of_normal(one, 0.0) + (x - (one - 1.0)) / one;
}

[[gnu::always_inline]] inline double fast_tanh(double x) {
  const double magnitude = std::fabs(x), t = fast_expm1(2.0 * (magnitude > 20.0 ? 20.0 : magnitude));
  return std::copysign(t / (t + 2.0), x);
}

/// 1 / (1 + e^-x).
[[gnu::always_inline]] inline double fast_sigmoid(double x) {
  const double e = fast_exp(-std::fabs(x));
  return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

/// ln(1 + e^x).
[[gnu::always_inline]] inline double fast_softplus(double x) {
  return (x < 0.0 ? 0.0 : x) + fast_log1p(fast_exp(-std::fabs(x)));
}

/// By |x|: x P(x^2) to 1, then 1 - e^(-x^2) Q(t) with t = (|x| - 2.5) / (|x| + 2.5), and from 6 on 1 rounded. P and Q
/// interpolate erf(x) / x and erfc(x) e^(x^2) at 12 and 15 Chebyshev nodes; their own relative errors are 4.4e-17 and
/// 4.6e-16, of which erf sees at most a fifth.
[[gnu::always_inline]] inline double fast_erf(double x) {
  const double magnitude = std::fabs(x), a = magnitude > 6.0 ? 6.0 : magnitude, square = a * a;
  double p = -0x1.ac9585a44fe29p-31;
  p = p * square + 0x1.d76af6ca49787p-27;
  p = p * square - 0x1.5c131500d3f88p-23;
  p = p * square + 0x1.b981d78881a5dp-20;
  p = p * square - 0x1.f4ca838adb73bp-17;
  p = p * square + 0x1.f9a2be4f731a1p-14;
  p = p * square - 0x1.c02db0665e53dp-11;
  p = p * square + 0x1.565bccfa44156p-8;
  p = p * square - 0x1.b82ce31203772p-6;
  p = p * square + 0x1.ce2f21a040f66p-4;
  p = p * square - 0x1.812746b0379c1p-2;
  p = p * square + 0x1.20dd750429b6dp+0;
  const double t = (a - 2.5) / (a + 2.5);
  double q = -0x1.aa2d5ed17d342p-20;
  q = q * t - 0x1.2bb032d568eep-19;
  q = q * t + 0x1.f74c7792ffaecp-18;
  q = q * t + 0x1.38006c5e8491ep-16;
  q = q * t - 0x1.1eafcc284801bp-15;
  q = q * t - 0x1.0e4525f30bfc3p-13;
  q = q * t + 0x1.def28f2749997p-13;
  q = q * t + 0x1.cb3b5c1d1aec7p-11;
  q = q * t - 0x1.5a5716b1b771fp-9;
  q = q * t - 0x1.05bb2fdf6af31p-8;
  q = q * t + 0x1.470ba1f67a1a9p-5;
  q = q * t - 0x1.001154371791p-3;
  q = q * t + 0x1.01c11a735cd9p-2;
  q = q * t - 0x1.7ca88dec2179fp-2;
  q = q * t + 0x1.afbb3f3b7343bp-3;
  const double outer = 1.0 - fast_exp(-square) * q;
  return std::copysign(a < 1.0 ? a * p : outer, x);
}

}  // namespace tensorlint::runtime
