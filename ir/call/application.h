#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/constants/attribute.h"
#include "ir/facts/fact.h"
#include "ir/schema/schema.h"

namespace tensorlint {

/// Whose rules hold: ONNX is strict about types, PyTorch promotes, `tensorlint` is the builder's own domain.
enum class Dialect : std::uint8_t { kOnnx, kAten, kTensorlint };

/// What of a value is meant: what failed, what is tainted, whose origin is asked for.
enum class Aspect : std::uint8_t { kDtype = 1, kShape = 2, kValue = 4 };

/// Aspects of a value that follow from something that failed: nothing is reported about these.
struct Taint {
  std::uint8_t bits = 0;
  constexpr Taint() = default;
  constexpr Taint(Aspect aspect) : bits(static_cast<std::uint8_t>(aspect)) {}  // NOLINT: an aspect is a taint of one
  constexpr bool has(Aspect aspect) const { return (bits & static_cast<std::uint8_t>(aspect)) != 0; }
  constexpr Taint& operator|=(Taint other) {
    bits = static_cast<std::uint8_t>(bits | other.bits);
    return *this;
  }
  constexpr Taint operator&(Taint other) const {
    Taint result;
    result.bits = static_cast<std::uint8_t>(bits & other.bits);
    return result;
  }
  friend constexpr bool operator==(Taint, Taint) = default;
};

/// One call of an operator seen from anywhere: a graph node, a C++ call and a recorded call are three views of it.
/// Operands, results and attributes only; whoever made the call knows names and places.
struct Application {
  Dialect dialect = Dialect::kOnnx;
  std::string_view domain;  ///< "" for ai.onnx
  std::string_view name;
  std::int64_t opset = 0;
  const OpSchema* schema = nullptr;  ///< null: unknown operator
  std::span<const Attribute> attributes;
  std::span<const FactId> operands;  ///< kAbsent where left out
  std::span<const Taint> operand_taints;
  std::span<const FactId> results;  ///< as inferred; empty before inference
  std::uint32_t result_count = 0;
  FactStore* facts = nullptr;
  std::uint64_t site = 0;  ///< names fresh symbols: differs between calls (and between contexts of one call), never 0

  bool has_operand(std::size_t index) const { return index < operands.size() && operands[index] != FactId::kAbsent; }
  const Fact& operand(std::size_t index) const {
    return facts->fact(index < operands.size() ? operands[index] : FactId::kTop);
  }
  Taint taint(std::size_t index) const { return index < operand_taints.size() ? operand_taints[index] : Taint(); }
  const Fact& result(std::size_t index) const {
    return facts->fact(index < results.size() ? results[index] : FactId::kTop);
  }
  const Attribute* attribute(std::string_view attribute_name) const {
    for (const Attribute& attribute : attributes)
      if (attribute.name == attribute_name) return &attribute;
    return nullptr;
  }
  /// The formal parameter of an operand (the last one again for variadic operands); null without a schema.
  const FormalParameter* formal_operand(std::size_t index) const;
  const FormalParameter* formal_result(std::size_t index) const;
};

}  // namespace tensorlint
