#pragma once

#include <optional>

#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {

extern const Constraint kMatMulInner;      ///< last extent of the first operand = second to last of the second
extern const Constraint kMatMulRank;       ///< operands have at least one axis
extern const Constraint kMatMulBroadcast;  ///< leading axes broadcast

/// Shape of numpy.matmul(a, b); fails on inner extents, ranks and leading axes. nullopt where an operand is unranked.
std::optional<Dims> matmul_shape(Inference& in, int a, int b);
/// The same for shapes that the caller has rearranged (transposed); operands only name them.
std::optional<Dims> matmul_shape(Inference& in, std::span<const Dim> x, std::span<const Dim> y, int a, int b);

/// A scale or zero point of `target`, a matrix or a stack of them: one element, a list of one a row (else a column), or
/// extents that stretch to [..., rows, 1] (else [..., 1, columns]). `what` names what it belongs to.
void check_matrix_parameter(Inference& in, int operand, std::span<const Dim> target, bool by_row,
                            const Constraint& constraint, std::string_view what);

extern const Constraint kGemmRank;    ///< both factors have 2 axes
extern const Constraint kGemmInner;   ///< inner extents are equal, after transposition
extern const Constraint kGemmAddend;  ///< the addend stretches to the product's shape

/// Shape of Gemm's result under attributes transA and transB. Operands by index; c -1: none.
std::optional<Dims> gemm_shape(Inference& in, int a, int b, int c);

}  // namespace tensorlint::ops
