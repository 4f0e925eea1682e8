#include "ir/ops/matmul.h"

#include <fmt/format.h>

namespace tensorlint {

const Constraint kMatMulInner{"matmul_inner", ConstraintKind::kShapes, "last extent of the first operand = second to last extent of the second"};
const Constraint kMatMulRank{"matmul_rank", ConstraintKind::kShapes, "operands have at least one axis"};
const Constraint kMatMulBroadcast{"matmul_broadcast", ConstraintKind::kShapes, "axes before the last two broadcast"};

std::optional<Dims> matmul_shape(Inference& in, std::span<const Dim> x, std::span<const Dim> y, int a, int b) {
  for (const auto& [operand, shape] : {std::pair(a, x), std::pair(b, y)}) {
    if (!shape.empty()) continue;
    in.fail(kMatMulRank, {operand}, fmt::format("{{{}}} is a scalar, {} needs at least 1 axis", operand, in.call().name));
    return std::nullopt;
  }
  const bool vector_x = x.size() == 1, vector_y = y.size() == 1;
  same_extent(in, x.back(), vector_y ? y[0] : y[y.size() - 2], a, b, kMatMulInner, "inner extents");
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

}  // namespace tensorlint
