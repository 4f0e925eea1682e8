#include "base/meter.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file_bytes.h"
#include "tests/readers/temp_folder.h"

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

/// In memory by their bytes; nothing is read here.
TEST(Meter, LetsTablesBeReadOnceAndAgain) {
  const auto at = [](std::uintptr_t byte) { return reinterpret_cast<const void*>(std::uintptr_t{1} << 32 | byte); };
  constexpr std::uint64_t kHalf = Meter::kTablesAtLeast / 2;
  Meter meter(1), other(1'000'001), none;
  EXPECT_TRUE(meter.may_read(at(0), kHalf));
  EXPECT_TRUE(meter.may_read(at(0), kHalf)) << "the same one";
  EXPECT_FALSE(meter.may_read(at(kHalf), kHalf + 64)) << "4 bytes were given for the input's own";
  EXPECT_TRUE(meter.may_read(at(kHalf), kHalf)) << "a smaller one";
  EXPECT_FALSE(meter.may_read(at(2 * kHalf), 64));
  EXPECT_TRUE(meter.may_read(at(0), kHalf));
  EXPECT_TRUE(other.may_read(at(0), kHalf) && other.may_read(at(kHalf), kHalf));
  EXPECT_TRUE(none.may_read(at(0), kHalf * 100));
}

/// In a mapped file by the blocks of 64 KiB that they lie in, wherever it is mapped.
TEST(Meter, CountsBlocksOfAFileFromItsBeginning) {
  constexpr std::uint64_t kBlock = std::uint64_t{64} << 10, kHalf = Meter::kTablesAtLeast / 2, kBlocks = kHalf / kBlock;
  const TempFolder folder;
  const auto file = FileBytes::open(folder.write("tables", std::string(4 * kHalf, '\0')), 0);
  ASSERT_TRUE(file.ok());
  const auto at = [&](std::uint64_t block, std::uint64_t byte = 0) {
    return static_cast<const void*>((*file)->bytes().data() + block * kBlock + byte);
  };
  Meter meter(1);
  meter.read_tables_of(file->get());
  EXPECT_TRUE(meter.may_read(at(0), kHalf));
  EXPECT_TRUE(meter.may_read(at(0), kHalf)) << "the same one";
  EXPECT_FALSE(meter.may_read(at(kBlocks, 1), kHalf)) << "a block more";
  EXPECT_TRUE(meter.may_read(at(kBlocks, 1), kHalf / 2)) << "a smaller one";
  EXPECT_TRUE(meter.may_read(at(1, 7), kHalf / 2)) << "within another one";
  EXPECT_TRUE(meter.may_read(at(kBlocks / 2), kHalf)) << "half of it within others";
  EXPECT_FALSE(meter.may_read(at(5 * kBlocks / 2), kHalf / 2));
  EXPECT_TRUE(meter.may_read(at(0), kHalf));

  Meter few(1);
  few.read_tables_of(file->get());
  std::uint64_t read = 0;
  for (std::uint64_t i = 0; 3 * i + 1 < 4 * kBlocks; ++i) read += few.may_read(at(3 * i, kBlock - 8), 16) ? 1 : 0;
  EXPECT_EQ(read, Meter::kTablesAtLeast / (2 * kBlock)) << "each of two blocks";
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

const void* volatile read_by_nobody;  // else a compiler may leave out what it points to

/// What this program takes from the heap is counted, other than under sanitizers.
bool counts_allocations() {
  const std::uint64_t before = allocations.steps;
  const std::vector<char> taken(1);
  read_by_nobody = taken.data();
  return allocations.steps > before;
}

TEST(Meter, SeesMemoryThatNoStoreCounts) {
  if (!counts_allocations()) GTEST_SKIP() << "sanitizers have an operator new of their own";
  const Meter meter(1), everything;
  {
    const std::vector<char> most(meter.memory_allowed() / 2);
    EXPECT_FALSE(meter.is_spent());
    const std::vector<char> more(meter.memory_allowed() / 4);
    read_by_nobody = most.data();
    read_by_nobody = more.data();
    EXPECT_TRUE(meter.is_spent());
    EXPECT_FALSE(everything.is_spent());
  }
  EXPECT_TRUE(meter.is_spent()) << "what was given up does not come back";
  EXPECT_FALSE(Meter(1).is_spent()) << "what was taken before is another's";
}

TEST(Meter, ChargesAllocationsThatNobodyCharges) {
  if (!counts_allocations()) GTEST_SKIP() << "sanitizers have an operator new of their own";
  Meter meter(1);
  std::uint64_t allocated = 0;
  while (!meter.is_spent()) {
    const std::vector<char> taken(++allocated % 100 + 1);
    read_by_nobody = taken.data();
    ASSERT_LT(allocated, meter.heap_steps_allowed());
  }
  EXPECT_GT(allocated, meter.heap_steps_allowed() / 8);
  EXPECT_EQ(meter.steps(), 0U);
  EXPECT_GE(meter.heap_steps(), meter.heap_steps_allowed() / 4 * 3);
  meter.begin_reports();
  EXPECT_FALSE(meter.is_spent());
  EXPECT_TRUE(meter.is_partial());
}

TEST(Meter, ForgetsMemoryThatIsGivenBack) {
  const Meter meter(1);
  for (int i = 0; i < 10; ++i) {
    const std::vector<char> taken(meter.memory_allowed() / 2);
    EXPECT_FALSE(meter.is_spent());
  }
  struct alignas(256) Wide {
    char bytes[256];
  };
  for (std::uint64_t i = 0; i < meter.memory_allowed() / 1000; ++i) {
    const auto aligned = std::make_unique<Wide>();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned.get()) % alignof(Wide), 0U);
  }
  EXPECT_FALSE(meter.is_spent());
}

}  // namespace
}  // namespace tensorlint
