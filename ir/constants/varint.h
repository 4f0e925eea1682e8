#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tensorlint {

/// The next varint of packed data (protobuf.dev, "Encoding"), taken from its front; nullopt at the end of the data or
/// where it is malformed.
inline std::optional<std::uint64_t> next_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80U) == 0) return value;
  }
  return std::nullopt;
}

}  // namespace tensorlint
