#include <bit>
#include <cstring>
#include <memory>

#include "ir/constants/sparse_check.h"
#include "ir/text/model_reader.h"

namespace tensorlint::text {
namespace {

constexpr std::size_t kSmallBytes = 4096;  // larger constants get memory of their own instead of an arena's

}  // namespace

/// The value of a constant whose type was just read.
bool Reader::constant(const Type& type, NameId name, Position position, const Scope& scope, const Tensor*& out) {
  Tensor& tensor = *builder_.new_tensor();
  if (!charge(kTensorCost + sizeof(std::int64_t) * dims_.size())) return false;
  tensor.name = name;
  tensor.position = position;
  tensor.dtype_code = type.leaf.element_code;
  out = &tensor;
  if (type.leaf.kind != TypeKind::kTensor) return fail(position, "a constant needs a tensor type");
  if (!numeric_dims(type, position, tensor.dims)) return false;
  if (lexer_.peek().is('[')) return external(tensor);
  return elements(tensor, scope);
}

bool Reader::sparse_constant(const Type& type, Position position, const Scope& scope, const SparseTensor*& out) {
  SparseTensor& sparse = *builder_.new_sparse_tensor();
  out = &sparse;
  if (!numeric_dims(type, position, sparse.dims) || !expect('{', "before the values of a sparse tensor")) return false;
  for (const bool first : {true, false}) {
    const Position start = lexer_.peek().position;
    Type part;
    const TypeDecl* declared = nullptr;
    NameId part_name{};
    if (!this->type(part, &declared, scope) || (at_name() && !name(part_name, "a tensor's name"))) return false;
    lexer_.accept('=');
    if (!constant(part, part_name, start, scope, first ? sparse.values : sparse.indices)) return false;
    if (first && !expect(',', "before the indices of a sparse tensor")) return false;
  }
  if (!expect('}', "after the indices of a sparse tensor")) return false;
  const std::string_view name = builder_.model().text(sparse.values->name);
  if (auto problem = sparse_fault(sparse, name, nullptr))
    fault({.kind = Kind::kMalformedTensor,
           .graph = scope.graph,
           .node = scope.node,
           .tensor = sparse.values,
           .message = *std::move(problem),
           .position = position});
  return true;
}

bool Reader::numeric_dims(const Type& type, Position position, std::span<const std::int64_t>& out) {
  if (!type.plain) return fail(position, "a constant needs a tensor type");
  if (!type.leaf.ranked) return fail(position, "a constant needs its dims, found `[]`");
  std::vector<std::int64_t> dims;
  for (const DimDecl& dim : dims_) {
    if (!dim.has_extent)
      return fail(position, dim.name == NameId::kEmpty ? "a constant needs numbers as dims, found `?`"
                                                       : fmt::format("a constant needs numbers as dims, found `{}`",
                                                                     shortened(builder_.model().text(dim.name))));
    dims.push_back(dim.extent);
  }
  out = builder_.keep_ints(dims);
  return true;
}

bool Reader::external(Tensor& tensor) {
  tensor.external = true;
  std::vector<MetadataEntry> entries;
  if (!metadata(entries)) return false;
  for (const MetadataEntry& entry : entries) {
    if (entry.key == "location") tensor.location = entry.value;
    if (entry.key == "offset") tensor.offset_text = entry.value;
    if (entry.key == "length") tensor.length_text = entry.value;
  }
  return true;
}

bool Reader::elements(Tensor& tensor, const Scope& scope) {
  if (!expect('{', "before the elements")) return false;
  const std::string_view tensor_name = builder_.model().text(tensor.name);
  const std::string label = tensor_name.empty() ? "a tensor" : fmt::format("tensor `{}`", tensor_name);
  if (!is_known_dtype(tensor.dtype_code)) {
    if (!lexer_.accept('}')) return unexpected("`}`, as elements of this type have no notation");
    fault({.kind = Kind::kMalformedTensor,
           .graph = scope.graph,
           .node = scope.node,
           .tensor = &tensor,
           .message = fmt::format("{} has the unknown dtype code {}", label, tensor.dtype_code),
           .position = tensor.position});
    return true;
  }
  const auto dtype = static_cast<DType>(tensor.dtype_code);
  const auto bits = static_cast<unsigned>(bit_width(dtype));
  std::uint64_t count = 0;
  if (lexer_.accept('}')) {
    tensor.has_raw = dtype != DType::kString;
  } else if (dtype == DType::kString) {
    std::vector<std::string_view> strings;
    do {
      std::string_view text;
      if (!string(text, "a string")) return false;
      strings.push_back(text);
      if (!charge(kItemCost)) return false;
    } while (lexer_.accept(','));
    if (!expect('}', "or `,` after an element")) return false;
    count = strings.size();
    tensor.strings = builder_.keep_strings(strings);
  } else {
    std::string raw;
    std::uint64_t word = 0;  // of elements narrower than a byte: those that wait for the byte to fill
    unsigned word_bits = 0;
    do {
      ++count;
      if (bits >= 8) {
        if (!element(dtype, raw)) return false;
        continue;
      }
      std::uint64_t pattern = 0;
      if (!small_element(dtype, pattern)) return false;
      word |= pattern << word_bits;
      for (word_bits += bits; word_bits >= 8; word_bits -= 8, word >>= 8) raw += static_cast<char>(word & 0xff);
    } while (lexer_.accept(','));
    if (!expect('}', "or `,` after an element")) return false;
    if (word_bits != 0) raw += static_cast<char>(word & 0xff);
    if (dtype == DType::kComplex64 || dtype == DType::kComplex128) {
      if (count % 2 != 0) return fail(tensor.position, "a complex element has two numbers: real and imaginary part");
      count /= 2;
    }
    tensor.has_raw = true;
    if (raw.size() <= kSmallBytes) {
      tensor.raw = builder_.copy(raw);
    } else {
      auto kept = std::make_shared<const std::string>(std::move(raw));
      tensor.raw = *kept;
      builder_.model().storage.push_back(std::move(kept));
    }
  }
  const auto claimed = tensor.element_count();
  if (claimed == count) return true;
  fault({.kind = Kind::kMalformedTensor,
         .graph = scope.graph,
         .node = scope.node,
         .tensor = &tensor,
         .message = claimed
                        ? fmt::format("{} of {} [{}] takes {} elements, it has {}", label, to_text(dtype),
                                      fmt::join(tensor.dims, ", "), *claimed, count)
                        : fmt::format("{} has negative or overflowing dims [{}]", label, fmt::join(tensor.dims, ", ")),
         .position = tensor.position});
  return true;
}

/// One element of at least a byte; of a complex type one of its two numbers.
bool Reader::element(DType dtype, std::string& raw) {
  const auto append = [&raw](auto value) {
    static_assert(std::endian::native == std::endian::little, "raw_data is little endian");
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    raw.append(bytes, sizeof value);
    return true;
  };
  const auto whole = [&](auto value) { return integer(value, "an integer") && append(value); };
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64: {
      float value = 0;
      return floating(value) && append(value);
    }
    case DType::kFloat64:
    case DType::kComplex128: {
      double value = 0;
      return floating(value) && append(value);
    }
    case DType::kInt8:
      return whole(std::int8_t{});
    case DType::kInt16:
      return whole(std::int16_t{});
    case DType::kInt32:
      return whole(std::int32_t{});
    case DType::kInt64:
      return whole(std::int64_t{});
    case DType::kUint8:
      return whole(std::uint8_t{});
    case DType::kUint16:
      return whole(std::uint16_t{});
    case DType::kUint32:
      return whole(std::uint32_t{});
    case DType::kUint64:
      return whole(std::uint64_t{});
    case DType::kBool: {
      const Token token = lexer_.peek();
      std::uint8_t value = 0;
      if (!integer(value, "0 or 1")) return false;
      return value <= 1 ? append(value) : fail(token.position, fmt::format("expected 0 or 1, found {}", found(token)));
    }
    case DType::kFloat16:
    case DType::kBFloat16: {
      const Token token = lexer_.peek();
      if (token.kind == TokenKind::kInteger) return whole(std::uint16_t{});
      double value = 0;
      if (!floating(value)) return false;
      const auto bits = to_sixteen_bits(value, dtype == DType::kFloat16 ? 10 : 7);
      if (!bits) return fail(token.position, fmt::format("{} does not fit {}", found(token), to_text(dtype)));
      return append(*bits);
    }
    default:
      return whole(std::uint8_t{});  // floats of 8 bits: their bits
  }
}

/// One element narrower than a byte: an integer, or the bits of a float.
bool Reader::small_element(DType dtype, std::uint64_t& bits) {
  const auto width = static_cast<unsigned>(bit_width(dtype));
  const bool is_signed = DTypeSet::signed_integers().contains(dtype);
  const std::int64_t low = is_signed ? -(std::int64_t{1} << (width - 1)) : 0;
  const std::int64_t high = is_signed ? (std::int64_t{1} << (width - 1)) - 1 : (std::int64_t{1} << width) - 1;
  const Token token = lexer_.peek();
  std::int64_t value = 0;
  if (!integer(value, "an integer")) return false;
  if (value < low || value > high)
    return fail(token.position, fmt::format("{} does not fit {}", found(token), to_text(dtype)));
  bits = static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << width) - 1);
  return true;
}

}  // namespace tensorlint::text
