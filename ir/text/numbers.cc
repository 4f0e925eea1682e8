#include "ir/text/numbers.h"

#include <algorithm>
#include <cmath>

namespace tensorlint::text {

std::optional<std::uint16_t> to_sixteen_bits(double value, int mantissa_bits) {
  const int bias = (1 << (14 - mantissa_bits)) - 1;
  const int exponent_bits = 15 - mantissa_bits;
  const auto sign = static_cast<unsigned>(std::signbit(value)) << 15;
  const unsigned infinity = ((1U << exponent_bits) - 1) << mantissa_bits;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | infinity | 1U << (mantissa_bits - 1));
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
  if (value == 0) return static_cast<std::uint16_t>(sign);
  int exponent = 0;
  std::frexp(value, &exponent);                         // |value| in [2^(exponent-1), 2^exponent)
  const int lowest = std::max(exponent - 1, 1 - bias);  // subnormals share the smallest exponent
  const double scaled = std::ldexp(std::fabs(value), mantissa_bits - lowest);
  const double floor = std::floor(scaled);
  auto units = static_cast<unsigned>(floor);
  const double rest = scaled - floor;
  if (rest > 0.5 || (rest == 0.5 && units % 2 == 1)) ++units;
  // A carry out of the mantissa moves into the exponent by itself.
  const unsigned bits = (static_cast<unsigned>(lowest + bias - 1) << mantissa_bits) + units;
  if (bits >= infinity) return std::nullopt;
  return static_cast<std::uint16_t>(sign | bits);
}

}  // namespace tensorlint::text
