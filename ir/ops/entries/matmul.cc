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

void matmul_integer(Inference& in) {
  matmul(in);
  if (const auto a = in.shape(0)) check_matrix_parameter(in, 2, *a, true, kMatMulZeroPoint, "A");
  if (const auto b = in.shape(1)) check_matrix_parameter(in, 3, *b, false, kMatMulZeroPoint, "B");
}

OpEntry product(std::string_view name, InferFunction function) {
  return OpEntry(name).infer(function).constraint(kMatMulInner).constraint(kMatMulRank).constraint(kMatMulBroadcast);
}

const RegisterOps kRegisterMatmul{
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
