#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace tensorlint::text {

/// The nearest of a decimal number, which may be too small for T; nullopt where it is too large.
template <typename T>
std::optional<T> decimal(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  if (error != std::errc::result_out_of_range) return std::nullopt;
  // Out of range means beyond infinity or below the smallest subnormal: the power of ten of the first digit tells
  // which.
  const bool negative = text.front() == '-';
  if (negative) text.remove_prefix(1);
  const std::size_t e = text.find_first_of("eE");
  const std::string_view digits = text.substr(0, e);
  std::int64_t exponent = 0;
  if (e != std::string_view::npos) {
    std::string_view power = text.substr(e + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    constexpr std::int64_t kMost = std::int64_t{1} << 40;  // more than any text has digits
    if (std::from_chars(power.data(), power.data() + power.size(), exponent).ec == std::errc::result_out_of_range)
      exponent = power.starts_with('-') ? -kMost : kMost;
    exponent = std::clamp(exponent, -kMost, kMost);
  }
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits.find_first_of("123456789");
  const auto leading = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(std::min(first, digits.size()));
  if (exponent + leading > 0) return std::nullopt;
  return negative ? -T{0} : T{0};
}

/// `value` rounded to nearest even in a format of 16 bits with that many mantissa bits: 10 for float16, 7 for bfloat16.
/// Nullopt where a finite value rounds to infinity.
std::optional<std::uint16_t> to_sixteen_bits(double value, int mantissa_bits);

}  // namespace tensorlint::text
