#pragma once

#include <cstdint>

namespace tensorlint {

/// Where something stands in its file: a byte offset in a binary model, line and column (from 1) in a text.
struct Position {
  std::uint64_t offset = 0;
  std::uint32_t line = 0;  ///< 0: no line, `offset` counts
  std::uint32_t column = 0;
};

}  // namespace tensorlint
