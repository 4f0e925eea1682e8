// Every instruction of instructions.h, and the conversions of whole vectors over them, run inside a kernel: on the
// emulator the model, on a GPU the instruction itself. Against the definitions, over every value of the small types.

#include "kernels/common/instructions.h"

#include <algorithm>
#include <bit>

#include "kernels/common/divisor.h"
#include "kernels/common/launch.h"
#include "kernels/common/vector.h"
#include "tests/kernels/testing.h"

namespace tensorlint::kernels {
namespace {

using testing::Access;
using testing::Buffer;

struct Evaluation {
  std::uint32_t* results = nullptr;
  std::uint32_t count = 0;
};

/// results[i] = Op::at(i)
template <typename Op>
TL_KERNEL void evaluate(const Evaluation p) {
  const std::uint32_t step = blocks_in_grid() * threads_per_block();
  for (std::uint32_t i = block_in_grid() * threads_per_block() + thread_in_block(); i < p.count; i += step)
    store_global(p.results + i, Op::at(i));
}

template <typename Op>
std::vector<std::uint32_t> all_of(std::uint32_t count) {
  Buffer<std::uint32_t> results(count, Access::kWriteFirst, "results");
  testing::use({});
  EXPECT_EQ(launch(&evaluate<Op>, {4, 64, 1, 0}, nullptr, Evaluation{results.data(), count}), Status::kOk);
  EXPECT_TRUE(testing::clean());
  return std::vector<std::uint32_t>(results.data(), results.data() + count);
}

// Sign, exponent and fraction of a small format, from its description alone.
double decode(std::uint32_t bits, int exponent_bits, int fraction_bits, bool has_infinity) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = (bits >> (exponent_bits + fraction_bits) & 1U) != 0 ? -1.0 : 1.0;
  const int exponent = static_cast<int>(bits >> fraction_bits & ((1U << exponent_bits) - 1U));
  const std::uint32_t fraction = bits & ((1U << fraction_bits) - 1U);
  const int top = (1 << exponent_bits) - 1;
  if (has_infinity && exponent == top) return fraction != 0 ? NAN : sign * INFINITY;
  if (!has_infinity && exponent == top && fraction == (1U << fraction_bits) - 1U) return NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1U << fraction_bits) + fraction, exponent - bias - fraction_bits);
}
template <typename T>
double decode(std::uint32_t bits) {
  if constexpr (std::is_same_v<T, Half>) return decode(bits, 5, 10, true);
  if constexpr (std::is_same_v<T, BFloat16>) return decode(bits, 8, 7, true);
  if constexpr (std::is_same_v<T, Float8E4M3>) return decode(bits, 4, 3, false);
  if constexpr (std::is_same_v<T, Float8E5M2>) return decode(bits, 5, 2, true);
}

bool same(float got, double want) {
  if (std::isnan(want)) return std::isnan(got);
  return static_cast<double>(got) == want && std::signbit(got) == std::signbit(want);
}

template <typename T>
constexpr std::uint32_t kValues = sizeof(T) == 1 ? 256 : 65536;

/// The pattern at place `k` of the vector that starts at `first`: neighbours differ in every byte.
template <typename T>
TL_HOST_DEVICE std::uint32_t pattern_at(std::uint32_t first, int k) {
  return (first + static_cast<std::uint32_t>(k) * 0x6b3dU) % kValues<T>;
}
template <typename T>
TL_HOST_DEVICE Vector<T> vector_from(std::uint32_t first) {
  Vector<T> vector{};
  for (int k = 0; k < Vector<T>::kSize; ++k) {
    if constexpr (sizeof(T) == 1) vector.set_element(k, T{static_cast<std::uint8_t>(pattern_at<T>(first, k))});
    if constexpr (sizeof(T) == 2) vector.set_element(k, T{static_cast<std::uint16_t>(pattern_at<T>(first, k))});
  }
  return vector;
}

template <typename T>
struct UnpackVector {
  static TL_HOST_DEVICE std::uint32_t at(std::uint32_t i) {
    constexpr std::uint32_t kSize = static_cast<std::uint32_t>(Vector<T>::kSize);
    float x[Vector<T>::kSize];
    unpack(vector_from<T>(i / kSize), x);
    return bit_cast<std::uint32_t>(x[i % kSize]);
  }
};

template <typename T>
void check_unpacking() {
  const auto size = static_cast<std::uint32_t>(Vector<T>::kSize);
  const std::vector<std::uint32_t> got = all_of<UnpackVector<T>>(kValues<T> * size);
  for (std::uint32_t i = 0; i < got.size(); ++i) {
    const std::uint32_t bits = pattern_at<T>(i / size, static_cast<int>(i % size));
    ASSERT_TRUE(same(std::bit_cast<float>(got[i]), decode<T>(bits))) << bits << " at place " << i % size;
  }
}

TEST(Instructions, UnpackEveryValueAtEveryPlace) {
  check_unpacking<Half>();
  check_unpacking<BFloat16>();
  check_unpacking<Float8E4M3>();
  check_unpacking<Float8E5M2>();
}

