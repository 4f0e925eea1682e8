#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "ir/protobuf/onnx_fields.h"

namespace tensorlint::wire {

/// Appends protobuf's wire format (protobuf.dev, "Encoding") to a string.
class Encoder {
 public:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>((value & 0x7f) | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  void number(std::uint32_t field, std::int64_t value) {
    varint(std::uint64_t{field} << 3);
    varint(static_cast<std::uint64_t>(value));
  }
  void text(std::uint32_t field, std::string_view value) {
    varint(std::uint64_t{field} << 3 | 2);
    varint(value.size());
    bytes_.append(value);
  }
  void float32(std::uint32_t field, float value) {
    varint(std::uint64_t{field} << 3 | 5);
    char raw[sizeof value];
    __builtin_memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof raw);
  }
  /// A message or string of `size` bytes follows.
  void head(std::uint32_t field, std::uint64_t size) {
    varint(std::uint64_t{field} << 3 | 2);
    varint(size);
  }
  void raw(std::string_view bytes) { bytes_.append(bytes); }
  std::string_view bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace tensorlint::wire
