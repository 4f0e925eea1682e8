#include "kernels/product/plan.h"

#include <algorithm>
#include <initializer_list>

#include "kernels/common/request.h"

namespace tensorlint::kernels {
namespace {

// One for each SM of the largest part in view.
constexpr std::int64_t kBusyTiles = 132;
constexpr std::int64_t kMostBlocks = 0x7fffffff;
constexpr std::int64_t kTileEdge = 64;

}  // namespace

void fold_batch(MatrixProduct* request) {
  int kept = 0;
  for (int axis = 0; axis < request->batch_rank; ++axis) {
    const std::int64_t extent = request->batch[axis];
    if (extent == 1) continue;
    const auto steps_on = [&](const MatrixOperand& operand) {
      return operand.batch[kept - 1] == operand.batch[axis] * extent;
    };
    const bool merges = kept > 0 && steps_on(request->a) && steps_on(request->b) && steps_on(request->addend);
    if (!merges) request->batch[kept++] = 1;
    request->batch[kept - 1] *= extent;
    for (MatrixOperand* const operand : {&request->a, &request->b, &request->addend})
      operand->batch[kept - 1] = operand->batch[axis];
  }
  request->batch_rank = kept;
  if (kept == 0) return;
  const int last = kept - 1;
  if (request->b.batch[last] != 0 || request->a.batch[last] != request->a.row * request->m ||
      request->addend.batch[last] != request->addend.row * request->m)
    return;
  request->m *= request->batch[last];
  request->batch_rank = last;
}

Status plan_product(std::int64_t m, std::int64_t n, std::int64_t stack, Dtype dtype, ProductPlan* plan) {
  *plan = ProductPlan{};
  const auto count = [&](std::int64_t edge, std::int64_t* tiles) {
    std::int64_t matrix = 0;
    return !__builtin_mul_overflow(ceil_div(m, edge), ceil_div(n, edge), &matrix) &&
           !__builtin_mul_overflow(matrix, stack, tiles);
  };
  std::int64_t large = 0;
  if (!count(kTileEdge, &plan->tiles) || !count(kTileEdge * kLargeTile, &large)) return Status::kBadShape;
  if (dtype != Dtype::kFloat64 && m > kTileEdge && n > kTileEdge && large >= kBusyTiles) {
    plan->tile = kLargeTile;
    plan->tiles = large;
  }
  plan->row_tiles = ceil_div(m, kTileEdge * plan->tile);
  plan->column_tiles = ceil_div(n, kTileEdge * plan->tile);
  plan->blocks = static_cast<unsigned>(std::min(plan->tiles, kMostBlocks));
  return Status::kOk;
}

}  // namespace tensorlint::kernels
