#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ir/call/application.h"
#include "ir/facts/fact.h"

namespace tensorlint::dataflow {

/// What is known of a value in the visit under way.
struct AbstractValue {
  FactId fact = FactId::kTop;
  Taint taint;
  friend bool operator==(const AbstractValue&, const AbstractValue&) = default;
};

Taint everything_tainted();

AbstractValue join(FactStore& facts, const AbstractValue& a, const AbstractValue& b);

/// No value is of both types.
bool types_clash(const FactStore& facts, FactId a, FactId b);
/// Two tensors, both as they should be, of different ranks.
bool ranks_clash(const FactStore& facts, const AbstractValue& a, const AbstractValue& b);
/// The same, of ranks or of numbers as extents.
bool shapes_clash(const FactStore& facts, const AbstractValue& a, const AbstractValue& b);
/// The same, of ranks or of extents that are never equal.
bool shapes_never_equal(FactStore& facts, const AbstractValue& a, const AbstractValue& b);

/// The only element of a constant.
std::optional<std::int64_t> single_constant(const FactStore& facts, FactId id);

/// The fact without range and content, where its elements are floating.
FactId any_floating_value(FactStore& facts, FactId id);

/// The fact without symbols made since the checkpoint (DimPool::checkpoint): these stand for other values in the next
/// iteration.
FactId without_symbols_since(FactStore& facts, FactId id, std::uint32_t checkpoint);
bool has_symbols_since(FactStore& facts, std::span<const AbstractValue> values, std::uint32_t checkpoint);

}  // namespace tensorlint::dataflow
