#pragma once

#include <cstdint>
#include <span>

#include "ir/types/ids.h"

namespace tensorlint {

/// A declared dim: a number, a name, or neither.
struct DimDecl {
  std::int64_t extent = -1;  ///< as written, so a negative number other than -1 is a malformed declaration
  NameId name = NameId::kEmpty;
  bool has_extent = false;
};

enum class TypeKind : std::uint8_t { kNone, kTensor, kSparseTensor, kSequence, kOptional, kMap, kOpaque };

/// A declared type, onnx.TypeProto.
struct TypeDecl {
  TypeKind kind = TypeKind::kNone;
  std::int32_t element_code = 0;  ///< tensors: raw TensorProto.DataType code; maps: code of the key
  bool ranked = false;
  std::span<const DimDecl> dims;
  const TypeDecl* element = nullptr;  ///< sequences, optionals, maps (the value)
};

}  // namespace tensorlint
