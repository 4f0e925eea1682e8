#include "analyzer/builder/numbers.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace tensorlint::builder {
namespace {

/// Bits of the nearest float16, ties to even; beyond its range infinity.
std::uint16_t half_bits(double value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000U : 0U);
  const double magnitude = std::fabs(value);
  if (!(magnitude < 65520.0)) return static_cast<std::uint16_t>(sign | (std::isnan(value) ? 0x7e00U : 0x7c00U));
  if (magnitude < 0x1p-14)
    return static_cast<std::uint16_t>(sign | static_cast<unsigned>(std::nearbyint(magnitude * 0x1p24)));
  const int exponent = std::ilogb(magnitude);
  const auto mantissa = static_cast<unsigned>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));  // 1024 .. 2048
  return static_cast<std::uint16_t>(sign + ((static_cast<unsigned>(exponent) + 14U) << 10) + mantissa);
}

/// Bits of the nearest bfloat16, ties to even.
std::uint16_t bfloat_bits(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

template <typename Bits>
Data of_bits(DType dtype, Bits bits) {
  std::string raw(sizeof bits, '\0');
  std::memcpy(raw.data(), &bits, sizeof bits);
  return Data::raw(dtype, {}, std::move(raw));
}

template <typename T>
std::optional<Data> of_integer(const Number& number) {
  if (number.is_integer()) {
    if (!std::in_range<T>(number.integer())) return std::nullopt;
    return Data(static_cast<T>(number.integer()));
  }
  const double value = number.real();
  // Exact for powers of two: the greatest T plus 1, which double represents.
  const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (value != std::floor(value) || value >= limit || value < (std::numeric_limits<T>::is_signed ? -limit : 0.0))
    return std::nullopt;
  return Data(static_cast<T>(value));
}

}  // namespace

std::optional<Data> scalar_of(DType dtype, Number number) {
  switch (dtype) {
    case DType::kFloat32:
      return Data(static_cast<float>(number.real()));
    case DType::kFloat64:
      return Data(number.real());
    case DType::kFloat16:
      return of_bits(dtype, half_bits(number.real()));
    case DType::kBFloat16:
      return of_bits(dtype, bfloat_bits(number.real()));
    case DType::kInt8:
      return of_integer<std::int8_t>(number);
    case DType::kInt16:
      return of_integer<std::int16_t>(number);
    case DType::kInt32:
      return of_integer<std::int32_t>(number);
    case DType::kInt64:
      return of_integer<std::int64_t>(number);
    case DType::kUint8:
      return of_integer<std::uint8_t>(number);
    case DType::kUint16:
      return of_integer<std::uint16_t>(number);
    case DType::kUint32:
      return of_integer<std::uint32_t>(number);
    case DType::kUint64:
      return of_integer<std::uint64_t>(number);
    default:
      return std::nullopt;
  }
}

}  // namespace tensorlint::builder
