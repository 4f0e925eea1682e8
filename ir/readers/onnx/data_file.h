#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph/model.h"

namespace tensorlint {

/// An onnx.TensorProto by itself, as `test_data_set_0/input_0.pb` holds one: a model whose only constant it is.
/// Errors: as of a model's bytes, and a tensor that is malformed.
Result<Model> read_tensor_message(std::string_view message, std::string path);

/// An onnx.SequenceProto or OptionalProto, taken apart: tensors are messages to give to read_tensor_message. Views of
/// the message.
struct ValueMessage {
  TypeKind kind = TypeKind::kNone;  ///< kOptional without elements: an empty one
  std::string_view tensor;          ///< kTensor
  std::vector<ValueMessage> elements;
};

/// `kind`: kTensor, kSequence or kOptional. Errors: malformed bytes, nesting deeper than 16, sparse tensors and maps,
/// elements of another kind than `elem_type` says, an optional of two values, more elements than
/// 16 MiB and 36 bytes a byte hold.
Result<ValueMessage> read_value_message(std::string_view message, TypeKind kind);

}  // namespace tensorlint
