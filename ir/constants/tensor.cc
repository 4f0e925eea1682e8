#include "ir/constants/tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/constants/varint.h"
#include "ir/types/dtype.h"

namespace tensorlint {
namespace {

template <typename Word>
Word load_little_endian(const char* bytes) {
  static_assert(std::endian::native == std::endian::little, "raw_data is little endian and read in place");
  Word word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

double half_to_double(std::uint16_t bits) {
  const std::uint64_t exponent = (bits >> 10) & 31U, mantissa = bits & 1023U, sign = bits >> 15;
  constexpr double kLeast = 0x1p-24;  // of the subnormal numbers
  if (exponent == 0) return (sign != 0 ? -kLeast : kLeast) * static_cast<double>(mantissa);
  if (exponent == 31)
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign != 0 ? -HUGE_VAL : HUGE_VAL;
  return std::bit_cast<double>(sign << 63 | (exponent + 1008) << 52 | mantissa << 42);
}

double bfloat_to_double(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}

double float_at(DType dtype, const char* bytes) {
  switch (dtype) {
    case DType::kFloat64:
      return load_little_endian<double>(bytes);
    case DType::kFloat32:
      return static_cast<double>(load_little_endian<float>(bytes));
    case DType::kFloat16:
      return half_to_double(load_little_endian<std::uint16_t>(bytes));
    default:
      return bfloat_to_double(load_little_endian<std::uint16_t>(bytes));
  }
}

/// Sign-extends or not the low `bits` of a raw element, two or four of them sharing a byte when narrower than 8.
std::int64_t narrow(std::uint8_t byte, unsigned index_in_byte, unsigned bits, bool is_signed) {
  const unsigned value = (byte >> (index_in_byte * bits)) & ((1U << bits) - 1);
  const bool negative = is_signed && ((value >> (bits - 1)) & 1U) != 0;
  return static_cast<std::int64_t>(value) - (negative ? std::int64_t{1} << bits : 0);
}

/// The number that the low 8 to 64 bits are.
std::int64_t low_bits(std::uint64_t word, unsigned bits, bool is_signed) {
  const unsigned unused = 64 - bits;
  return is_signed ? static_cast<std::int64_t>(word << unused) >> unused
                   : static_cast<std::int64_t>(word << unused >> unused);
}

}  // namespace

std::optional<std::uint64_t> Tensor::element_count() const {
  std::uint64_t count = 1;
  bool empty = false;
  for (const std::int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    empty = empty || dim == 0;
  }
  if (empty) return 0;
  for (const std::int64_t dim : dims)
    if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(dim), &count)) return std::nullopt;
  return count;
}

std::uint64_t Tensor::inline_bytes() const {
  std::uint64_t bytes = raw.size() + typed.size();
  for (const std::string_view text : strings) bytes += text.size();
  return bytes;
}

