#include "runtime/values/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace tensorlint::runtime {
namespace {

class ParallelTest : public ::testing::Test {
 protected:
  ParallelTest() { set_thread_count(3); }
  ~ParallelTest() override { set_thread_count(1); }
};

TEST_F(ParallelTest, EachTaskRunsOnce) {
  for (int round = 0; round < 200; ++round) {
    std::vector<int> runs(100, 0);
    parallel_for(100, [&](std::int64_t task) { ++runs[static_cast<std::size_t>(task)]; });
    EXPECT_EQ(runs, std::vector<int>(100, 1));
  }
}

TEST_F(ParallelTest, RangesCoverAllElements) {
  std::vector<int> elements(1001, 0);
  parallel_ranges(1001, 100, [&](std::int64_t first, std::int64_t end) {
    EXPECT_LE(end - first, 100);
    for (std::int64_t i = first; i < end; ++i) ++elements[static_cast<std::size_t>(i)];
  });
  EXPECT_EQ(elements, std::vector<int>(1001, 1));
}

TEST_F(ParallelTest, TasksOfTasksRunOneAfterTheOther) {
  std::atomic<int> runs = 0;
  parallel_for(10, [&](std::int64_t) {
    int last = -1;
    parallel_for(10, [&](std::int64_t task) {
      EXPECT_EQ(task, last + 1);
      last = static_cast<int>(task);
      ++runs;
    });
  });
  EXPECT_EQ(runs, 100);
}

TEST_F(ParallelTest, AnExceptionIsThrownOnAndWorkGoesOnAfterwards) {
  const auto fails = [](std::int64_t task) {
    if (task == 7) throw std::runtime_error("seven");
  };
  EXPECT_THROW(parallel_for(50, fails), std::runtime_error);
  std::atomic<int> runs = 0;
  parallel_for(50, [&](std::int64_t) { ++runs; });
  EXPECT_EQ(runs, 50);
}

}  // namespace
}  // namespace tensorlint::runtime
