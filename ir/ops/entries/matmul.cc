// Matrix products. Source: ONNX MatMul (1, 9, 13), Gemm (1, 6, 7, 9, 11, 13), MatMulInteger (10).
#include "ir/ops/matmul.h"

namespace tensorlint::ops {
namespace {

const Constraint kMatMulZeroPoint{"matmul_zero_point", ConstraintKind::kShapes,
                                  "a zero point is one element, or one a row of A or a column of B"};

void matmul(Inference& in) {
  if (const auto shape = matmul_shape(in, 0, 1)) in.set_shape(0, *shape);
}

void gemm(Inference& in) {
  if (const auto shape = gemm_shape(in, 0, 1, 2)) in.set_shape(0, *shape);
}

void check_zero_point(Inference& in, int operand, int factor, Dim extent, std::string_view what) {
  const auto zero = in.shape(operand);
  if (!zero || zero->size() != 1 || in.dims().is_constant(zero->front(), 1)) return;
  same_extent(in, extent, zero->front(), factor, operand, kMatMulZeroPoint, {"{}", what});
}

void matmul_integer(Inference& in) {
  matmul(in);
  const auto a = in.shape(0), b = in.shape(1);
  if (a && a->size() == 2) check_zero_point(in, 2, 0, (*a)[0], "zero points a row");
  if (b && b->size() == 2) check_zero_point(in, 3, 1, (*b)[1], "zero points a column");
}

OpEntry product(std::string_view name, InferFunction function) {
  return OpEntry(name).infer(function).constraint(kMatMulInner).constraint(kMatMulRank).constraint(kMatMulBroadcast);
}

const RegisterOps kProducts{
    product("MatMul", matmul).computes(Opcode::kMatMul),
    product("MatMulInteger", matmul_integer).constraint(kMatMulZeroPoint),
    OpEntry("Gemm")
        .computes(Opcode::kMatMul)
        .infer(gemm)
        .constraint(kGemmRank)
        .constraint(kGemmInner)
        .constraint(kGemmAddend),
};

}  // namespace
}  // namespace tensorlint::ops
