#pragma once

#include "ir/facts/fact.h"

namespace tensorlint::ops {

/// Element dtypes of a tensor, or of the tensors that a sequence or optional holds; all where they are not known.
DTypeSet innermost_dtypes(const FactStore& facts, const Fact& fact);

/// A map, or a sequence of maps.
bool holds_map(const FactStore& facts, const Fact& fact);

}  // namespace tensorlint::ops
