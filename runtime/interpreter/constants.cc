#include "runtime/interpreter/constants.h"

#include <unistd.h>

#include <cstring>

#include <fmt/format.h>

#include "ir/constants/varint.h"
#include "ir/ops/inference.h"
#include "ir/readers/onnx/external_data.h"
#include "runtime/values/codec.h"

namespace tensorlint::runtime {
namespace {

static_assert(kMaxAxes == ops::kMaxRank);
Extents extents_of(std::span<const std::int64_t> dims) { return {dims.begin(), dims.end()}; }

/// raw_data (little endian, types below a byte packed from the low end) into the layout of memory.
void unpack(std::string_view raw, HostTensor& to) {
  const auto width = static_cast<unsigned>(bit_width(to.dtype()));
  std::uint8_t* const bytes = reinterpret_cast<std::uint8_t*>(to.mutable_raw());
  if (width >= 8) {
    if (!raw.empty()) std::memcpy(bytes, raw.data(), raw.size());
    if (to.dtype() == DType::kBool)
      for (std::size_t i = 0; i < to.size(); ++i) bytes[i] = bytes[i] != 0 ? 1 : 0;
    return;
  }
  const bool is_signed = to.dtype() == DType::kInt4 || to.dtype() == DType::kInt2;
  // Elements follow each other bit by bit, also where, as for 6 bits, they cross bytes.
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::size_t bit = i * width;
    unsigned word = static_cast<std::uint8_t>(raw[bit / 8]);
    if (bit / 8 + 1 < raw.size()) word |= static_cast<unsigned>(static_cast<std::uint8_t>(raw[bit / 8 + 1])) << 8;
    unsigned value = (word >> (bit % 8)) & ((1U << width) - 1U);
    if (is_signed && (value >> (width - 1)) != 0) value |= 0xffU << width;
    bytes[i] = static_cast<std::uint8_t>(value);
  }
}

bool lies_as_in_memory(DType dtype, const char* data) {
  return bit_width(dtype) >= 8 && dtype != DType::kBool &&
         reinterpret_cast<std::uintptr_t>(data) % element_bytes(dtype) == 0;
}

std::uint64_t taken_varint(std::string_view& bytes) {
  if (const auto value = next_varint(bytes)) return *value;
  throw RunFault{"the data of a constant ends within a number"};
}

/// int32_data, int64_data or uint64_data: an element a number, but for types below a byte, which share one as in
/// raw_data, and complex and floating types, whose bits are the number.
void unpack_numbers(std::string_view typed, HostTensor& to) {
  const auto width = static_cast<unsigned>(bit_width(to.dtype()));
  if (width < 8) {
    std::string raw;
    while (!typed.empty()) raw += static_cast<char>(taken_varint(typed));
    if (raw.size() < (to.size() * width + 7) / 8) throw RunFault{"the data of a constant is too short"};
    return unpack(raw, to);
  }
  std::uint8_t* const bytes = reinterpret_cast<std::uint8_t*>(to.mutable_raw());
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (typed.empty()) throw RunFault{"the data of a constant is too short"};
    std::uint64_t value = taken_varint(typed);
    if (to.dtype() == DType::kBool) value = value != 0 ? 1 : 0;
    std::memcpy(bytes + i * (width / 8), &value, width / 8);
  }
}

/// float_data and double_data have the parts of floating numbers as they lie in memory; the other fields integers,
/// among them the bits of narrower numbers.
bool holds(TypedField field, DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return field == TypedField::kFloat;
    case DType::kFloat64:
    case DType::kComplex128:
      return field == TypedField::kDouble;
    default:
      return field != TypedField::kFloat && field != TypedField::kDouble;
  }
}

std::string read_external(const Tensor& tensor, const std::string& model_path, std::uint64_t expected) {
  Result<ExternalFile> file = open_external_file(model_path, tensor.location);
  if (!file) throw RunFault{file.error().message};
  const Result<ExternalRange> range = external_range(tensor, file->size());
  if (!range) throw RunFault{range.error().message};
  if (range->length != expected) throw RunFault{"external data has another length than its tensor"};
  std::string bytes(range->length, '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count =
        ::pread(file->descriptor(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(range->offset + done));
    if (count <= 0) throw RunFault{fmt::format("external data `{}` cannot be read", tensor.location)};
    done += static_cast<std::size_t>(count);
  }
  return bytes;
}

}  // namespace

