#pragma once

// Element types as they lie in memory, and their conversions, over the instructions of instructions.h; the tests
// compare them bit for bit over every fp16, bf16 and fp8 value.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/common/instructions.h"

namespace tensorlint::kernels {

/// Numbers are part of the ABI of this folder.
enum class Dtype : int {
  kFloat64 = 0,
  kFloat32 = 1,
  kFloat16 = 2,
  kBFloat16 = 3,
  kFloat8E4M3 = 4,  // finite only: no infinity, NaN is 0x7f and 0xff
  kFloat8E5M2 = 5,
  kInt8 = 6,
  kInt16 = 7,
  kInt32 = 8,
  kInt64 = 9,
  kUInt8 = 10,
  kBool = 11,  // one byte; any nonzero is true
};
constexpr int kDtypeCount = 12;

constexpr std::size_t size_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat64:
    case Dtype::kInt64:
      return 8;
    case Dtype::kFloat32:
    case Dtype::kInt32:
      return 4;
    case Dtype::kFloat16:
    case Dtype::kBFloat16:
    case Dtype::kInt16:
      return 2;
    default:
      return 1;
  }
}

struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};
struct Float8E4M3 {
  std::uint8_t bits;
};
struct Float8E5M2 {
  std::uint8_t bits;
};

TL_HOST_DEVICE float to_float(Half h) { return instruction::f32_from_f16(h.bits); }

TL_HOST_DEVICE float to_float(BFloat16 b) { return bit_cast<float>(static_cast<std::uint32_t>(b.bits) << 16); }

TL_HOST_DEVICE float to_float(Float8E5M2 f) { return to_float(Half{static_cast<std::uint16_t>(f.bits << 8)}); }

TL_HOST_DEVICE float to_float(Float8E4M3 f) { return instruction::f32_from_e4m3(f.bits); }

/// Round to nearest, ties to even; NaN stays NaN.
TL_HOST_DEVICE Half to_half(float x) { return {instruction::f16_from_f32(x)}; }
TL_HOST_DEVICE BFloat16 to_bfloat16(float x) { return {instruction::bf16_from_f32(x)}; }

/// What an element type computes in, and its identity.
template <typename T>
struct Traits;

template <>
struct Traits<double> {
  using Compute = double;
  static constexpr Dtype kDtype = Dtype::kFloat64;
};
template <>
struct Traits<float> {
  using Compute = float;
  static constexpr Dtype kDtype = Dtype::kFloat32;
};
template <>
struct Traits<Half> {
  using Compute = float;
  static constexpr Dtype kDtype = Dtype::kFloat16;
};
template <>
struct Traits<BFloat16> {
  using Compute = float;
  static constexpr Dtype kDtype = Dtype::kBFloat16;
};
template <>
struct Traits<Float8E4M3> {
  using Compute = float;
  static constexpr Dtype kDtype = Dtype::kFloat8E4M3;
};
template <>
struct Traits<Float8E5M2> {
  using Compute = float;
  static constexpr Dtype kDtype = Dtype::kFloat8E5M2;
};
template <>
struct Traits<std::int8_t> {
  using Compute = std::int32_t;
  static constexpr Dtype kDtype = Dtype::kInt8;
};
template <>
struct Traits<std::int16_t> {
  using Compute = std::int32_t;
  static constexpr Dtype kDtype = Dtype::kInt16;
};
template <>
struct Traits<std::int32_t> {
  using Compute = std::int32_t;
  static constexpr Dtype kDtype = Dtype::kInt32;
};
template <>
struct Traits<std::int64_t> {
  using Compute = std::int64_t;
  static constexpr Dtype kDtype = Dtype::kInt64;
};
template <>
struct Traits<std::uint8_t> {
  using Compute = std::int32_t;
  static constexpr Dtype kDtype = Dtype::kUInt8;
};

// Raw words, for accumulators that only look at bits.
template <>
struct Traits<std::uint16_t> {
  using Compute = std::uint32_t;
};
template <>
struct Traits<std::uint32_t> {
  using Compute = std::uint32_t;
};
template <>
struct Traits<std::uint64_t> {
  using Compute = std::uint64_t;
};

template <typename T>
using Compute = typename Traits<T>::Compute;

template <typename T>
TL_HOST_DEVICE Compute<T> widen(T x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<Compute<T>>(x);
  } else {
    return to_float(x);
  }
}

/// Rounds a computed value to an element that losses write (float64, float32, fp16, bf16).
template <typename T>
TL_HOST_DEVICE T narrow(Compute<T> x) {
  if constexpr (std::is_same_v<T, Half>) {
    return to_half(x);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(x);
  } else {
    return x;
  }
}

template <typename C>
struct Limits {
  static constexpr C kLargest = std::numeric_limits<C>::max();
  static constexpr C kLowest = std::numeric_limits<C>::lowest();
};
template <>
struct Limits<float> {
  static constexpr float kLargest = std::numeric_limits<float>::infinity();
  static constexpr float kLowest = -std::numeric_limits<float>::infinity();
};
template <>
struct Limits<double> {
  static constexpr double kLargest = std::numeric_limits<double>::infinity();
  static constexpr double kLowest = -std::numeric_limits<double>::infinity();
};

template <typename C>
TL_HOST_DEVICE bool is_nan(C x) {
  if constexpr (std::is_floating_point_v<C>) {
    return x != x;
  } else {
    (void)x;
    return false;
  }
}

template <typename C>
TL_HOST_DEVICE C not_a_number() {
  if constexpr (sizeof(C) == 4) return bit_cast<C>(0x7fc00000U);
  if constexpr (sizeof(C) == 8) return bit_cast<C>(std::uint64_t{0x7ff8} << 48);
}

/// The larger; NaN where either is NaN.
template <typename C>
TL_HOST_DEVICE C max_or_nan(C a, C b) {
  if constexpr (std::is_same_v<C, float>) return instruction::max_nan_f32(a, b);
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  return a > b ? a : b;
}
template <typename C>
TL_HOST_DEVICE C min_or_nan(C a, C b) {
  if constexpr (std::is_same_v<C, float>) return instruction::min_nan_f32(a, b);
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  return a < b ? a : b;
}

/// The larger; the other where one is NaN.
TL_HOST_DEVICE float max_number(float a, float b) { return fmaxf(a, b); }
TL_HOST_DEVICE double max_number(double a, double b) { return fmax(a, b); }

/// 2^x to 2 ulp, 0 where that is below 2^-126.
TL_HOST_DEVICE float exp2_fast(float x) { return instruction::exp2_approximate(x); }

/// a / b to 2 ulp for |b| in [2^-126, 2^126]: the exact division is a call.
TL_HOST_DEVICE float divide_fast(float a, float b) { return instruction::divide_approximate(a, b); }
TL_HOST_DEVICE double divide_fast(double a, double b) { return a / b; }

TL_HOST_DEVICE float fused_multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
TL_HOST_DEVICE double fused_multiply_add(double a, double b, double c) { return fma(a, b, c); }

}  // namespace tensorlint::kernels
