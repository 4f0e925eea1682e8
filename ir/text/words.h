#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/schema/schema.h"

/// The words of the text syntax, for reader and printer alike.
namespace tensorlint::text {

/// A word that begins a type: float, seq, undefined, dtype_99, ...
bool is_type_word(std::string_view word);

/// A name where a type may stand before it: in quotes where it is no identifier or begins a type.
std::string value_word(std::string_view name);
/// Any other name: in quotes where it is no identifier.
std::string plain_word(std::string_view name);
/// Parts between dots as they are where each is an identifier, as in ai.onnx.ml; else in quotes.
std::string domain_word(std::string_view domain);
/// With a point or an exponent, so that it reads as a float without its kind; nan without a payload.
std::string float_word(float number);

/// The code of an element type: onnx's word (float, double, ...), `undefined` for 0, `dtype_N` for a code without one.
std::optional<std::int32_t> dtype_code_named(std::string_view word);
std::string dtype_word(std::int32_t code);

/// The kind that to_text() spells so.
std::optional<AttributeKind> attribute_kind_named(std::string_view word);

}  // namespace tensorlint::text
