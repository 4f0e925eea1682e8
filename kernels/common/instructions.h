#pragma once

// The instructions that kernels use beyond C++, one function each: PTX on the device, elsewhere a model of what the PTX
// manual says about it. Everything above is one text for both, so that operand orders, byte selectors and roundings run
// in the emulator's tests. Approximate instructions are modelled with the error that they may have: off by up to 2
// units in the last place, as the operands' bits choose, and flushing to zero where they do.

#include <cmath>
#include <cstdint>

#include "kernels/common/device.h"

namespace tensorlint::kernels {

template <typename To, typename From>
TL_HOST_DEVICE To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

namespace model {

TL_HOST_DEVICE float f32_from_f16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7fffU;
  if (magnitude >= 0x7c00U) return bit_cast<float>(sign | 0x7f800000U | (magnitude & 0x3ffU) << 13);
  if (magnitude >= 0x0400U) return bit_cast<float>(sign | (magnitude + (112U << 10)) << 13);
  const float value = static_cast<float>(magnitude) * 0x1p-24F;  // subnormal: units of 2^-24, exact in float
  return bit_cast<float>(bit_cast<std::uint32_t>(value) | sign);
}

TL_HOST_DEVICE std::uint16_t f16_from_f32(float x) {
  const std::uint32_t bits = bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return 0x7fffU;
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // from 65520 on infinity
  if (magnitude < 0x38800000U) {  // below 2^-14: adding 0.5 makes the float's own rounding do it in units of 2^-24
    const float shifted = bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (bit_cast<std::uint32_t>(shifted) - bit_cast<std::uint32_t>(0.5F)));
  }
  const std::uint32_t rounded = magnitude + 0xfffU + (magnitude >> 13 & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112U << 10)));
}

TL_HOST_DEVICE std::uint16_t bf16_from_f32(float x) {
  const std::uint32_t bits = bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return 0x7fffU;
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

/// Every e4m3 value is an fp16 value.
TL_HOST_DEVICE std::uint16_t f16_from_e4m3(std::uint32_t byte) {
  const std::uint32_t sign = (byte & 0x80U) << 8;
  const std::uint32_t magnitude = byte & 0x7fU;
  if (magnitude == 0x7fU) return 0x7fffU;
  // As fp16 bits the exponent is 8 too small.
  return static_cast<std::uint16_t>(sign |
                                    f16_from_f32(f32_from_f16(static_cast<std::uint16_t>(magnitude << 7)) * 256));
}

TL_HOST_DEVICE float f32_from_bf16(std::uint32_t bits) { return bit_cast<float>(bits << 16); }

/// max of PTX without .NaN: the other where one is NaN, the canonical NaN of the type where both are; +0 above -0.
template <typename Widen>
TL_HOST_DEVICE std::uint32_t larger_of_16(std::uint32_t a, std::uint32_t b, const Widen& widen_bits) {
  const float x = widen_bits(static_cast<std::uint16_t>(a));
  const float y = widen_bits(static_cast<std::uint16_t>(b));
  if (x != x) return y != y ? 0x7fffU : b;
  if (y != y) return a;
  if (x == y) return (a & 0x8000U) != 0 ? b : a;
  return x > y ? a : b;
}
template <typename Widen>
TL_HOST_DEVICE std::uint32_t larger_of_pairs(std::uint32_t a, std::uint32_t b, const Widen& widen_bits) {
  return larger_of_16(a & 0xffffU, b & 0xffffU, widen_bits) | larger_of_16(a >> 16, b >> 16, widen_bits) << 16;
}

/// A finite positive or negative result, up to 2 units in the last place away from `exact`.
TL_HOST_DEVICE float approximately(float exact, std::uint32_t operands) {
  const std::uint32_t bits = bit_cast<std::uint32_t>(exact);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude < 3 || magnitude >= 0x7f7ffffdU) return exact;  // zero, infinite, NaN, or next to them
  const std::uint32_t hash = (operands * 0x9e3779b1U) >> 16;
  return bit_cast<float>(bits + hash % 5 - 2);
}

TL_HOST_DEVICE float flushed(float x) { return std::fabs(x) < 0x1p-126F ? x * 0.0F : x; }

}  // namespace model

namespace instruction {

/// cvt.f32.f16; exact.
TL_HOST_DEVICE float f32_from_f16(std::uint16_t bits) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(bits));
  return result;
#else
  return model::f32_from_f16(bits);
#endif
}

/// cvt.rn.f16.f32: to nearest, ties to even; NaN becomes 0x7fff.
TL_HOST_DEVICE std::uint16_t f16_from_f32(float x) {
#if defined(__CUDA_ARCH__)
  std::uint16_t result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(x));
  return result;
#else
  return model::f16_from_f32(x);
#endif
}

/// cvt.rn.bf16.f32; likewise.
TL_HOST_DEVICE std::uint16_t bf16_from_f32(float x) {
#if defined(__CUDA_ARCH__)
  std::uint16_t result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(x));
  return result;
#else
  return model::bf16_from_f32(x);
#endif
}

/// cvt.rn.f16x2.f32: the first operand goes to the upper half.
TL_HOST_DEVICE std::uint32_t f16x2_from_f32(float upper, float lower) {
#if defined(__CUDA_ARCH__)
  std::uint32_t result;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(upper), "f"(lower));
  return result;
