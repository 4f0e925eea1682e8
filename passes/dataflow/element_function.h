#pragma once

#include <cstddef>

#include "ir/ops/element.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::dataflow {

/// What the node's operator makes of elements; null where nobody says it, or operands lack or attributes are dozens.
ops::ElementValue element_function(const Analysis& analysis, NodeId node);
/// The same of a node with so many operands alone.
ops::ElementValue element_function(const Analysis& analysis, NodeId node, std::size_t operands);

}  // namespace tensorlint::dataflow
