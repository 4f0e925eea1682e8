#pragma once

// Element types as they lie in memory, and their conversions. Device bodies use the conversion instructions; host
// bodies are written out and are compared bit for bit over every fp16, bf16 and fp8 value by the tests.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/common/device.h"

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

template <typename To, typename From>
TL_HOST_DEVICE To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

TL_HOST_DEVICE float to_float(Half h) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(h.bits));
  return result;
#else
  const std::uint32_t sign = (h.bits & 0x8000U) << 16;
  const std::uint32_t magnitude = h.bits & 0x7fffU;
  if (magnitude >= 0x7c00U) return bit_cast<float>(sign | 0x7f800000U | (magnitude & 0x3ffU) << 13);
  if (magnitude >= 0x0400U) return bit_cast<float>(sign | (magnitude + (112U << 10)) << 13);
  const float value = static_cast<float>(magnitude) * 0x1p-24F;  // subnormal: units of 2^-24, exact in float
  return bit_cast<float>(bit_cast<std::uint32_t>(value) | sign);
#endif
}

TL_HOST_DEVICE float to_float(BFloat16 b) { return bit_cast<float>(static_cast<std::uint32_t>(b.bits) << 16); }

TL_HOST_DEVICE float to_float(Float8E5M2 f) { return to_float(Half{static_cast<std::uint16_t>(f.bits << 8)}); }

TL_HOST_DEVICE float to_float(Float8E4M3 f) {
  // As fp16 bits the exponent is 8 too small; NaN has no fp16 counterpart under that shift.
  const std::uint32_t magnitude = f.bits & 0x7fU;
  const std::uint16_t half = static_cast<std::uint16_t>((f.bits & 0x80U) << 8 | magnitude << 7);
  return magnitude == 0x7fU ? bit_cast<float>(0x7fc00000U | (f.bits & 0x80U) << 24) : to_float(Half{half}) * 256.0F;
}

/// Round to nearest, ties to even; NaN stays NaN.
TL_HOST_DEVICE Half to_half(float x) {
#if defined(__CUDA_ARCH__)
  Half result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
#else
  const std::uint32_t bits = bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return {static_cast<std::uint16_t>(0x7fffU)};
  if (magnitude >= 0x477ff000U)
    return {static_cast<std::uint16_t>(sign | 0x7c00U)};  // 65520 and above round to infinity
  if (magnitude < 0x38800000U) {  // below 2^-14: adding 0.5 makes the float's own rounding do it in units of 2^-24
    const float shifted = bit_cast<float>(magnitude) + 0.5F;
    return {static_cast<std::uint16_t>(sign | (bit_cast<std::uint32_t>(shifted) - bit_cast<std::uint32_t>(0.5F)))};
  }
  const std::uint32_t rounded = magnitude + 0xfffU + (magnitude >> 13 & 1U);
  return {static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112U << 10)))};
#endif
}

TL_HOST_DEVICE BFloat16 to_bfloat16(float x) {
#if defined(__CUDA_ARCH__)
  BFloat16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
#else
  const std::uint32_t bits = bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<std::uint16_t>(0x7fffU)};
  return {static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16)};
#endif
}

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
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<C, float>) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
  }
#endif
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  return a > b ? a : b;
}
template <typename C>
TL_HOST_DEVICE C min_or_nan(C a, C b) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<C, float>) {
    float result;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
  }
#endif
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  return a < b ? a : b;
}

/// The larger; the other where one is NaN.
TL_HOST_DEVICE float max_number(float a, float b) { return fmaxf(a, b); }
TL_HOST_DEVICE double max_number(double a, double b) { return fmax(a, b); }

/// 2^x to about 2 ulp (ex2.approx on the device: 2 ulp by the PTX manual; exact for -inf, +inf, NaN).
TL_HOST_DEVICE float exp2_fast(float x) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return std::exp2(x);
#endif
}

/// a / b to 2 ulp for |b| in [2^-126, 2^126] on the device: the exact division is a call.
TL_HOST_DEVICE float divide_fast(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fdividef(a, b);
#else
  return a / b;
#endif
}
TL_HOST_DEVICE double divide_fast(double a, double b) { return a / b; }

TL_HOST_DEVICE float fused_multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
TL_HOST_DEVICE double fused_multiply_add(double a, double b, double c) { return fma(a, b, c); }

}  // namespace tensorlint::kernels