HostTensor load_constant(const Tensor& tensor, const std::string& model_path, const std::shared_ptr<const void>& owner,
                         Memory& memory) {
  if (!is_known_dtype(tensor.dtype_code))
    throw RunFault{fmt::format("a constant has the unknown dtype {}", tensor.dtype_code)};
  const auto dtype = static_cast<DType>(tensor.dtype_code);
  const std::size_t count = element_count(tensor.dims);
  if (dtype == DType::kString) {
    if (tensor.strings.size() != count) throw RunFault{"the data of a constant does not fit its shape"};
    HostTensor result(dtype, extents_of(tensor.dims), memory);
    for (std::size_t i = 0; i < count; ++i) result.mutable_strings()[i] = tensor.strings[i];
    return result;
  }
  const auto bytes = packed_bytes(dtype, count);
  if (!bytes) throw RunFault{"a constant is too large"};
  if (tensor.external && model_path.empty()) throw RunFault{"the tensor of an attribute is external data"};
  if (tensor.external) {
    HostTensor result(dtype, extents_of(tensor.dims), memory);
    unpack(read_external(tensor, model_path, *bytes), result);
    return result;
  }
  if (tensor.has_raw) {
    if (tensor.raw.size() != *bytes) throw RunFault{"the data of a constant does not fit its shape"};
    if (lies_as_in_memory(dtype, tensor.raw.data()))
      return {dtype, extents_of(tensor.dims), reinterpret_cast<const std::byte*>(tensor.raw.data()), owner};
    HostTensor result(dtype, extents_of(tensor.dims), memory);
    unpack(tensor.raw, result);
    return result;
  }
  if (count != 0 && !holds(tensor.typed_field, dtype))
    throw RunFault{fmt::format("the data of a constant lies in a field that {} does not use", to_text(dtype))};
  HostTensor result(dtype, extents_of(tensor.dims), memory);
  if (tensor.typed_field == TypedField::kFloat || tensor.typed_field == TypedField::kDouble) {
    if (tensor.typed.size() != *bytes) throw RunFault{"the data of a constant does not fit its shape"};
    unpack(tensor.typed, result);
  } else {
    unpack_numbers(tensor.typed, result);
  }
  return result;
}

HostTensor load_constant(const SparseTensor& sparse, const std::string& model_path,
                         const std::shared_ptr<const void>& owner, Memory& memory) {
  if (sparse.values == nullptr || sparse.indices == nullptr)
    throw RunFault{"a sparse constant lacks values or indices"};
  const HostTensor values = load_constant(*sparse.values, model_path, owner, memory);
  const HostTensor indices = load_constant(*sparse.indices, model_path, owner, memory);
  HostTensor result(values.dtype(), extents_of(sparse.dims), memory);
  if (values.dtype() == DType::kString) throw RunFault{"sparse strings are not run"};
  const std::size_t width = element_bytes(values.dtype()), rank = result.rank();
  if (result.bytes() != 0) std::memset(result.mutable_raw(), 0, result.bytes());
  const bool is_linear = indices.rank() == 1;
  if (indices.dtype() != DType::kInt64 || indices.size() != values.size() * (is_linear ? 1 : rank))
    throw RunFault{"the indices of a sparse constant do not fit its values"};
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int64_t at = 0;
    for (std::size_t axis = 0; axis < (is_linear ? 1 : rank); ++axis) {
      const std::int64_t index = indices.as<std::int64_t>()[is_linear ? i : i * rank + axis];
      const std::int64_t extent = is_linear ? static_cast<std::int64_t>(result.size()) : result.extent(axis);
      if (index < 0 || index >= extent) throw RunFault{"an index of a sparse constant is out of range"};
      at = at * extent + index;
    }
    std::memcpy(result.mutable_raw() + static_cast<std::size_t>(at) * width, values.raw() + i * width, width);
  }
  return result;
}

}  // namespace tensorlint::runtime
