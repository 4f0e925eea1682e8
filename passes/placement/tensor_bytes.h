#pragma once

#include "passes/dataflow/analysis.h"

namespace tensorlint {

/// Bytes of a tensor's elements in the symbols of its extents; unknown where dtype or shape is, and for what is no tensor.
Dim tensor_bytes(const Analysis& analysis, ValueId value);

}  // namespace tensorlint
