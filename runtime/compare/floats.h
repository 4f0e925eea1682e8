#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "ir/types/dtype.h"
#include "runtime/values/codec.h"

namespace tensorlint::compare {

/// A binary floating format: digits of the significand, exponents of its smallest normal and its largest number.
struct FloatFormat {
  int digits = 24, least_exponent = -126;
  double largest = 0x1.fffffep127;
};

/// Source: IEEE 754-2019; ONNX "Float stored in 8 bits" and "in 4 bits". Of anything else float32's.
inline FloatFormat float_format(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return {53, -1022, 0x1.fffffffffffffp1023};
    case DType::kFloat16:
      return {11, -14, 65504};
    case DType::kBFloat16:
      return {8, -126, 0x1.fep127};
    case DType::kFloat8E4M3FN:
      return {4, -6, 448};
    case DType::kFloat8E4M3FNUZ:
      return {4, -7, 240};
    case DType::kFloat8E5M2:
      return {3, -14, 57344};
    case DType::kFloat8E5M2FNUZ:
      return {3, -15, 57344};
    case DType::kFloat4E2M1:
      return {2, 0, 6};
    default:
      return {};
  }
}

/// Neither strings nor complex numbers.
inline bool is_real(DType dtype) { return runtime::is_float(dtype) || runtime::is_integer_or_bool(dtype); }

/// Distance of the format's numbers around `x`: of subnormal ones that of the smallest normal number.
inline double ulp_of(const FloatFormat& format, double x) {
  constexpr int kBias = 1023, kMantissa = 52, kInfinite = 0x7ff;  // of float64
  const auto biased = static_cast<int>(std::bit_cast<std::uint64_t>(x) >> kMantissa & kInfinite);
  if (biased == kInfinite) return 0;
  const int power = std::max(biased - kBias, format.least_exponent) - format.digits + 1;
  if (power <= -kBias) return std::ldexp(1.0, power);
  return std::bit_cast<double>(static_cast<std::uint64_t>(power + kBias) << kMantissa);
}

/// float32 numbers with 10 bits after the point, as tensor cores read them: to nearest even, to nearest away from zero
/// (cvt.rna of PTX), or cut off (what is given to them as it is).
enum class Tf32 { kEven, kAway, kCut };
inline double to_tf32(double x, Tf32 how) {
  if (!std::isfinite(x)) return x;
  auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  if (how == Tf32::kAway) bits += 0x1000U;
  if (how == Tf32::kEven) bits += 0xfffU + ((bits >> 13) & 1U);
  return static_cast<double>(std::bit_cast<float>(bits & ~0x1fffU));
}

/// Half the distance from 1 to the next number: the relative error of one rounding to nearest.
inline double roundoff_of(const FloatFormat& format) { return std::ldexp(1.0, -format.digits); }

}  // namespace tensorlint::compare
