#pragma once

#include <cstddef>

#include "ir/ops/element.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::dataflow {

/// What a node does with elements that it does not compute anything of, where no opcode says so: asked of the names
/// that its schema has for operands and attributes, which say what the operator is for.
enum class ElementUse : std::uint8_t {
  kOther,
  kPicks,       ///< every element of its results is one of operand 0: moved, repeated, split off, looked up
  kPads,        ///< the same, or the number that operand 2 gives
  kSorts,       ///< result 0 has elements of operand 0, result 1 where they are
  kNormalises,  ///< to a mean and a variance along axes or groups
};

ElementUse element_use(const Analysis& analysis, NodeId node);

/// What the node's operator makes of elements; null where nobody says it, or the node lacks operands that it takes.
ops::ElementValue element_function(const Analysis& analysis, NodeId node);
/// The same of a node with so many operands alone.
ops::ElementValue element_function(const Analysis& analysis, NodeId node, std::size_t operands);

/// Both are equal: by what the operator makes of numbers.
bool is_equality(const Analysis& analysis, NodeId node);

}  // namespace tensorlint::dataflow
