#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {

/// An attribute that the imported version of the operator takes as an operand instead.
struct MovedAttribute {
  const Attribute* attribute = nullptr;
  std::uint32_t operand = 0;
  int since = 0;  ///< the opset that moved it
};

/// The attributes of a node that an older version of its operator has and its own version takes as operands: `axes` of
/// ReduceSum since opset 13, `ratio` of Dropout since 12.
std::vector<MovedAttribute> moved_attributes(const NodeCall& call);

/// Makes each a constant that the node reads; empty where one of them cannot be: a list of floats, or an operand that
/// is there already.
std::vector<GraphEdit> move_to_operands(const NodeCall& call, const std::vector<MovedAttribute>& moved);

}  // namespace tensorlint::rules
