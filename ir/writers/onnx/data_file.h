#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>

#include "ir/types/dtype.h"

namespace tensorlint {

/// An onnx.TensorProto by itself. `raw`: its elements as raw_data has them (little endian, types below a byte packed).
std::string tensor_message(std::string_view name, DType dtype, std::span<const std::int64_t> dims,
                           std::string_view raw);
/// The same of strings.
std::string string_tensor_message(std::string_view name, std::span<const std::int64_t> dims,
                                  std::span<const std::pmr::string> strings);

/// An onnx.SequenceProto, or an OptionalProto, of messages of one kind: 1 tensors, 3 sequences, 5 optionals
/// (SequenceProto.DataType; an OptionalProto's are the same).
std::string container_message(std::string_view name, std::int32_t element_kind, std::span<const std::string> elements);

}  // namespace tensorlint