#else
  return static_cast<std::uint32_t>(model::f16_from_f32(upper)) << 16 | model::f16_from_f32(lower);
#endif
}

/// cvt.rn.bf16x2.f32; likewise.
TL_HOST_DEVICE std::uint32_t bf16x2_from_f32(float upper, float lower) {
#if defined(__CUDA_ARCH__)
  std::uint32_t result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(upper), "f"(lower));
  return result;
#else
  return static_cast<std::uint32_t>(model::bf16_from_f32(upper)) << 16 | model::bf16_from_f32(lower);
#endif
}

/// Both halves, widened.
TL_HOST_DEVICE void f32x2_from_f16x2(std::uint32_t pair, float& lower, float& upper) {
  lower = f32_from_f16(static_cast<std::uint16_t>(pair));
  upper = f32_from_f16(static_cast<std::uint16_t>(pair >> 16));
}

/// By arithmetic: no instruction takes a single byte.
TL_HOST_DEVICE float f32_from_e4m3(std::uint32_t byte) {
  // As fp16 bits the exponent is 8 too small; NaN has no fp16 counterpart under that shift.
  const std::uint32_t magnitude = byte & 0x7fU;
  const auto half = static_cast<std::uint16_t>((byte & 0x80U) << 8 | magnitude << 7);
  return magnitude == 0x7fU ? bit_cast<float>(0x7fc00000U | (byte & 0x80U) << 24) : f32_from_f16(half) * 256.0F;
}

/// cvt.rn.f16x2.e4m3x2 of sm_89 on, exact, the lower byte to the lower half; before, by arithmetic.
TL_HOST_DEVICE void f32x2_from_e4m3x2(std::uint16_t pair, float& lower, float& upper) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
  lower = f32_from_e4m3(pair & 0xffU);
  upper = f32_from_e4m3(pair >> 8);
#elif defined(__CUDA_ARCH__)
  std::uint32_t halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
  f32x2_from_f16x2(halves, lower, upper);
#else
  f32x2_from_f16x2(
      static_cast<std::uint32_t>(model::f16_from_e4m3(pair >> 8)) << 16 | model::f16_from_e4m3(pair & 0xffU), lower,
      upper);
#endif
}

/// prmt.b32: byte i of the result is byte number `selector` nibble i of the eight of `b:a`, a the lower.
TL_HOST_DEVICE std::uint32_t permute_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(a, b, selector);
#else
  const std::uint64_t both = static_cast<std::uint64_t>(b) << 32 | a;
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned from = selector >> (4 * i) & 7U;
    result |= static_cast<std::uint32_t>(both >> (8 * from) & 0xffU) << (8 * i);
  }
  return result;
#endif
}

/// shf.r.wrap.b32: the lower word of `high:low` shifted right by `bits`, below 32.
TL_HOST_DEVICE std::uint32_t funnel_shift_right(std::uint32_t low, std::uint32_t high, std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __funnelshift_r(low, high, bits);
#else
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(high) << 32 | low) >> bits);
#endif
}

/// mul.rn: rounded, never contracted with an addition, so that a sum of two products is the same in either order.
TL_HOST_DEVICE float product(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
TL_HOST_DEVICE double product(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

/// max.f16x2
TL_HOST_DEVICE std::uint32_t max_f16x2(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  std::uint32_t result;
  asm("max.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
#else
  return model::larger_of_pairs(a, b, model::f32_from_f16);
#endif
}

/// max.bf16x2
TL_HOST_DEVICE std::uint32_t max_bf16x2(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  std::uint32_t result;
  asm("max.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
#else
  return model::larger_of_pairs(a, b, model::f32_from_bf16);
#endif
}

/// max.NaN.f32 and min.NaN.f32: NaN where either is.
TL_HOST_DEVICE float max_nan_f32(float a, float b) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a != a || b != b ? bit_cast<float>(0x7fffffffU) : a > b ? a : b;
#endif
}
TL_HOST_DEVICE float min_nan_f32(float a, float b) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a != a || b != b ? bit_cast<float>(0x7fffffffU) : a < b ? a : b;
#endif
}

/// ex2.approx.ftz.f32: 2 ulp; operands and results below 2^-126 count as 0; exact for zeros, infinities and NaN.
TL_HOST_DEVICE float exp2_approximate(float x) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  const float operand = model::flushed(x);
  if (operand == 0.0F) return 1.0F;
  return model::flushed(model::approximately(std::exp2(operand), bit_cast<std::uint32_t>(operand)));
#endif
}

/// __fdividef: 2 ulp for |b| in [2^-126, 2^126]; above 2^126 the result is 0, NaN for an infinite a.
TL_HOST_DEVICE float divide_approximate(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fdividef(a, b);
#else
  const float size = std::fabs(b);
  if (size > 0x1p126F && std::isfinite(b)) return std::isinf(a) ? bit_cast<float>(0x7fffffffU) : a * 0.0F;
  return model::approximately(a / b, bit_cast<std::uint32_t>(a) ^ bit_cast<std::uint32_t>(b));
#endif
}

/// mul.hi.u64
TL_HOST_DEVICE std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(a) * b >> 64);
#endif
}

}  // namespace instruction
}  // namespace tensorlint::kernels
