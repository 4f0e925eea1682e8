#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tensorlint::wire {

// Field numbers of onnx.proto (IR version 14) that the writers make or look into.
inline constexpr std::uint32_t kModelIrVersion = 1, kModelProducerName = 2, kModelProducerVersion = 3, kModelGraph = 7,
                               kModelOpsetImport = 8, kModelMetadata = 14, kModelFunction = 25;
inline constexpr std::uint32_t kOpsetDomain = 1, kOpsetVersion = 2;
inline constexpr std::uint32_t kEntryKey = 1, kEntryValue = 2;
inline constexpr std::uint32_t kGraphNode = 1, kGraphName = 2, kGraphInitializer = 5, kGraphInput = 11,
                               kGraphOutput = 12, kGraphValueInfo = 13, kGraphSparseInitializer = 15;
inline constexpr std::uint32_t kFunctionName = 1, kFunctionInput = 4, kFunctionOutput = 5, kFunctionAttribute = 6,
                               kFunctionNode = 7, kFunctionOpsetImport = 9, kFunctionDomain = 10,
                               kFunctionAttributeProto = 11, kFunctionValueInfo = 12, kFunctionOverload = 13;
inline constexpr std::uint32_t kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kNodeOpType = 4, kNodeAttribute = 5,
                               kNodeDomain = 7, kNodeOverload = 8, kNodeMetadata = 9;
inline constexpr std::uint32_t kAttributeName = 1, kAttributeFloat = 2, kAttributeInt = 3, kAttributeString = 4,
                               kAttributeTensor = 5, kAttributeGraph = 6, kAttributeFloats = 7, kAttributeInts = 8,
                               kAttributeStrings = 9, kAttributeTensors = 10, kAttributeGraphs = 11,
                               kAttributeTypeProto = 14, kAttributeTypeProtos = 15, kAttributeType = 20,
                               kAttributeReference = 21, kAttributeSparseTensor = 22;
inline constexpr std::uint32_t kTensorDims = 1, kTensorDataType = 2, kTensorFloatData = 4, kTensorInt32Data = 5,
                               kTensorStringData = 6, kTensorInt64Data = 7, kTensorName = 8, kTensorRawData = 9,
                               kTensorDoubleData = 10, kTensorUint64Data = 11, kTensorExternalData = 13,
                               kTensorDataLocation = 14, kTensorMetadata = 16;
inline constexpr std::uint32_t kSparseValues = 1, kSparseIndices = 2, kSparseDims = 3;
inline constexpr std::uint32_t kValueInfoName = 1, kValueInfoType = 2, kValueInfoMetadata = 4;
inline constexpr std::uint32_t kTypeTensor = 1, kTypeSequence = 4, kTypeMap = 5, kTypeOpaque = 7, kTypeSparseTensor = 8,
                               kTypeOptional = 9;
inline constexpr std::uint32_t kTensorTypeElement = 1, kTensorTypeShape = 2, kContainerElement = 1, kMapKey = 1,
                               kMapValue = 2;
inline constexpr std::uint32_t kShapeDim = 1, kDimValue = 1, kDimParam = 2;

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
