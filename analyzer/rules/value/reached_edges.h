#pragma once

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {

/// Logarithms, quotients and products at the edge of where they are defined, which a training step reaches by what it
/// writes itself: a bound that rounding moves to 1, bytes divided by 255, scores of -infinity, a clamp to 0, many small
/// factors.
void check_reached_edges(const ModelView& view, Reporter& out);

}  // namespace tensorlint::rules