/// Values of float near those of T and half way between them, and any others.
template <typename T>
TL_HOST_DEVICE float between(std::uint32_t i) {
  constexpr int kDropped = std::is_same_v<T, BFloat16> ? 16 : 13;
  const std::uint32_t hash = i * 0x9e3779b1U;
  const std::uint32_t exact = hash & ~((1U << kDropped) - 1U);
  const std::uint32_t half = 1U << (kDropped - 1);
  const std::uint32_t rests[8] = {0, 1, half - 1, half, half + 1, (1U << kDropped) - 1, hash >> 7, half};
  std::uint32_t bits = exact | (rests[i % 8] & ((1U << kDropped) - 1U));
  // Half of them in the range of fp16, its subnormals included.
  if (i % 2 == 1) bits = (bits & 0x8fffffffU) | 0x30000000U;
  return bit_cast<float>(bits);
}

template <typename T>
struct PackVector {
  static TL_HOST_DEVICE std::uint32_t at(std::uint32_t i) {
    float x[8];
    for (std::uint32_t k = 0; k < 8; ++k) x[k] = between<T>(i / 8 * 8 + k);
    const Vector<T> vector = pack<T>(x);
    return vector.words[i % 8 / 2] >> (i % 2 * 16) & 0xffffU;
  }
};

// To nearest, ties to even, by the distances to both neighbours.
template <typename T>
bool rounds_to(float x, std::uint32_t bits) {
  const double got = decode<T>(bits);
  if (std::isnan(x)) return std::isnan(got);
  if (std::isinf(x)) return got == static_cast<double>(x);
  if (std::isnan(got) || std::signbit(got) != std::signbit(x)) return false;
  const std::uint32_t magnitude = bits & 0x7fffU;
  const std::uint32_t infinity = std::is_same_v<T, BFloat16> ? 0x7f80U : 0x7c00U;
  const auto value = [&](std::uint32_t m) {  // the step past the largest number is as long as the one before
    return m == infinity ? 2 * decode<T>(infinity - 1) - decode<T>(infinity - 2) : decode<T>(m);
  };
  const double size = std::fabs(static_cast<double>(x)), here = value(magnitude);
  const bool even = magnitude % 2 == 0;
  if (magnitude > 0) {
    const double middle = (value(magnitude - 1) + here) / 2;
    if (size < middle || (size == middle && !even)) return false;
  }
  if (magnitude < infinity) {
    const double middle = (here + value(magnitude + 1)) / 2;
    if (size > middle || (size == middle && !even)) return false;
  }
  return true;
}

template <typename T>
void check_packing() {
  const std::vector<std::uint32_t> got = all_of<PackVector<T>>(1 << 18);
  for (std::uint32_t i = 0; i < got.size(); ++i)
    ASSERT_TRUE(rounds_to<T>(between<T>(i), got[i])) << between<T>(i) << " became " << got[i] << " at place " << i % 8;
}

TEST(Instructions, PackToNearestEvenAtEveryPlace) {
  check_packing<Half>();
  check_packing<BFloat16>();
}

template <typename T>
struct Largest {
  static TL_HOST_DEVICE std::uint32_t at(std::uint32_t i) {
    const Vector<T> vectors[2] = {vector_from<T>(i), vector_from<T>(i * 31 + 7)};
    return bit_cast<std::uint32_t>(largest_of(vectors, 2, -bit_cast<float>(0x7f800000U)));
  }
};

template <typename T>
void check_largest() {
  const std::vector<std::uint32_t> got = all_of<Largest<T>>(65536);
  for (std::uint32_t i = 0; i < got.size(); ++i) {
    double want = -INFINITY;
    for (const std::uint32_t first : {i, i * 31 + 7}) {
      for (int k = 0; k < Vector<T>::kSize; ++k) {
        const double x = decode<T>(pattern_at<T>(first, k));
        if (!std::isnan(x)) want = std::max(want, x);
      }
    }
    ASSERT_EQ(static_cast<double>(std::bit_cast<float>(got[i])), want) << i;
  }
}

TEST(Instructions, LargestOfVectorsIgnoresNan) {
  check_largest<Half>();
  check_largest<BFloat16>();
  check_largest<Float8E4M3>();
}

struct Exp2 {
  static TL_HOST_DEVICE float operand(std::uint32_t i) {
    if (i < 4096) return -160.0F + static_cast<float>(i) * 0.0625F;
    return bit_cast<float>(i * 0x9e3779b1U);
  }
  static TL_HOST_DEVICE std::uint32_t at(std::uint32_t i) { return bit_cast<std::uint32_t>(exp2_fast(operand(i))); }
};

