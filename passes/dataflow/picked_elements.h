#pragma once

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

/// Both are equal: by what the operator makes of numbers.
bool is_equality(const ops::OpEntry* entry);

}  // namespace tensorlint::dataflow
