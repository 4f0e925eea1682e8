// Matrix products. Source: ONNX MatMul (1, 9, 13), Gemm (1, 6, 7, 9, 11, 13), MatMulInteger (10).
#include "ir/ops/matmul.h"

#include <fmt/format.h>

namespace tensorlint {
namespace {

const Constraint kGemmRank{"gemm_rank", ConstraintKind::kShapes, "both factors have 2 axes"};
const Constraint kGemmInner{"gemm_inner", ConstraintKind::kShapes, "inner extents are equal, after transposition"};
const Constraint kGemmAddend{"gemm_addend", ConstraintKind::kShapes, "the addend stretches to the product's shape"};
const Constraint kMatMulZeroPoint{"matmul_zero_point", ConstraintKind::kShapes, "a zero point is one element, or one a row of A or a column of B"};

void matmul(Inference& in) {
  if (const auto shape = matmul_shape(in, 0, 1)) in.set_shape(0, *shape);
}

void gemm(Inference& in) {
  DimPool& pool = in.dims();
  const auto a = in.shape(0), b = in.shape(1);
  for (const int operand : {0, 1}) {
    const auto shape = in.shape(operand);
    if (!shape || shape->size() == 2) continue;
    in.fail(kGemmRank, {operand}, fmt::format("{{{}}} of shape {} has rank {}, Gemm needs 2", operand, shape_text(pool, *shape), shape->size()));
    in.set_shape(0, unknown_dims(2, Unknown::kTainted));
    return;
  }
  const bool turn_a = in.int_attribute("transA", 0) != 0, turn_b = in.int_attribute("transB", 0) != 0;
  Dims result = unknown_dims(2);
  if (a) result[0] = (*a)[turn_a ? 1 : 0];
  if (b) result[1] = (*b)[turn_b ? 0 : 1];
  if (a && b) same_extent(in, (*a)[turn_a ? 0 : 1], (*b)[turn_b ? 1 : 0], 0, 1, kGemmInner, "inner extents");
  in.set_shape(0, result);
  const auto c = in.shape(2);
  if (!c || in.failed() || in.opset() < 7) return;
  // The product is no operand: its rows are A's, its columns B's.
  const auto misfit = [&](Dim extent, Dim target) { return !pool.bounds_from_two(extent).contains(1) && pool.differ(extent, target); };
  const bool columns = !c->empty() && misfit(c->back(), result[1]);
  if (c->size() <= 2 && !columns && !(c->size() == 2 && misfit(c->front(), result[0]))) return;
  if (c->size() > 2 || !pool.bounds(pool.sub(columns ? c->back() : c->front(), result[columns ? 1 : 0])).contains(0))
    in.fail(kGemmAddend, {2, columns ? 1 : 0}, fmt::format("{{2}} of shape {} does not stretch to the product's shape {}", shape_text(pool, *c), shape_text(pool, result)));
}

void check_zero_point(Inference& in, int operand, int factor, Dim extent, std::string_view what) {
  const auto zero = in.shape(operand);
  if (!zero || zero->size() != 1 || in.dims().is_constant(zero->front(), 1)) return;
  same_extent(in, extent, zero->front(), factor, operand, kMatMulZeroPoint, what);
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
    product("MatMul", matmul),
    product("MatMulInteger", matmul_integer).constraint(kMatMulZeroPoint),
    OpEntry("Gemm").infer(gemm).constraint(kGemmRank).constraint(kGemmInner).constraint(kGemmAddend),
};

}  // namespace
}  // namespace tensorlint