TEST(Instructions, Exp2IsWithinTwoUlpAndFlushes) {
  const std::vector<std::uint32_t> got = all_of<Exp2>(1 << 17);
  int flushed = 0;
  for (std::uint32_t i = 0; i < got.size(); ++i) {
    const float x = Exp2::operand(i), y = std::bit_cast<float>(got[i]);
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(y));
      continue;
    }
    const double want = std::exp2(static_cast<double>(x));
    if (want > 0x1.fffffep127 * (1 + 0x1p-22)) {
      ASSERT_TRUE(std::isinf(y)) << x;
    } else if (want < 0x1p-126 * (1 - 0x1p-22)) {
      ASSERT_EQ(y, 0.0F) << x;
      ++flushed;
    } else if (y != 0.0F && !std::isinf(y)) {
      ASSERT_LE(std::fabs(static_cast<double>(y) - want), want * 0x1.8p-22) << x;
    }
  }
  EXPECT_GT(flushed, 100);
  EXPECT_EQ(std::bit_cast<float>(all_of<Exp2>(2561)[2560]), 1.0F);  // 2^0
}

struct Divide {
  static TL_HOST_DEVICE float a(std::uint32_t i) {
    return bit_cast<float>(0x3f800000U | (i * 0x9e3779b1U & 0x7fffffU));
  }
  static TL_HOST_DEVICE float b(std::uint32_t i) {
    if (i % 16 == 0) return bit_cast<float>(0x7e800001U + i);  // above 2^126
    return bit_cast<float>((i * 0x85ebca6bU & 0x007fffffU) | (1 + i % 252) << 23);
  }
  static TL_HOST_DEVICE std::uint32_t at(std::uint32_t i) { return bit_cast<std::uint32_t>(divide_fast(a(i), b(i))); }
};

TEST(Instructions, DivisionIsWithinTwoUlpBelowItsLimit) {
  const std::vector<std::uint32_t> got = all_of<Divide>(1 << 15);
  for (std::uint32_t i = 0; i < got.size(); ++i) {
    const double want = static_cast<double>(Divide::a(i)) / static_cast<double>(Divide::b(i));
    const double y = static_cast<double>(std::bit_cast<float>(got[i]));
    if (i % 16 == 0) {
      ASSERT_EQ(y, 0.0) << i;
    } else {
      ASSERT_LE(std::fabs(y - want), want * 0x1.8p-22 + 0x1p-126) << Divide::a(i) << " / " << Divide::b(i);
    }
  }
}

template <bool kLargest>
struct ExtremeOrNan {
  static TL_HOST_DEVICE float operand(std::uint32_t i) {
    const std::uint32_t bits[8] = {0, 0x3f800000U, 0xbf800000U, 0x7f800000U, 0xff800000U, 0x7fc00000U, 1, 0x7f7fffffU};
    return bit_cast<float>(bits[i % 8]);
  }
  static TL_HOST_DEVICE std::uint32_t at(std::uint32_t i) {
    const float a = operand(i), b = operand(i / 8);
    return bit_cast<std::uint32_t>(kLargest ? max_or_nan(a, b) : min_or_nan(a, b));
  }
};

TEST(Instructions, NanWinsInMaxAndMin) {
  const std::vector<std::uint32_t> larger = all_of<ExtremeOrNan<true>>(64), smaller = all_of<ExtremeOrNan<false>>(64);
  for (std::uint32_t i = 0; i < 64; ++i) {
    const float a = ExtremeOrNan<true>::operand(i), b = ExtremeOrNan<true>::operand(i / 8);
    const bool nan = std::isnan(a) || std::isnan(b);
    ASSERT_TRUE(same(std::bit_cast<float>(larger[i]), static_cast<double>(nan ? NAN : std::max(a, b)))) << i;
    ASSERT_TRUE(same(std::bit_cast<float>(smaller[i]), static_cast<double>(nan ? NAN : std::min(a, b)))) << i;
  }
}

struct Quotient {
  static TL_HOST_DEVICE std::int64_t dividend(std::uint32_t i) {
    return static_cast<std::int64_t>((i * 0x9e3779b97f4a7c15ULL) >> (1 + i % 40));
  }
  static TL_HOST_DEVICE std::uint32_t at(std::uint32_t i) {
    // 1000003: its reciprocal is Divisor::of's, which is host code.
    Divisor divisor;
    divisor.value = 1000003;
    divisor.magic = 0x8637a2a24e5ace35ULL;
    divisor.shift = 19;
    return static_cast<std::uint32_t>(divisor.quotient(dividend(i)) & 0xffffffff);
  }
};

TEST(Instructions, QuotientsByAFixedDivisor) {
  const Divisor divisor = Divisor::of(1000003);
  const std::vector<std::uint32_t> got = all_of<Quotient>(1 << 15);
  ASSERT_EQ(divisor.shift, 19);
  ASSERT_EQ(divisor.magic, 0x8637a2a24e5ace35ULL) << std::hex << divisor.magic;
  for (std::uint32_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], static_cast<std::uint32_t>(Quotient::dividend(i) / 1000003 & 0xffffffff)) << i;
}

}  // namespace
}  // namespace tensorlint::kernels
