#include "ir/text/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "ir/text/lexer.h"
#include "ir/types/dtype.h"

namespace tensorlint::text {
namespace {

constexpr std::string_view kUnknownPrefix = "dtype_";

// onnx.parser says float and double where tensorlint says float32 and float64; all other names are the same.
std::string_view onnx_word(DType dtype) {
  if (dtype == DType::kFloat32) return "float";
  if (dtype == DType::kFloat64) return "double";
  return to_text(dtype);
}

}  // namespace

bool is_type_word(std::string_view word) {
  static constexpr std::array<std::string_view, 5> kOthers = {"seq", "map", "optional", "sparse_tensor", "opaque"};
  for (const std::string_view other : kOthers)
    if (word == other) return true;
  return dtype_code_named(word).has_value();
}

std::optional<std::int32_t> dtype_code_named(std::string_view word) {
  for (std::int32_t code = 0; code < kDTypeCount; ++code)
    if (word == onnx_word(static_cast<DType>(code))) return code;
  if (!word.starts_with(kUnknownPrefix)) return std::nullopt;
  word.remove_prefix(kUnknownPrefix.size());
  const bool negative = word.starts_with("minus_");
  if (negative) word.remove_prefix(6);
  std::int32_t code = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), code);
  if (error != std::errc() || end != word.data() + word.size() || code < 0) return std::nullopt;
  return negative ? -code : code;
}

std::string dtype_word(std::int32_t code) {
  if (code >= 0 && code < kDTypeCount) return std::string(onnx_word(static_cast<DType>(code)));
  // -2^31 has no positive counterpart: it prints as the next one.
  if (code < 0)
    return fmt::format("{}minus_{}", kUnknownPrefix, -std::max(code, -std::numeric_limits<std::int32_t>::max()));
  return fmt::format("{}{}", kUnknownPrefix, code);
}

std::optional<AttributeKind> attribute_kind_named(std::string_view word) {
  for (int code = 0; code <= static_cast<int>(AttributeKind::kTypeProtos); ++code)
    if (word == tensorlint::to_text(static_cast<AttributeKind>(code))) return static_cast<AttributeKind>(code);
  return std::nullopt;
}

std::string value_word(std::string_view name) {
  return is_identifier(name) && !is_type_word(name) ? std::string(name) : quoted(name);
}

std::string plain_word(std::string_view name) { return is_identifier(name) ? std::string(name) : quoted(name); }

std::string domain_word(std::string_view domain) {
  for (std::size_t start = 0; start <= domain.size();) {
    const std::size_t dot = std::min(domain.find('.', start), domain.size());
    if (!is_identifier(domain.substr(start, dot - start))) return quoted(domain);
    start = dot + 1;
  }
  return std::string(domain);
}

std::string float_word(float number) {
  if (std::isnan(number)) return std::signbit(number) ? "-nan" : "nan";
  char digits[48];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  std::string word(digits, end);
  if (word.find_first_of(".ein") == std::string::npos) word += ".0";
  return word;
}

}  // namespace tensorlint::text
