#pragma once

#include "passes/losses/expressions.h"

namespace tensorlint::rules {

/// 0 and 1: what has been bool, an identity matrix, an input called a mask, the rest of one, and products of those.
bool is_mask(const losses::Expressions& expressions, ValueId value);

}  // namespace tensorlint::rules
