#include "runtime/files/value_file.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file_bytes.h"
#include "base/output.h"
#include "ir/readers/onnx/data_file.h"
#include "ir/writers/onnx/data_file.h"
#include "runtime/interpreter/constants.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

/// The elements are copied: a message is kept for as long as a view of it is, and nobody counts it.
HostTensor tensor_from(std::string_view message, const std::string& path, Memory& memory) {
  constexpr std::size_t kLongestNumber = 10;  // bytes of a message for one of an element
  memory.require(message.size() / kLongestNumber);
  const Result<Model> model = read_tensor_message(message, path);
  if (!model) throw RunFault{model.error().message};
  for (const Value& value : model->values)
    if (value.initializer != nullptr) {
      const auto owner = std::make_shared<std::vector<std::shared_ptr<const void>>>(model->storage);
      const HostTensor loaded = load_constant(*value.initializer, path, owner, memory);
      if (!loaded.is_view() || loaded.size() == 0) return loaded;
      HostTensor copied(loaded.dtype(), loaded.extents(), memory);
      std::memcpy(copied.mutable_raw(), loaded.raw(), loaded.bytes());
      return copied;
    }
  throw RunFault{"the tensor has no name, dims or data"};
}

HostValue value_from(const ValueMessage& message, const TypeDecl* declared, const std::string& path, Memory& memory) {
  if (message.kind == TypeKind::kTensor) return tensor_from(message.tensor, path, memory);
  const TypeDecl* const inner = declared != nullptr ? declared->element : nullptr;
  std::vector<HostValue> elements;
  for (const ValueMessage& element : message.elements) elements.push_back(value_from(element, inner, path, memory));
  DType dtype = elements.empty() ? DType::kUndefined : elements.front().dtype();
  for (const TypeDecl* type = inner; dtype == DType::kUndefined && type != nullptr; type = type->element)
    if (is_known_dtype(type->element_code)) dtype = static_cast<DType>(type->element_code);
  if (message.kind == TypeKind::kSequence) return HostValue::sequence(std::move(elements), dtype, memory);
  if (elements.empty()) return HostValue::empty_optional(dtype);
  return HostValue::optional(std::move(elements.front()));
}

struct NumpyType {
  DType dtype = DType::kUndefined;
  bool swapped = false;
};

NumpyType numpy_type(std::string_view code) {
  constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"b1", DType::kBool},      {"i1", DType::kInt8},        {"i2", DType::kInt16},   {"i4", DType::kInt32},
      {"i8", DType::kInt64},     {"u1", DType::kUint8},       {"u2", DType::kUint16},  {"u4", DType::kUint32},
      {"u8", DType::kUint64},    {"f2", DType::kFloat16},     {"f4", DType::kFloat32}, {"f8", DType::kFloat64},
      {"c8", DType::kComplex64}, {"c16", DType::kComplex128}, {"V2", DType::kBFloat16}};  // V2: ml_dtypes' bfloat16
  constexpr std::string_view kByteOrders = "<>|=";
  for (const auto& [name, dtype] : kTypes)
    if (!code.empty() && kByteOrders.find(code.front()) != std::string_view::npos && code.substr(1) == name)
      return {dtype, code.front() == '>'};
  throw RunFault{fmt::format("the dtype {} of numpy is not supported", code)};
}

/// The header of a .npy file: a Python dictionary of three entries, in any order.
class NumpyHeader {
 public:
  NumpyHeader(std::string_view text, int format) : rest_(text), format_(format) {
    expect("{");
    while (!takes("}")) {
      const std::string_view key = string();
      expect(":");
      if (key == "descr") {
        once(has_type_, key);
        if (next() == '[') throw RunFault{"structured dtypes are not read"};
        type = numpy_type(string());
      } else if (key == "fortran_order") {
        once(has_order_, key);
        is_fortran = takes("True");
        if (!is_fortran) expect("False");
      } else if (key == "shape") {
        once(has_shape_, key);
        shape();
      } else {
        throw RunFault{fmt::format("the header has an entry `{}`", key)};
      }
      if (!takes(",") && next() != '}') expect(",");
    }
    next();
    if (!rest_.empty()) throw RunFault{"the header continues after its dictionary"};
    const std::pair<std::string_view, bool> entries[] = {
        {"descr", has_type_}, {"fortran_order", has_order_}, {"shape", has_shape_}};
    for (const auto& [key, has] : entries)
      if (!has) throw RunFault{fmt::format("the header has no `{}`", key)};
  }

  NumpyType type;
  bool is_fortran = false;
  Extents extents;

