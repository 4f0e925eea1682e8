#pragma once

#include <algorithm>
#include <string_view>

namespace tensorlint {

/// Takes the first line from `text`, which must not be empty, with its newline. What is returned has none; a carriage
/// return stays.
inline std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

}  // namespace tensorlint
