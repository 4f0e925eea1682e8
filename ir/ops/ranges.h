#pragma once

#include "ir/ops/inference.h"

namespace tensorlint::ops {

/// Interval arithmetic on the ranges of facts. Floating results are rounded outwards by what the dtype rounds by, so
/// that every value that a correct runtime computes lies inside.

/// The range of the same values converted to a float dtype (round to nearest; past the largest number to infinity).
Range widened(const Range& range, DType to);

/// A float result that a library computes with an error of a few units in the last place, in the coarsest of the
/// dtypes.
Range widened(const Range& range, DTypeSet dtypes);

Range add(const Range& a, const Range& b);
Range subtract(const Range& a, const Range& b);
Range multiply(const Range& a, const Range& b);
/// Everything where b may be 0.
Range divide(const Range& a, const Range& b);

/// Sets a result's range from exact interval arithmetic: floats rounded outwards, integers only where nothing wraps
/// around.
void set_computed_range(Inference& in, int result, const Range& range);

/// Whether result 0 has both bounds of its range among its elements, from operands of which that is known: of what
/// moves all elements, and of sums and products of integers with one number.
bool attains_bounds(Inference& in, Opcode opcode);

/// Part of the range inside [lo, hi]; the whole of [lo, hi] where nothing is.
Range clamped(const Range& range, double lo, double hi);

}  // namespace tensorlint::ops
