// Values of a device in one block: never two in one place at one time, and little more than the largest live set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <vector>

#include "runtime/executor/memory_plan.h"
#include "tests/sanitized.h"

namespace tensorlint::runtime {
namespace {

void expect_disjoint(const std::vector<MemoryLifetime>& values, const MemoryPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % (values[i].bytes >= kLargeValue ? kLargeStep : kMemoryStep), 0U);
    EXPECT_LE(plan.offsets[i] + values[i].bytes, plan.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const bool meet = values[i].first <= values[j].last && values[j].first <= values[i].last;
      const bool overlap =
          plan.offsets[i] < plan.offsets[j] + values[j].bytes && plan.offsets[j] < plan.offsets[i] + values[i].bytes;
      ASSERT_FALSE(meet && overlap) << i << " and " << j;
    }
  }
}

std::uint64_t largest_live_set(const std::vector<MemoryLifetime>& values, std::size_t moments) {
  std::uint64_t most = 0;
  for (std::size_t moment = 0; moment < moments; ++moment) {
    std::uint64_t live = 0;
    for (const MemoryLifetime& value : values)
      if (value.first <= moment && moment <= value.last)
        live += (value.bytes + kMemoryStep - 1) / kMemoryStep * kMemoryStep;
    most = std::max(most, live);
  }
  return most;
}

TEST(MemoryPlans, NothingAndEmptyValues) {
  EXPECT_EQ(plan_memory({}).bytes, 0U);
  const MemoryPlan plan = plan_memory(std::vector<MemoryLifetime>{{0, 0, 3}, {1, 1, 2}, {0, 2, 2}});
  EXPECT_EQ(plan.bytes, kMemoryStep);
  EXPECT_EQ(plan.live_at, 1U);
}

TEST(MemoryPlans, AValueTakesThePlaceOfOneThatHasEnded) {
  const std::vector<MemoryLifetime> values{{400, 0, 1}, {400, 1, 2}, {400, 2, 3}, {800, 4, 5}};
  const MemoryPlan plan = plan_memory(values);
  expect_disjoint(values, plan);
  EXPECT_EQ(plan.bytes, 800U);
  EXPECT_EQ(plan.live_bytes, 800U);
}

TEST(MemoryPlans, WhatNoMemoryHasIsReported) {
  const std::uint64_t huge = std::uint64_t{1} << 61;
  EXPECT_GE(plan_memory(std::vector<MemoryLifetime>{{huge, 0, 1}, {huge, 0, 1}, {huge, 1, 1}}).bytes, huge);
  EXPECT_EQ(plan_memory(std::vector<MemoryLifetime>{{UINT64_MAX - 3, 5, 6}}).live_at, 5U);
}

TEST(MemoryPlans, RandomLifetimesTakeLittleMoreThanTheLargestLiveSet) {
  double worst = 1;
  for (unsigned seed = 0; seed < 300; seed += stride(9)) {
    std::mt19937 random(seed);
    const auto draw = [&](std::size_t below) { return static_cast<std::size_t>(random()) % below; };
    const std::size_t moments = 4 + draw(120);
    const std::size_t count = 1 + draw(seed % 3 == 0 ? 20 : 160);
    std::vector<MemoryLifetime> values;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t first = draw(moments);
      // Mostly short ones, as of a chain, and some that live on, as residuals do.
      const std::size_t length = draw(8) == 0 ? draw(moments) : draw(4);
      values.push_back({seed % 2 == 0 ? 1 + draw(1 << 20) : std::uint64_t{1} << (6 + draw(15)), first,
                        std::min(first + length, moments - 1)});
    }
    const MemoryPlan plan = plan_memory(values);
    expect_disjoint(values, plan);
    EXPECT_EQ(plan.live_bytes, largest_live_set(values, moments)) << seed;
    worst = std::max(worst, static_cast<double>(plan.bytes) / static_cast<double>(plan.live_bytes));
    EXPECT_EQ(plan.offsets, plan_memory(values).offsets) << seed;
  }
  EXPECT_LE(worst, 1.1);
  RecordProperty("worst_ratio", std::to_string(worst));
}

TEST(MemoryPlans, SeveralGraphsShareTheirPairs) {
  std::mt19937 random(3);
  std::vector<MemoryLifetime> values;
  for (std::size_t i = 0; i < 300; ++i) {
    const std::size_t first = random() % 100;
    values.push_back({1 + random() % (1 << 20), first, first + random() % 20});
  }
  const std::size_t once = values.size() * values.size();
  std::size_t pairs_left = 3 * once;
  expect_disjoint(values, plan_memory(values, pairs_left));
  EXPECT_EQ(pairs_left, 0U);
  // The next graph is placed all the same, in one order.
  expect_disjoint(values, plan_memory(values, pairs_left));
  EXPECT_EQ(pairs_left, 0U);
}

TEST(MemoryPlans, ManyValuesArePlacedWithoutComparingPairs) {
  std::mt19937 random(1);
  const auto draw = [&](std::size_t below) { return static_cast<std::size_t>(random()) % below; };
  for (const std::size_t length : {4U, 100'000U}) {
    constexpr std::size_t kCount = 40'000;
    std::vector<MemoryLifetime> values;
    for (std::size_t i = 0; i < kCount; ++i)
      values.push_back({draw(16) == 0 ? 0 : draw(draw(8) == 0 ? 1 << 20 : 1 << 10), i, i + draw(length)});
    const MemoryPlan plan = plan_memory(values);
    EXPECT_LE(plan.bytes, plan.live_bytes + plan.live_bytes / 4);
    // Those that live at a moment, by where they begin.
    std::map<std::uint64_t, std::uint64_t> live;
    std::multimap<std::size_t, std::uint64_t> ends;
    for (std::size_t i = 0; i < kCount; ++i) {
      while (!ends.empty() && ends.begin()->first < i) {
        live.erase(ends.begin()->second);
        ends.erase(ends.begin());
      }
      const std::uint64_t begin = plan.offsets[i], end = begin + values[i].bytes;
      EXPECT_EQ(begin % (values[i].bytes >= kLargeValue ? kLargeStep : kMemoryStep), 0U);
      ASSERT_LE(end, plan.bytes);
      if (values[i].bytes == 0) continue;
      const auto next = live.lower_bound(begin);
      ASSERT_TRUE(next == live.end() || next->first >= end) << i;
      ASSERT_TRUE(next == live.begin() || std::prev(next)->second <= begin) << i;
      live[begin] = end;
      ends.emplace(values[i].last, begin);
    }
  }
}

}  // namespace
}  // namespace tensorlint::runtime
