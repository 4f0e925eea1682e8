#pragma once

#include <cstddef>

#include "passes/losses/expressions.h"

namespace tensorlint::losses {

/// Scores that have been normalised along the axis before, by themselves or in turn with other axes, as for a plan of
/// transport: that they are normalised along another one as well is meant.
bool is_normalised_before(const Expressions& expressions, ValueId scores, std::size_t axis);

}  // namespace tensorlint::losses
