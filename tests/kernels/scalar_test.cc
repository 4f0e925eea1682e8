// Pure parts over every value of the small types.

#include <bit>

#include "kernels/common/exponential.h"
#include "kernels/reduction/accumulators.h"
#include "tests/kernels/testing.h"

namespace tensorlint::kernels {
namespace {

// Written from the format descriptions alone: sign, exponent bits, fraction bits, bias.
double decode(std::uint32_t bits, int exponent_bits, int fraction_bits, bool has_infinity) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = bits >> (exponent_bits + fraction_bits) & 1U ? -1.0 : 1.0;
  const int exponent = static_cast<int>(bits >> fraction_bits & ((1U << exponent_bits) - 1U));
  const std::uint32_t fraction = bits & ((1U << fraction_bits) - 1U);
  const int top = (1 << exponent_bits) - 1;
  if (has_infinity && exponent == top) return fraction != 0 ? NAN : sign * INFINITY;
  if (!has_infinity && exponent == top && fraction == (1U << fraction_bits) - 1U) return NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1U << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

bool same(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b); }

TEST(Scalar, WidensEveryValue) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto word = static_cast<std::uint16_t>(bits);
    ASSERT_TRUE(same(static_cast<double>(to_float(Half{word})), decode(bits, 5, 10, true))) << "fp16 " << bits;
    ASSERT_TRUE(same(static_cast<double>(to_float(BFloat16{word})), decode(bits, 8, 7, true))) << "bf16 " << bits;
  }
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    const auto byte = static_cast<std::uint8_t>(bits);
    ASSERT_TRUE(same(static_cast<double>(to_float(Float8E4M3{byte})), decode(bits, 4, 3, false))) << "e4m3 " << bits;
    ASSERT_TRUE(same(static_cast<double>(to_float(Float8E5M2{byte})), decode(bits, 5, 2, true))) << "e5m2 " << bits;
  }
}

// Every value maps to itself, and around every midpoint of neighbours rounding goes the right way, ties to even.
template <typename T, typename Narrow>
void check_rounding(int exponent_bits, int fraction_bits, const Narrow& narrow_to) {
  const std::uint32_t infinity = ((1U << exponent_bits) - 1U) << fraction_bits;
  for (std::uint32_t bits = 0; bits < infinity; ++bits) {
    const double low = decode(bits, exponent_bits, fraction_bits, true);
    // The step past the largest number is as long as the one before: rounding to infinity starts half way.
    const double high = bits + 1 == infinity ? 2 * low - decode(bits - 1, exponent_bits, fraction_bits, true)
                                             : decode(bits + 1, exponent_bits, fraction_bits, true);
    const auto middle = static_cast<float>((low + high) / 2);
    for (const std::uint32_t sign : {0U, 0x8000U}) {
      const auto at = [&](float x) { return static_cast<std::uint32_t>(narrow_to(sign != 0 ? -x : x).bits); };
      ASSERT_EQ(at(static_cast<float>(low)), bits | sign);
      if (static_cast<double>(middle) != (low + high) / 2) continue;  // float has no such midpoint
      ASSERT_EQ(at(middle), (bits % 2 == 0 ? bits : bits + 1) | sign) << "tie after " << bits;
      ASSERT_EQ(at(std::nextafter(middle, 0.0F)), bits | sign) << "below the tie after " << bits;
      ASSERT_EQ(at(std::nextafter(middle, INFINITY)), (bits + 1) | sign) << "above the tie after " << bits;
    }
  }
  ASSERT_EQ(narrow_to(INFINITY).bits, infinity);
  ASSERT_TRUE(std::isnan(to_float(narrow_to(NAN))));
}

TEST(Scalar, NarrowsToNearestEven) {
  check_rounding<Half>(5, 10, [](float x) { return to_half(x); });
  check_rounding<BFloat16>(8, 7, [](float x) { return to_bfloat16(x); });
}

template <typename T>
void check_vector() {
  constexpr int kSize = Vector<T>::kSize;
  const std::uint32_t values = sizeof(T) == 1 ? 256 : 65536;
  for (std::uint32_t bits = 0; bits < values; ++bits) {
    Vector<T> vector{};
    for (int i = 0; i < kSize; ++i) {
      T element;
      const std::uint64_t mixed =
          (bits + static_cast<std::uint32_t>(i) * 7919U) * (sizeof(T) > 2 ? 0x9e3779b97f4a7c15ULL : 1ULL);
      std::memcpy(&element, &mixed, sizeof(T));
      vector.set_element(i, element);
    }
    Compute<T> x[kSize];
    unpack(vector, x);
    for (int i = 0; i < kSize; ++i)
      ASSERT_TRUE(same(static_cast<double>(x[i]), static_cast<double>(widen(vector.element(i)))));
  }
}

TEST(Vector, UnpacksWhatItHolds) {
  check_vector<double>();
  check_vector<float>();
  check_vector<Half>();
  check_vector<BFloat16>();
  check_vector<Float8E4M3>();
  check_vector<Float8E5M2>();
  check_vector<std::int8_t>();
  check_vector<std::int16_t>();
  check_vector<std::int32_t>();
  check_vector<std::int64_t>();
  check_vector<std::uint8_t>();
}

TEST(ExpSum, OneElementOfEveryValueGivesItself) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    for (const float x :
         {to_float(Half{static_cast<std::uint16_t>(bits)}), to_float(BFloat16{static_cast<std::uint16_t>(bits)})}) {
      auto state = ExpSum<float>::start();
      ExpSum<float>::step(state, x);
      const float got = ExpBase<float>::log_of_sum(state.maximum, state.reference, state.sum);
      if (std::isnan(x)) {
        ASSERT_TRUE(std::isnan(got));
      } else if (std::isinf(x)) {
        ASSERT_EQ(got, x);
      } else {
        // The one term is ex2 of the rounding of x log2 e: 2 ulp of it stay.
        ASSERT_LE(std::fabs(got - x), 0x1p-23F * std::fabs(x) + 0x1p-21F) << x;
      }
    }
  }
}

TEST(Product, NormalizesEveryExponent) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    for (const std::uint64_t pattern :
         {static_cast<std::uint64_t>(bits) << 48, static_cast<std::uint64_t>(bits) << 48 | 1U}) {
      const double x = std::bit_cast<double>(pattern);
      const Scaled scaled = normalize({x, 0});
      if (!std::isfinite(x) || x == 0.0) {
        ASSERT_TRUE(same(scaled.mantissa, x));
      } else {
        ASSERT_GE(std::fabs(scaled.mantissa), 1.0);
        ASSERT_LT(std::fabs(scaled.mantissa), 2.0);
        ASSERT_EQ(std::ldexp(scaled.mantissa, static_cast<int>(scaled.exponent)), x);
      }
    }
  }
}

TEST(Extreme, NanWins) {
  EXPECT_TRUE(std::isnan(max_or_nan(NAN, 1.0F)));
  EXPECT_TRUE(std::isnan(max_or_nan(1.0F, NAN)));
  EXPECT_TRUE(std::isnan(min_or_nan(-INFINITY, NAN)));
  EXPECT_EQ(max_or_nan(-INFINITY, -1.0F), -1.0F);
}

}  // namespace
}  // namespace tensorlint::kernels