std::optional<std::vector<std::int64_t>> Tensor::integers(std::size_t limit) const {
  const auto count = element_count();
  if (external || !count || *count > limit || !is_known_dtype(dtype_code)) return std::nullopt;
  const auto dtype = static_cast<DType>(dtype_code);
  const bool is_signed = DTypeSet::signed_integers().contains(dtype);
  if (!is_signed && !DTypeSet::unsigned_integers().contains(dtype) && dtype != DType::kBool) return std::nullopt;
  const auto bits = static_cast<unsigned>(bit_width(dtype));
  std::vector<std::int64_t> elements;
  elements.reserve(*count);
  if (has_raw) {
    if (raw.size() != packed_bytes(dtype, *count)) return std::nullopt;
    for (std::size_t i = 0; i < *count; ++i) {
      std::int64_t element = 0;
      if (bits < 8) {
        const unsigned per_byte = 8 / bits;
        element =
            narrow(static_cast<std::uint8_t>(raw[i / per_byte]), static_cast<unsigned>(i % per_byte), bits, is_signed);
      } else {
        const char* const bytes = raw.data() + i * (bits / 8);
        switch (bits) {
          case 8:
            element = is_signed ? load_little_endian<std::int8_t>(bytes) : load_little_endian<std::uint8_t>(bytes);
            break;
          case 16:
            element = is_signed ? load_little_endian<std::int16_t>(bytes) : load_little_endian<std::uint16_t>(bytes);
            break;
          case 32:
            element = is_signed ? std::int64_t{load_little_endian<std::int32_t>(bytes)}
                                : std::int64_t{load_little_endian<std::uint32_t>(bytes)};
            break;
          default:
            element = load_little_endian<std::int64_t>(bytes);
            break;
        }
      }
      if (dtype == DType::kUint64 && element < 0) return std::nullopt;
      elements.push_back(dtype == DType::kBool ? static_cast<std::int64_t>(element != 0) : element);
    }
    return elements;
  }
  const TypedField expected_field = dtype == DType::kInt64                                 ? TypedField::kInt64
                                    : (dtype == DType::kUint32 || dtype == DType::kUint64) ? TypedField::kUint64
                                                                                           : TypedField::kInt32;
  if (*count != 0 && typed_field != expected_field) return std::nullopt;
  std::string_view rest = typed;
  while (!rest.empty()) {
    const auto word = next_varint(rest);
    if (!word) return std::nullopt;
    // int32_data holds narrower types one element a word, sub-byte types packed into the low byte.
    if (bits < 8) {
      if (elements.size() == *count) return std::nullopt;
      for (unsigned k = 0; k < 8 / bits && elements.size() < *count; ++k)
        elements.push_back(narrow(static_cast<std::uint8_t>(*word), k, bits, is_signed));
      continue;
    }
    if (elements.size() == *count) return std::nullopt;
    if (dtype == DType::kBool) {
      elements.push_back(static_cast<std::int64_t>(*word != 0));
      continue;
    }
    // What a narrower type does not hold is cut to its low bits, as runtimes do.
    const std::int64_t element = low_bits(*word, bits, is_signed);
    if (dtype == DType::kUint64 && element < 0) return std::nullopt;
    elements.push_back(element);
  }
  if (elements.size() != *count) return std::nullopt;
  return elements;
}

std::optional<std::vector<double>> Tensor::floats(std::size_t limit) const {
  const auto count = element_count();
  if (external || !count || *count > limit || !is_known_dtype(dtype_code)) return std::nullopt;
  const auto dtype = static_cast<DType>(dtype_code);
  if (dtype != DType::kFloat64 && dtype != DType::kFloat32 && dtype != DType::kFloat16 && dtype != DType::kBFloat16)
    return std::nullopt;
  const auto width = static_cast<std::size_t>(bit_width(dtype)) / 8;
  std::vector<double> elements;
  elements.reserve(*count);
  if (!has_raw && width == 2) {
    // float16 and bfloat16 sit in int32_data as their bits.
    if (*count != 0 && typed_field != TypedField::kInt32) return std::nullopt;
    std::string_view rest = typed;
    while (!rest.empty()) {
      const auto word = next_varint(rest);
      if (!word || elements.size() == *count) return std::nullopt;
      const auto bits = static_cast<std::uint16_t>(*word);
      elements.push_back(dtype == DType::kFloat16 ? half_to_double(bits) : bfloat_to_double(bits));
    }
  } else {
    const std::string_view bytes = has_raw ? raw : typed;
    const TypedField expected_field = dtype == DType::kFloat64 ? TypedField::kDouble : TypedField::kFloat;
    if (!has_raw && *count != 0 && typed_field != expected_field) return std::nullopt;
    if (bytes.size() != *count * width) return std::nullopt;
    for (std::size_t i = 0; i < *count; ++i) elements.push_back(float_at(dtype, bytes.data() + i * width));
  }
  if (elements.size() != *count) return std::nullopt;
  return elements;
}

std::optional<double> Tensor::number() const {
  if (element_count() != 1) return std::nullopt;
  // The usual one is read where it stands: rules ask for it at each product.
  if (has_raw && !external && static_cast<DType>(dtype_code) == DType::kFloat32 && raw.size() == sizeof(float))
    return float_at(DType::kFloat32, raw.data());
  if (const auto element = floats(1)) return element->front();
  if (const auto element = integers(1)) return static_cast<double>(element->front());
  return std::nullopt;
}

}  // namespace tensorlint