 private:
  static void once(bool& has, std::string_view key) {
    if (std::exchange(has, true)) throw RunFault{fmt::format("the header has `{}` twice", key)};
  }
  /// After blanks; 0 at the end.
  char next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool takes(std::string_view token) {
    next();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!takes(token)) throw RunFault{fmt::format("the header is not a dictionary of numpy: `{}` is missing", token)};
  }
  std::string_view string() {
    const char quote = next();
    const std::size_t end = quote == '\'' || quote == '"' ? rest_.find(quote, 1) : std::string_view::npos;
    if (end == std::string_view::npos) throw RunFault{"the header is not a dictionary of numpy: a text is missing"};
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  void shape() {
    expect("(");
    bool is_tuple = false;
    while (!takes(")")) {
      if (!extents.empty() && !is_tuple) expect(",");
      next();
      std::int64_t extent = 0;
      const bool begins_with_zero = rest_.starts_with('0');
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
      if (error != std::errc() || extent < 0 || (begins_with_zero && extent != 0))
        throw RunFault{"the shape is not a tuple of extents"};
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      if (format_ < 3 && rest_.starts_with('L')) rest_.remove_prefix(1);  // as Python 2 wrote it
      extents.push_back(extent);
      if (extents.size() > 64) throw RunFault{"the tensor has more than 64 axes"};
      is_tuple = takes(",");
    }
    if (extents.size() == 1 && !is_tuple) throw RunFault{"the shape is not a tuple of extents"};
  }

  std::string_view rest_;
  int format_;
  bool has_type_ = false, has_order_ = false, has_shape_ = false;
};

HostTensor npy_tensor(std::string_view bytes, Memory& memory) {
  if (!bytes.starts_with("\x93NUMPY") || bytes.size() < 10) throw RunFault{"not a .npy file"};
  const int major = bytes[6];
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  if (major < 1 || major > 3 || bytes[7] != 0 || bytes.size() < 8 + length_bytes)
    throw RunFault{"not a .npy file of format 1 to 3"};
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | static_cast<std::uint8_t>(bytes[8 + i]);
  if (length > bytes.size() - 8 - length_bytes) throw RunFault{"the header is longer than the file"};
  NumpyHeader header(bytes.substr(8 + length_bytes, length), major);
  const std::string_view data = bytes.substr(8 + length_bytes + length);
  const NumpyType type = header.type;
  Extents extents = std::move(header.extents);
  const std::size_t width = element_bytes(type.dtype), count = element_count(extents);
  if (data.size() / width < count) throw RunFault{"the file ends before its elements do"};
  if (data.size() != count * width)
    throw RunFault{fmt::format("the file has {} more bytes than elements take", data.size() - count * width)};
  HostTensor tensor(type.dtype, extents, memory);
  if (count != 0) std::memcpy(tensor.mutable_raw(), data.data(), count * width);
  if (type.swapped) {
    const std::size_t part = type.dtype == DType::kComplex64 || type.dtype == DType::kComplex128 ? width / 2 : width;
    for (std::size_t at = 0; at < count * width; at += part)
      std::reverse(tensor.mutable_raw() + at, tensor.mutable_raw() + at + part);
  }
  if (type.dtype == DType::kBool)
    for (std::uint8_t& byte : tensor.as_mutable<std::uint8_t>()) byte = byte != 0 ? 1 : 0;
  if (!header.is_fortran || extents.size() < 2) return tensor;
  Extents reversed(extents.rbegin(), extents.rend());
  std::vector<std::int64_t> strides = strides_of(reversed);
  std::reverse(strides.begin(), strides.end());
  HostTensor ordered(type.dtype, std::move(extents), memory);
  copy_strided(ordered, tensor, 0, strides);
  return ordered;
}

/// Elements below a byte as raw_data has them.
std::string packed(const HostTensor& tensor) {
  const auto width = static_cast<unsigned>(bit_width(tensor.dtype()));
  std::string raw((tensor.size() * width + 7) / 8, '\0');
  const auto put = [&](std::size_t byte, unsigned bits) {
    raw[byte] = static_cast<char>(static_cast<unsigned char>(raw[byte]) | (bits & 0xffU));
  };
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const unsigned value = tensor.as<std::uint8_t>()[i] & ((1U << width) - 1U);
    const std::size_t bit = i * width;
    put(bit / 8, value << (bit % 8));
    if (bit % 8 + width > 8) put(bit / 8 + 1, value >> (8 - bit % 8));
  }
  return raw;
}

/// A message in parts: elements of tensors are not copied, and what else it takes is counted. Throws RunFault past the
/// limit.
class ValueMessageParts {
 public:
  explicit ValueMessageParts(Memory& memory) : memory_(memory) {}
  ValueMessageParts(const ValueMessageParts&) = delete;
  ValueMessageParts& operator=(const ValueMessageParts&) = delete;
  ~ValueMessageParts() { memory_.give_back(taken_); }

  /// Returns how many bytes it adds.
  std::size_t add(const HostValue& value, std::string_view name) {
    if (value.is_tensor()) return add_tensor(value.tensor(), name);
    const std::vector<HostValue>& elements = value.elements();
    const ValueKind inner = elements.empty() ? ValueKind::kTensor : elements.front().kind();
    const std::int32_t kind = inner == ValueKind::kSequence ? 3 : inner == ValueKind::kOptional ? 5 : 1;
    std::size_t size = own(container_head(name, kind));
    for (const HostValue& element : elements) {
      const std::size_t head = reserve(), length = add(element, "");
      size += fill(head, element_head(kind, length)) + length;
    }
    return size;
  }
  std::span<const std::string_view> parts() const { return parts_; }

