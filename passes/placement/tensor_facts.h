#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "ir/graph/region_op.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::placement {

/// Bytes of a tensor's elements in the symbols of its extents; unknown where dtype or shape is, and for what is no
/// tensor. Each tensor's extents are multiplied once, however often it is copied.
class TensorBytes {
 public:
  explicit TensorBytes(const dataflow::Analysis& analysis) : analysis_(analysis) {}
  Dim of(ValueId value);

 private:
  const dataflow::Analysis& analysis_;
  std::unordered_map<ValueId, Dim> known_;
};

/// The element of a value that is known to hold one integer or bool: a condition, a trip count.
std::optional<std::int64_t> known_integer(const dataflow::Analysis& analysis, ValueId value);

/// The extent of the axis that a Scan slices its first scanned operand along, which is how often it runs. Unknown
/// where the operand's shape or the axis is.
Dim scanned_extent(const dataflow::Analysis& analysis, ValueId sequence, const ScanAxes& axes);

}  // namespace tensorlint::placement
