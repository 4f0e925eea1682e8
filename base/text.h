#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace tensorlint {

/// Of ASCII, ends of lines among them.
inline constexpr std::string_view kBlanks = " \t\n\v\f\r";

/// Without the blanks at both ends.
constexpr std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// What a regular noun ends with after the number.
template <typename Number>
constexpr std::string_view plural(Number count) {
  return count == 1 ? "" : "s";
}

/// "1 file", "2 files".
template <typename Number>
std::string counted(Number count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, plural(count));
}
/// "1 copy", "2 copies".
template <typename Number>
std::string counted(Number count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace tensorlint