  /// A room for what is known later; its place.
  std::size_t reserve() {
    take(0);
    parts_.emplace_back();
    return parts_.size() - 1;
  }
  /// Returns how many bytes it adds.
  std::size_t fill(std::size_t place, std::string bytes) {
    owned_.push_back(std::move(bytes));
    parts_[place] = owned_.back();
    return owned_.back().size();
  }
  std::size_t add_initializer(const HostTensor& tensor, std::string_view name) {
    const std::size_t head = reserve(), bytes = add_tensor(tensor, name);
    return fill(head, initializer_head(bytes)) + bytes;
  }

 private:
  static constexpr std::size_t kPart = 3 * sizeof(std::string_view) + 2 * sizeof(std::string);  // lists that grow

  void take(std::size_t bytes) {
    memory_.take(kPart + bytes);
    taken_ += kPart + bytes;
  }

  std::size_t add_tensor(const HostTensor& tensor, std::string_view name) {
    if (tensor.dtype() == DType::kString) {
      constexpr std::size_t kHead = 8;  // of a text; as long as it grows, twice of all
      std::size_t bytes = 0;
      for (const std::string_view text : tensor.strings()) bytes += kHead + text.size();
      take(2 * bytes);
      return own(string_tensor_message(name, tensor.extents(), tensor.strings()));
    }
    const bool is_whole = bit_width(tensor.dtype()) >= 8;
    if (!is_whole) {
      take(tensor.size());
      owned_.push_back(packed(tensor));
    }
    const std::string_view raw =
        is_whole ? std::string_view(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()) : owned_.back();
    const std::size_t head = own(tensor_head(name, tensor.dtype(), tensor.extents(), raw.size()));
    parts_.push_back(raw);
    return head + raw.size();
  }

  std::size_t own(std::string bytes) {
    take(0);
    owned_.push_back(std::move(bytes));
    parts_.push_back(owned_.back());
    return owned_.back().size();
  }

  Memory& memory_;
  std::uint64_t taken_ = 0;
  std::vector<std::string_view> parts_;
  std::deque<std::string> owned_;
};

}  // namespace

std::optional<Error> write_value_file(const std::string& path, const HostValue& value, std::string_view name,
                                      Memory& memory) {
  try {
    ValueMessageParts message(memory);
    message.add(value, name);
    return write_file_in_folder(path, message.parts());
  } catch (const RunFault& fault) {
    return Error{fmt::format("{}: {}", path, fault.message), {}};
  }
}

std::optional<Error> write_value_models(const std::string& folder, std::span<const NamedValue> values, Memory& memory) {
  constexpr std::uint64_t kMostOfFile = std::uint64_t{1} << 30;  // a message has less than 2 GiB
  std::size_t files = 0;
  for (std::size_t at = 0; at < values.size();) {
    const std::string path = fmt::format("{}/values-{:04}.initializers", folder, files++);
    try {
      ValueMessageParts message(memory);
      const std::size_t head = message.reserve();
      std::uint64_t bytes = 0;
      for (const std::size_t first = at; at < values.size(); ++at) {
        const HostValue& value = *values[at].value;
        if (!value.is_tensor()) continue;
        if (at > first && bytes + value.tensor().bytes() > kMostOfFile) break;
        bytes += message.add_initializer(value.tensor(), values[at].name);
      }
      message.fill(head, model_head(bytes));
      if (auto failed = write_file_in_folder(path, message.parts())) return failed;
    } catch (const RunFault& fault) {
      return Error{fmt::format("{}: {}", path, fault.message), {}};
    }
  }
  return std::nullopt;
}

Result<HostTensor> read_npy(std::string_view bytes, Memory& memory) {
  try {
    return npy_tensor(bytes, memory);
  } catch (const RunFault& fault) {
    return Error{fault.message, {}};
  }
}

Result<HostValue> read_value_file(const std::string& path, const TypeDecl* declared, Memory& memory) {
  Result<std::shared_ptr<const FileBytes>> file = FileBytes::open(path);
  if (!file) return Error{fmt::format("{}: {}", path, file.error().message), {}};
  const std::string_view bytes = (*file)->bytes();
  try {
    if (path.ends_with(".npy")) return HostValue(npy_tensor(bytes, memory));
    if (!path.ends_with(".pb")) return Error{fmt::format("{}: expected a .pb or .npy file", path), {}};
    TypeKind kind = declared != nullptr ? declared->kind : TypeKind::kTensor;
    if (kind != TypeKind::kSequence && kind != TypeKind::kOptional) kind = TypeKind::kTensor;
    const Result<ValueMessage> message = read_value_message(bytes, kind);
    if (!message) return Error{fmt::format("{}: {}", path, message.error().message), {}};
    return value_from(*message, declared, path, memory);
  } catch (const RunFault& fault) {
    return Error{fmt::format("{}: {}", path, fault.message), {}};
  }
}

}  // namespace tensorlint::runtime
