#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace tensorlint {

/// ASCII letters alone change, whatever the locale is.
constexpr char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string lower_case(std::string_view text) {
  std::string lowered(text);
  std::ranges::transform(lowered, lowered.begin(), [](char c) { return lower_case(c); });
  return lowered;
}

}  // namespace tensorlint
