#pragma once

#include <cstdint>

#include "passes/dataflow/abstract_value.h"

namespace tensorlint::dataflow {

/// The value with one axis more; top where it has none such. Slices joined along an axis have its shape.
AbstractValue with_axis(FactStore& facts, const AbstractValue& slice, std::int64_t axis, Dim extent);

/// One slice along an axis; the axis has `extent`, which is set where it is not known yet.
FactId without_axis(FactStore& facts, FactId id, std::int64_t axis, Dim& extent);

/// The same along the first axis. Scalars have none: what is left is of unknown rank.
FactId without_batch(FactStore& facts, FactId id, Dim& batch);

}  // namespace tensorlint::dataflow
