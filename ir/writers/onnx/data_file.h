#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>

#include "ir/types/dtype.h"

namespace tensorlint {

/// An onnx.TensorProto up to its elements, `raw_bytes` as raw_data has them (little endian, types below a byte packed).
std::string tensor_head(std::string_view name, DType dtype, std::span<const std::int64_t> dims,
                        std::uint64_t raw_bytes);
/// A whole one, of strings.
std::string string_tensor_message(std::string_view name, std::span<const std::int64_t> dims,
                                  std::span<const std::pmr::string> strings);

/// An onnx.SequenceProto, or an OptionalProto, up to its elements, messages of one kind: 1 tensors, 3 sequences,
/// 5 optionals (SequenceProto.DataType; an OptionalProto's are the same).
std::string container_head(std::string_view name, std::int32_t element_kind);
/// What an element of so many bytes begins with there.
std::string element_head(std::int32_t element_kind, std::uint64_t bytes);

/// What an initializer of so many bytes begins with in an onnx.GraphProto.
std::string initializer_head(std::uint64_t bytes);
/// An onnx.ModelProto up to its graph, which ends it.
std::string model_head(std::uint64_t graph_bytes);

}  // namespace tensorlint
