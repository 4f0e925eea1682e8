#pragma once

#include "ir/ops/inference.h"

namespace tensorlint::ops {

/// Shared parts of operators that work element by element.

/// Shape of a binary operator: numpy broadcasting from opset 7 on; before, the result has A's shape and B is stretched
/// only with broadcast = 1, aligned at `axis`.
void binary_shape(Inference& in);

/// Broadcast shape of all operands (variadic: Max, Sum, ...; Where), where all are ranked.
void broadcast_shape(Inference& in);

/// Shape of operand 0 for the result.
void unary_shape(Inference& in);

using ElementFunction = Dim (*)(DimPool&, Dim, Dim);

/// Elements of the result from the elements of both integer operands, where these are followed.
void combine_elements(Inference& in, ElementFunction function);

using FloatComparison = bool (*)(double, double);

/// Elements of a bool result from those of both float operands.
void compare_floats(Inference& in, FloatComparison function);

}  // namespace tensorlint::ops
