#pragma once

#include <cstdint>
#include <optional>

#include "passes/dataflow/analysis.h"

namespace tensorlint {

/// Bytes of a tensor's elements in the symbols of its extents; unknown where dtype or shape is, and for what is no
/// tensor.
Dim tensor_bytes(const Analysis& analysis, ValueId value);

/// The element of a value that is known to hold one integer or bool: a condition, a trip count.
std::optional<std::int64_t> known_integer(const Analysis& analysis, ValueId value);

}  // namespace tensorlint
