#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tensorlint::wire {

// Field numbers of onnx.proto (IR version 14) that the writer makes or looks into.
inline constexpr std::uint32_t kModelOpsetImport = 8, kOpsetDomain = 1, kOpsetVersion = 2, kFunctionOpsetImport = 9;
inline constexpr std::uint32_t kModelMetadata = 14, kEntryKey = 1, kEntryValue = 2;
inline constexpr std::uint32_t kGraphNode = 1, kGraphInitializer = 5, kFunctionNode = 7;
inline constexpr std::uint32_t kGraphValueInfo = 13, kFunctionValueInfo = 12, kValueInfoName = 1;
inline constexpr std::uint32_t kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kNodeOpType = 4, kNodeAttribute = 5, kNodeDomain = 7;
inline constexpr std::uint32_t kAttributeName = 1, kAttributeFloat = 2, kAttributeInt = 3, kAttributeString = 4, kAttributeInts = 8,
                               kAttributeType = 20;
inline constexpr std::uint32_t kTensorDims = 1, kTensorDataType = 2, kTensorInt64Data = 7, kTensorName = 8;

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
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace tensorlint::wire
