#include "kernels/loss/plan.h"

#include <algorithm>

#include "kernels/common/combine.h"
#include "kernels/common/request.h"

namespace tensorlint::kernels {
namespace {

// 16 rounds of 2 vectors of each operand in flight: 128 KiB of each operand a block.
constexpr std::int64_t kStreamUnits = std::int64_t{kThreads} * 2 * 16;
constexpr std::int64_t kMaxStreamBlocks = 16384;
constexpr std::int64_t kMaxWalkingBlocks = 8192;
// Two for each of the 132 SMs of the largest part in view.
constexpr std::int64_t kWantedBlocks = 264;

}  // namespace

StreamPlan plan_stream(std::int64_t elements, int vector_size) {
  const std::int64_t units = elements / vector_size;
  const std::int64_t wanted = std::clamp<std::int64_t>(ceil_div(units, kStreamUnits), 1, kMaxStreamBlocks);
  StreamPlan plan;
  plan.split_length = ceil_div(std::max<std::int64_t>(units, 1), wanted);
  plan.split_length = ceil_div(plan.split_length, 2 * kThreads) * 2 * kThreads;
  plan.blocks = static_cast<unsigned>(std::max<std::int64_t>(1, ceil_div(units, plan.split_length)));
  return plan;
}

unsigned walking_blocks(std::int64_t items, std::int64_t per_block) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(ceil_div(items, per_block), 1, kMaxWalkingBlocks));
}

Status plan_class_columns(std::int64_t rows, std::int64_t classes, std::int64_t inner, int vector_size,
                          ClassPlan* plan) {
  if (rows < 0 || classes < 0 || inner < 0) return Status::kBadShape;
  *plan = ClassPlan{};
  plan->width = inner % vector_size == 0 ? vector_size : 1;
  const std::int64_t strips = rows * inner / plan->width;
  // Where blocks are few, narrower tiles: more of them, and more threads to a position's classes. Down to 64 contiguous
  // bytes.
  const unsigned fewest = static_cast<unsigned>(plan->width == 1 ? vector_size : 1) * 4;
  plan->units = kColumnUnits;
  while (plan->units > fewest && ceil_div(strips, plan->units) < kWantedBlocks && kThreads / plan->units * 2 <= classes)
    plan->units /= 2;
  plan->blocks = walking_blocks(strips, plan->units);
  return Status::kOk;
}

Status plan_class_rows(std::int64_t rows, std::int64_t classes, int vector_size, bool second_pass, int capability,
                       std::size_t part_bytes, ClassPlan* plan) {
  if (rows < 0 || classes < 0 || part_bytes < 16) return Status::kBadShape;
  *plan = ClassPlan{};
  if (rows == 0) return Status::kOk;
  const std::int64_t units = ceil_div(classes, vector_size);
  plan->part = units;
  if (units <= std::int64_t{kWarpLanes} * 4) {  // 4 loads a lane: the second pass finds the row in L1
    plan->lanes = 1;
    while (plan->lanes < units && plan->lanes < kWarpLanes) plan->lanes *= 2;
    plan->blocks = walking_blocks(rows, kThreads / plan->lanes);
    return Status::kOk;
  }
  const auto limit = static_cast<std::int64_t>(part_bytes / 16);
  constexpr std::int64_t kRowsOfBlock = kThreads / kWarpLanes;
  // A warp a row up to where the rows of a block fill its shared memory: a block a row has one load under way there,
  // and waits at barriers longer than it reads. It takes enough rows to fill the device.
  if (units * kRowsOfBlock <= limit && rows >= kWantedBlocks * kRowsOfBlock) {
    plan->lanes = kWarpLanes;
    plan->cached = second_pass;
    if (plan->cached) plan->shared_bytes = static_cast<std::size_t>(units * kRowsOfBlock) * 16;
    plan->blocks = walking_blocks(rows, kRowsOfBlock);
    return Status::kOk;
  }
  plan->lanes = kThreads;
  if (capability >= 90) {
    while (plan->cluster < kMaxCluster && ceil_div(units, plan->cluster) > limit) plan->cluster *= 2;
  }
  plan->part = ceil_div(units, plan->cluster);
  plan->cached = second_pass && plan->part <= limit;
  if (plan->cached) plan->shared_bytes = static_cast<std::size_t>(plan->part) * 16;
  plan->blocks = static_cast<unsigned>(std::min<std::int64_t>(rows, kMaxWalkingBlocks / plan->cluster)) * plan->cluster;
  return Status::kOk;
}

}  // namespace tensorlint::kernels
