#pragma once

#include <optional>

#include "ir/ops/shape_functions.h"

namespace tensorlint {

extern const Constraint kMatMulInner;      ///< last extent of the first operand = second to last of the second
extern const Constraint kMatMulRank;       ///< operands have at least one axis
extern const Constraint kMatMulBroadcast;  ///< leading axes broadcast

/// Shape of numpy.matmul(a, b); fails on inner extents, ranks and leading axes. nullopt where an operand is unranked.
std::optional<Dims> matmul_shape(Inference& in, int a, int b);
/// The same for shapes that the caller has rearranged (transposed); operands only name them.
std::optional<Dims> matmul_shape(Inference& in, std::span<const Dim> x, std::span<const Dim> y, int a, int b);

}  // namespace tensorlint
