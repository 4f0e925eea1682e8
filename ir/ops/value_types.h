#pragma once

#include <optional>

#include "ir/facts/fact.h"
#include "ir/types/type_decl.h"

namespace tensorlint::ops {

/// The kind of a value of a declared type; nullopt where the declaration leaves it open.
std::optional<ValueKind> value_kind(TypeKind kind);

/// Element dtypes of a tensor, or of the tensors that a sequence or optional holds; all where they are not known.
DTypeSet innermost_dtypes(const FactStore& facts, const Fact& fact);

/// A map, or a sequence of maps.
bool holds_map(const FactStore& facts, const Fact& fact);

}  // namespace tensorlint::ops
