#include "base/meter.h"

#include <gtest/gtest.h>

namespace tensorlint {
namespace {

TEST(Meter, AllowsEverythingWhereNoInputIsGiven) {
  Meter meter;
  meter.charge(Meter::kStepsAtLeast * 1000);
  meter.keep(Meter::kMemoryAtLeast * 1000);
  EXPECT_FALSE(meter.is_spent());
  EXPECT_FALSE(meter.is_partial());
}

TEST(Meter, AllowsMoreForMoreBytes) {
  const Meter small(1), large(1'000'000);
  EXPECT_EQ(large.steps_allowed() - small.steps_allowed(), 999'999 * Meter::kStepsPerByte);
  EXPECT_EQ(large.memory_allowed() - small.memory_allowed(), 999'999 * Meter::kMemoryPerByte);
}

TEST(Meter, LetsTablesBeReadOnceAndAgain) {
  Meter meter(1), other(1'000'001), none;
  const char tables[4]{};
  constexpr std::uint64_t kHalf = Meter::kTablesAtLeast / 2;
  EXPECT_TRUE(meter.may_read(&tables[0], kHalf));
  EXPECT_TRUE(meter.may_read(&tables[0], kHalf)) << "the same one";
  EXPECT_FALSE(meter.may_read(&tables[1], kHalf)) << "a page more";
  EXPECT_TRUE(meter.may_read(&tables[2], kHalf / 2)) << "a smaller one";
  EXPECT_TRUE(meter.may_read(&tables[0], kHalf));
  EXPECT_TRUE(other.may_read(&tables[0], kHalf) && other.may_read(&tables[1], kHalf));
  EXPECT_TRUE(none.may_read(&tables[0], kHalf * 100));
}

TEST(Meter, KeepsAQuarterBackForReports) {
  Meter meter(1);
  meter.charge(meter.steps_allowed() / 4 * 3 - 1);
  EXPECT_FALSE(meter.is_spent());
  meter.charge(4);
  EXPECT_TRUE(meter.is_spent());
  meter.begin_reports();
  EXPECT_FALSE(meter.is_spent());
  EXPECT_TRUE(meter.is_partial()) << "what the search left out stays left out";
  meter.charge(meter.steps_allowed() / 4);
  EXPECT_TRUE(meter.is_spent());
}

TEST(Meter, IsNotPartialWhereOnlyReportsTakeTheRest) {
  Meter meter(1);
  meter.charge(meter.steps_allowed() / 2);
  meter.begin_reports();
  meter.charge(meter.steps_allowed() / 3);
  EXPECT_FALSE(meter.is_partial());
}

TEST(Meter, CountsTheMostMemoryOfStores) {
  Meter meter(1);
  for (int store = 0; store < 10; ++store) {  // one after the other
    KeptMemory kept(meter);
    kept.add(meter.memory_allowed() / 5);
    kept.add(meter.memory_allowed() / 5);
    EXPECT_FALSE(meter.is_spent());
  }
  {
    KeptMemory one(meter), other(meter);
    one.add(meter.memory_allowed() / 2);
    other.add(meter.memory_allowed() / 2);
    EXPECT_TRUE(meter.is_spent());
  }
  EXPECT_TRUE(meter.is_spent()) << "what was given up does not come back";
}

}  // namespace
}  // namespace tensorlint
