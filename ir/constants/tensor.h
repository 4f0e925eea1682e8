#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/position.h"
#include "ir/types/ids.h"

namespace tensorlint {

/// The typed fields of onnx.TensorProto that carry numbers: packed varints in int32_data, int64_data and uint64_data,
/// little-endian words in float_data and double_data.
enum class TypedField : std::uint8_t { kNone, kFloat, kInt32, kInt64, kDouble, kUint64 };

/// A constant as it stands in the file. Views point into the file's bytes or the model's arena; nothing is copied.
struct Tensor {
  NameId name = NameId::kEmpty;
  std::int32_t dtype_code = 0;  ///< raw TensorProto.DataType code, may be unknown to us
  std::span<const std::int64_t> dims;
  bool has_raw = false;
  std::string_view raw;  ///< raw_data, little endian
  /// The typed field that carries data, and its bytes.
  TypedField typed_field = TypedField::kNone;
  std::string_view typed;
  std::span<const std::string_view> strings;  ///< string_data
  bool external = false;
  std::string_view location;                  ///< external: path as written
  std::string_view offset_text, length_text;  ///< external: as written, empty when not given
  Position position;
  std::uint32_t byte_length = 0;  ///< of the TensorProto in a binary file; 0 in text

  /// Number of elements that dims claim; nullopt on a negative dim or overflow.
  std::optional<std::uint64_t> element_count() const;
  /// Up to `limit` integer (bool, signed or unsigned) elements; nullopt when there are more, when data is external,
  /// malformed or does not fit dims, or the dtype is not of these. uint64 above INT64_MAX gives nullopt.
  std::optional<std::vector<std::int64_t>> integers(std::size_t limit) const;
  /// The same for float64, float32, float16 and bfloat16 elements.
  std::optional<std::vector<double>> floats(std::size_t limit) const;
  /// The element of a tensor that has one; nullopt where neither of them gives it.
  std::optional<double> number() const;
  /// Bytes of data present inside the file; 0 for external data.
  std::uint64_t inline_bytes() const;
  /// Where its numbers begin in the file.
  const char* numbers_begin() const { return has_raw ? raw.data() : typed.data(); }
};

struct SparseTensor {
  const Tensor* values = nullptr;
  const Tensor* indices = nullptr;
  std::span<const std::int64_t> dims;
};

}  // namespace tensorlint
