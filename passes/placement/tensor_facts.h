#pragma once

#include <cstdint>
#include <optional>

#include "ir/graph/region_op.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::placement {

/// Bytes of a tensor's elements in the symbols of its extents; unknown where dtype or shape is, and for what is no
/// tensor.
Dim tensor_bytes(const dataflow::Analysis& analysis, ValueId value);

/// The element of a value that is known to hold one integer or bool: a condition, a trip count.
std::optional<std::int64_t> known_integer(const dataflow::Analysis& analysis, ValueId value);

/// The extent of the axis that a Scan slices its first scanned operand along, which is how often it runs. Unknown
/// where the operand's shape or the axis is.
Dim scanned_extent(const dataflow::Analysis& analysis, ValueId sequence, const ScanAxes& axes);

}  // namespace tensorlint::placement
