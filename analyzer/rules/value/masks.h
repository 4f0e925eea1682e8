#pragma once

#include <string_view>

#include "passes/losses/expressions.h"

namespace tensorlint::rules {

/// Whether a name ends in `ending`, which is in lower case; in whatever case the name is.
bool has_ending(std::string_view name, std::string_view ending);

/// 0 and 1: what has been bool, an identity matrix, an input called a mask, the rest of one, and products of those.
bool is_mask(const losses::Expressions& expressions, ValueId value);

}  // namespace tensorlint::rules
