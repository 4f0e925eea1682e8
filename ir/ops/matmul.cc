#include "ir/ops/matmul.h"

#include <algorithm>

namespace tensorlint::ops {

const Constraint kMatMulInner{"matmul_inner", ConstraintKind::kShapes,
                              "last extent of the first operand = second to last extent of the second", true};
const Constraint kMatMulRank{"matmul_rank", ConstraintKind::kRank, "operands have at least one axis", true};
const Constraint kMatMulBroadcast{"matmul_broadcast", ConstraintKind::kShapes, "axes before the last two broadcast",
                                  true};

const Constraint kGemmRank{"gemm_rank", ConstraintKind::kRank, "both factors have 2 axes", true};
const Constraint kGemmInner{"gemm_inner", ConstraintKind::kShapes, "inner extents are equal, after transposition",
                            true};
const Constraint kGemmAddend{"gemm_addend", ConstraintKind::kShapes, "the addend stretches to the product's shape"};

namespace {

/// "{0} of shape [2, 3]", and "transposed" where the factor is not the operand as it is.
Message factor_text(Inference& in, std::span<const Dim> factor, int operand) {
  const auto shape = in.shape(operand);
  const bool as_given = !shape || std::ranges::equal(*shape, factor);
  return {"{} of shape {}{}", OperandRef(operand), as_given ? factor : *shape, as_given ? "" : ", transposed,"};
}

void check_inner(Inference& in, std::span<const Dim> x, std::span<const Dim> y, int a, int b,
                 const Constraint& constraint) {
  DimPool& pool = in.dims();
  const Dim left = x.back(), right = y.size() == 1 ? y[0] : y[y.size() - 2];
  if (pool.differ(left, right))
    fail_unequal(in, constraint, {b, a},
                 {"{} and {} cannot be multiplied: inner extents {} and {}", factor_text(in, x, a),
                  factor_text(in, y, b), left, right},
                 left, right);
  in.learn_equal(left, right);
}

}  // namespace

std::optional<Dims> matmul_shape(Inference& in, std::span<const Dim> x, std::span<const Dim> y, int a, int b) {
  for (const auto& [operand, shape] : {std::pair(a, x), std::pair(b, y)}) {
    if (!shape.empty()) continue;
    in.fail(kMatMulRank, {operand}, {"{} is a scalar, {} needs at least 1 axis", OperandRef(operand), in.call().name});
    return std::nullopt;
  }
  const bool vector_x = x.size() == 1, vector_y = y.size() == 1;
  check_inner(in, x, y, a, b, kMatMulInner);
  Dims result;
  if (!vector_x && !vector_y) {
    result = broadcast(in, x.first(x.size() - 2), y.first(y.size() - 2), a, b, kMatMulBroadcast);
  } else if (!vector_x) {
    result = copy_dims(x.first(x.size() - 2));
  } else if (!vector_y) {
    result = copy_dims(y.first(y.size() - 2));
  }
  if (!vector_x) result.push_back(x[x.size() - 2]);
  if (!vector_y) result.push_back(y.back());
  return result;
}

std::optional<Dims> matmul_shape(Inference& in, int a, int b) {
  const auto x = in.shape(a), y = in.shape(b);
  if (!x || !y) return std::nullopt;
  return matmul_shape(in, *x, *y, a, b);
}

void check_matrix_parameter(Inference& in, int operand, std::span<const Dim> target, bool by_row,
                            const Constraint& constraint, std::string_view what) {
  DimPool& pool = in.dims();
  const auto shape = in.shape(operand);
  const auto may_be_one = [&](Dim extent) { return pool.bounds(extent).contains(1); };
  if (!shape || target.empty() || std::ranges::all_of(*shape, may_be_one)) return;
  Dims given = copy_dims(*shape), wanted = copy_dims(target);
  if (wanted.size() > 1) {
    wanted[wanted.size() - (by_row ? 1 : 2)] = in.dims().constant(1);
    if (by_row && given.size() == 1) given.push_back(wanted.back());
  }
  bool fits = given.size() <= wanted.size();
  for (std::size_t i = 0; fits && i < given.size(); ++i)
    fits = may_be_one(given[i]) || !pool.never_equal(given[i], wanted[i + wanted.size() - given.size()]);
  if (fits) return;
  in.fail(constraint, {operand},
          {"{} has shape {}, for {} of shape {} it has to have one element, or one a {}", OperandRef(operand), *shape,
           what, target, by_row ? "row" : "column"});
}

std::optional<Dims> gemm_shape(Inference& in, int a, int b, int c) {
  DimPool& pool = in.dims();
  const auto x = in.shape(a), y = in.shape(b);
  for (const int operand : {a, b}) {
    const auto shape = in.shape(operand);
    if (!shape || shape->size() == 2) continue;
    in.fail(kGemmRank, {operand},
            {"{} of shape {} has rank {}, {} needs 2", OperandRef(operand), *shape, shape->size(), in.call().name});
    return unknown_dims(2, Unknown::kTainted);
  }
  const bool turn_a = in.int_attribute("transA", 0) != 0, turn_b = in.int_attribute("transB", 0) != 0;
  Dims result = unknown_dims(2);
  if (x) result[0] = (*x)[turn_a ? 1 : 0];
  if (y) result[1] = (*y)[turn_b ? 0 : 1];
  const auto turned = [](std::span<const Dim> shape, bool turn) {
    return turn ? Dims{shape[1], shape[0]} : copy_dims(shape);
  };
  if (x && y) check_inner(in, turned(*x, turn_a), turned(*y, turn_b), a, b, kGemmInner);
  const auto addend = c < 0 ? std::nullopt : in.shape(c);
  // Until opset 6 the addend was stretched on request only.
  if (!addend || (in.call().domain.empty() && in.opset() < 7)) return result;
  // The product is not an operand: its rows are A's, its columns B's. Factors that do not fit each other may have to be
  // transposed, so that the addend is wrong only if it fits neither of their extents.
  const bool certain = !in.failed();
  const auto misfit = [&](Dim extent, Dim target, const auto& factor) {
    if (pool.bounds_from_two(extent).contains(1) || !pool.differ(extent, target)) return false;
    return certain || (factor && pool.differ(extent, (*factor)[0]) && pool.differ(extent, (*factor)[1]));
  };
  const bool columns = !addend->empty() && misfit(addend->back(), result[1], y);
  if (addend->size() <= 2 && !columns && !(addend->size() == 2 && misfit(addend->front(), result[0], x))) return result;
  if (addend->size() > 2 ||
      !pool.bounds(pool.sub(columns ? addend->back() : addend->front(), result[columns ? 1 : 0])).contains(0))
    in.fail(kGemmAddend, {c, columns ? b : a},
            {"{} of shape {} does not stretch to the product's shape {}", OperandRef(c), *addend, result});
  return result;
}

}  // namespace tensorlint::ops
