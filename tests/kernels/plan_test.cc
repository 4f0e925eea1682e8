// The launch plan is a plain function: every element belongs to exactly one split, and only shapes decide.

#include "kernels/reduction/plan.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "kernels/common/combine.h"
#include "kernels/common/workspace.h"

namespace tensorlint::kernels {
namespace {

TEST(FoldAxes, MergesNeighboursAndDropsOnes) {
  const std::int64_t extents[] = {2, 3, 1, 5, 7};
  const int axes[] = {0, 1, 4};
  FoldedAxes folded;
  ASSERT_EQ(fold_axes(extents, 5, axes, 3, &folded), Status::kOk);
  EXPECT_TRUE(folded.inner_reduced);
  EXPECT_EQ(folded.inner, 7);
  EXPECT_EQ(folded.outer_kept, 5);
  EXPECT_EQ(folded.outer_reduced, 6);
  EXPECT_EQ(folded.kept.groups, 1);
  EXPECT_EQ(folded.kept.strides[0], 7);
  EXPECT_EQ(folded.reduced.strides[0], 35);
}

TEST(FoldAxes, RefusesTooManyGroupsAndRepeatedAxes) {
  std::int64_t extents[40];
  int axes[20];
  for (int i = 0; i < 40; ++i) extents[i] = 2;
  for (int i = 0; i < 20; ++i) axes[i] = 2 * i;
  FoldedAxes folded;
  EXPECT_EQ(fold_axes(extents, 40, axes, 20, &folded), Status::kTooManyAxisGroups);
  const int twice[] = {1, -39};
  EXPECT_EQ(fold_axes(extents, 40, twice, 2, &folded), Status::kBadShape);
}

TEST(SmallDivisor, DividesExactly) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 100000; ++i) {
    const auto n = static_cast<std::int32_t>(random() >> (33 + random() % 31));
    const auto d = static_cast<std::int32_t>(random() >> (33 + random() % 31)) | 1;
    for (const std::int32_t by : {d, d == 1 ? 1 : d - 1, 0x7fffffff})
      ASSERT_EQ(SmallDivisor::of(by).quotient(n), n / by) << n << " / " << by;
    const std::int32_t multiple = n / d * d;
    if (multiple > 0) {
      ASSERT_EQ(SmallDivisor::of(d).quotient(multiple), multiple / d);
      ASSERT_EQ(SmallDivisor::of(d).quotient(multiple - 1), (multiple - 1) / d);
    }
    ASSERT_EQ(SmallDivisor::of(d).quotient(0x7fffffff), 0x7fffffff / d);
  }
}

TEST(Divisor, DividesExactly) {
  std::mt19937_64 random(3);
  const auto check = [](std::int64_t n, std::int64_t d) {
    ASSERT_EQ(Divisor::of(d).quotient(n), n / d) << n << " / " << d;
  };
  for (std::int64_t d = 1; d < 300; ++d) {
    for (std::int64_t n = 0; n < 1000; ++n) check(n, d);
  }
  for (int i = 0; i < 200000; ++i) {
    const auto d = static_cast<std::int64_t>(random() >> (2 + random() % 62)) + 1;
    const std::int64_t largest = std::numeric_limits<std::int64_t>::max();
    const std::int64_t multiple = largest / d * d;
    for (const std::int64_t n : {static_cast<std::int64_t>(random() >> 1), multiple, multiple - 1, largest})
      check(n, d);
  }
}

TEST(Plan, CoversEveryShapeOnce) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 20000; ++round) {
    const auto extent = [&] { return static_cast<std::int64_t>(random() % (std::uint64_t{1} << random() % 21)); };
    const std::int64_t extents[] = {extent(), extent(), extent() % 300};
    const int mask = static_cast<int>(random() % 8);
    int axes[3];
    int count = 0;
    for (int i = 0; i < 3; ++i) {
      if (mask >> i & 1) axes[count++] = i;
    }
    const int size = 2 << random() % 4;
    FoldedAxes folded;
    ASSERT_EQ(fold_axes(extents, 3, axes, count, &folded), Status::kOk);
    ReductionPlan plan;
    const bool merges = random() % 2 == 0;
    const Status status = plan_reduction(folded, size, 16, merges, &plan);
    if (status == Status::kBadShape) continue;  // more than 2^31 - 1 blocks
    ASSERT_EQ(status, Status::kOk);
    if (folded.results() == 0) {
      ASSERT_EQ(plan.blocks, 0U);
      continue;
    }
    ASSERT_TRUE(plan.merge == 1 || merges);
    ASSERT_EQ(plan.by_columns, !folded.inner_reduced || plan.merge > 1);
    if (!plan.by_columns) {
      const std::int64_t units = folded.outer_reduced * ((folded.inner + size - 1) / size);
      ASSERT_GE(plan.split_length * plan.splits, units);
      ASSERT_TRUE(plan.splits == 1 || plan.split_length * (plan.splits - 1) < units);
      ASSERT_EQ(plan.lanes & (plan.lanes - 1), 0U);
      ASSERT_GE(std::int64_t{plan.blocks} * (kThreads / plan.lanes) * plan.rows_each, folded.outer_kept * plan.splits);
    } else {
      ASSERT_LE(plan.tile * plan.depth * plan.groups, kThreads);
      const FoldedAxes& columns = plan.columns;
      ASSERT_GE(plan.tiles * plan.tile * plan.width, columns.inner);
      ASSERT_GE(plan.split_length * plan.splits, columns.outer_reduced);
      ASSERT_EQ(columns.outer_kept * columns.outer_reduced * columns.inner + columns.outer_kept * plan.rest,
                folded.results() * folded.elements_each());
      ASSERT_EQ(columns.outer_kept * columns.inner, folded.results() * plan.merge);
      // All columns of a result are one tile's.
      ASSERT_TRUE(plan.merge == 1 || columns.inner % plan.width == 0);
      ASSERT_EQ(plan.tile * static_cast<unsigned>(plan.width) % plan.merge, 0U);
      ASSERT_TRUE(!plan.merged_apart || plan.tiles == 1);
      ASSERT_TRUE(plan.splits == 1 || plan.groups == 1);
      ASSERT_GE(std::int64_t{plan.blocks} * plan.groups, columns.outer_kept * plan.tiles * plan.splits);
      ASSERT_TRUE(plan.tiles == 1 || plan.groups == 1);
    }
    ASSERT_TRUE(plan.splits > 1 || plan.workspace_bytes == 0);
    if (plan.splits > 1) {
      ASSERT_LE(plan.blocks / plan.splits, kMaxTickets);
      ASSERT_GT(plan.workspace_bytes, kTicketBytes);
    }
  }
}

}  // namespace
}  // namespace tensorlint::kernels
