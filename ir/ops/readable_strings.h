#pragma once

#include "ir/constants/tensor.h"
#include "ir/facts/fact.h"

namespace tensorlint::ops {

/// Notes as what Cast can read the strings of a constant: in `element` of their fact, which tensors have no other use
/// for.
void note_readable(FactStore& facts, const Tensor& tensor, Fact& fact);

/// What Cast can read each of some strings as: all dtypes, unless one of them is known not to be a number.
DTypeSet readable_dtypes(const FactStore& facts, const Fact& strings);

}  // namespace tensorlint::ops
