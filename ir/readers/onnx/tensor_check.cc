#include "ir/readers/onnx/tensor_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/constants/weight_parts.h"

namespace tensorlint::onnx {
namespace {

std::string_view name_of(TypedField field) {
  switch (field) {
    case TypedField::kNone:
      return "no field";
    case TypedField::kFloat:
      return "float_data";
    case TypedField::kInt32:
      return "int32_data";
    case TypedField::kInt64:
      return "int64_data";
    case TypedField::kDouble:
      return "double_data";
    case TypedField::kUint64:
      return "uint64_data";
  }
  return {};
}

/// The field that typed data of a dtype belongs in (onnx.proto, TensorProto); kNone for strings, which have their own.
TypedField field_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return TypedField::kFloat;
    case DType::kFloat64:
    case DType::kComplex128:
      return TypedField::kDouble;
    case DType::kInt64:
      return TypedField::kInt64;
    case DType::kUint32:
    case DType::kUint64:
      return TypedField::kUint64;
    case DType::kString:
      return TypedField::kNone;
    default:
      return TypedField::kInt32;
  }
}

/// Entries that `count` elements take in the typed field.
std::uint64_t entries_of(DType dtype, std::uint64_t count) {
  switch (dtype) {
    case DType::kComplex64:
    case DType::kComplex128:
      return count * 2;
    case DType::kUint4:
    case DType::kInt4:
    case DType::kFloat4E2M1:
      return count / 2 + count % 2;
    case DType::kUint2:
    case DType::kInt2:
      return count / 4 + (count % 4 != 0 ? 1 : 0);
    default:
      return count;
  }
}

std::uint64_t count_varints(std::string_view packed, const FileBytes* mapping) {
  constexpr std::size_t kAtOnce = std::size_t{64} << 10;
  WeightParts parts(packed, mapping);
  std::uint64_t count = 0;
  for (std::size_t begin = 0; begin < packed.size(); begin += kAtOnce) {
    const std::string_view part = packed.substr(begin, kAtOnce);
    // A varint ends at the byte without the high bit.
    count += static_cast<std::uint64_t>(
        std::ranges::count_if(part, [](char byte) { return static_cast<signed char>(byte) >= 0; }));
    parts.read_until(part.data() + part.size());
  }
  return count;
}

std::string dims_text(const Tensor& tensor) {
  constexpr std::size_t kShown = 16;
  const auto shown = tensor.dims.first(std::min(tensor.dims.size(), kShown));
  return fmt::format("[{}{}]", fmt::join(shown, ", "), tensor.dims.size() > kShown ? ", ..." : "");
}

}  // namespace

std::optional<std::string> tensor_fault(const Tensor& tensor, std::string_view name, const FileBytes* mapping) {
  const auto label = [name] { return name.empty() ? std::string("a tensor") : fmt::format("tensor `{}`", name); };
  if (tensor.dtype_code == 0) return label() + " has no dtype";
  if (!is_known_dtype(tensor.dtype_code))
    return fmt::format("{} has the unknown dtype code {}", label(), tensor.dtype_code);
  const auto dtype = static_cast<DType>(tensor.dtype_code);
  for (const std::int64_t dim : tensor.dims)
    if (dim < 0) return fmt::format("{} has the negative dim {} in {}", label(), dim, dims_text(tensor));
  const auto count = tensor.element_count();
  // Twice the count and the bytes must fit too; 2^56 elements are past any file.
  if (!count || *count > std::uint64_t{1} << 56)
    return fmt::format("dims {} of {} overflow", dims_text(tensor), label());

  const bool has_strings = !tensor.strings.empty();
  const bool has_typed = tensor.typed_field != TypedField::kNone;
  const std::string_view field = has_strings ? "string_data" : name_of(tensor.typed_field);
  if (tensor.external) {
    if (dtype == DType::kString)
      return fmt::format("{} holds strings in external data, which ONNX does not allow", label());
    if (!tensor.raw.empty() || has_typed || has_strings)
      return fmt::format("{} has data inside the file and in external data", label());
    return std::nullopt;
  }
  if (tensor.has_raw) {
    if (has_typed || has_strings) return fmt::format("{} has two data fields: raw_data and {}", label(), field);
    if (dtype == DType::kString) return fmt::format("{} holds strings in raw_data, which ONNX does not allow", label());
    const std::uint64_t wanted = packed_bytes(dtype, *count).value_or(0);
    if (tensor.raw.size() != wanted)
      return fmt::format("{} of {} {} takes {} bytes, raw_data has {}", label(), to_text(dtype), dims_text(tensor),
                         wanted, tensor.raw.size());
    return std::nullopt;
  }
  if (has_strings && has_typed)
    return fmt::format("{} has two data fields: string_data and {}", label(), name_of(tensor.typed_field));
  if (!has_strings && !has_typed) {
    if (*count == 0) return std::nullopt;
    return fmt::format("{} of {} {} has no data", label(), to_text(dtype), dims_text(tensor));
  }
  if (has_strings != (dtype == DType::kString) || tensor.typed_field != field_of(dtype))
    return fmt::format("{} of {} has its data in {} instead of {}", label(), to_text(dtype), field,
                       dtype == DType::kString ? "string_data" : name_of(field_of(dtype)));

  std::uint64_t present = 0;
  switch (tensor.typed_field) {
    case TypedField::kNone:
      present = tensor.strings.size();
      break;
    // The reader refuses fields that end within a number.
    case TypedField::kFloat:
      present = tensor.typed.size() / 4;
      break;
    case TypedField::kDouble:
      present = tensor.typed.size() / 8;
      break;
    default:
      present = count_varints(tensor.typed, mapping);
      break;
  }
  const std::uint64_t wanted = entries_of(dtype, *count);
  if (present != wanted)
    return fmt::format("{} of {} {} takes {} entries, {} has {}", label(), to_text(dtype), dims_text(tensor), wanted,
                       field, present);
  return std::nullopt;
}

}  // namespace tensorlint::onnx
