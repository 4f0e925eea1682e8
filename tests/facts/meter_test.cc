// What is left of dims and facts when the work that an input may cost is done.
#include "base/meter.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "ir/facts/dim.h"
#include "ir/facts/fact.h"

namespace tensorlint {
namespace {

std::shared_ptr<Meter> meter_of_one_byte() { return std::make_shared<Meter>(std::uint64_t{1}); }

TEST(MeteredDims, ArithmeticBecomesUnknownAndKeepsTheReason) {
  const auto meter = meter_of_one_byte();
  DimPool pool(meter);
  const Dim n = pool.symbol("N"), m = pool.symbol("M"), two = pool.constant(2);
  const Dim sum = pool.add(n, m);
  meter->charge(meter->steps_allowed());
  for (const Dim dim : {pool.add(n, two), pool.sub(sum, n), pool.mul(n, m), pool.floor_div(sum, two),
                        pool.mod(sum, two), pool.min(n, m), pool.max(n, m), pool.broadcast(n, m),
                        pool.substitute(sum, [&](Dim) { return std::optional(m); })}) {
    EXPECT_EQ(dim, Dim(Unknown::kBudget));
    EXPECT_EQ(to_text(dim.reason()), "the input needs more work than its size allows");
  }
  // Nothing is proven any more, and nothing wrong is.
  EXPECT_FALSE(pool.differ(n, sum));
  EXPECT_FALSE(pool.never_equal(sum, pool.add(sum, two)));
  EXPECT_FALSE(pool.is_multiple(sum, n));
}

TEST(MeteredDims, ConstantsAndSymbolsOfShortDimsStayExact) {
  const auto meter = meter_of_one_byte();
  DimPool pool(meter);
  const Dim n = pool.symbol("N"), m = pool.symbol("M"), sum = pool.add(n, m);
  meter->charge(meter->steps_allowed());
  EXPECT_EQ(pool.as_constant(pool.add(pool.constant(2), pool.constant(3))), 5);
  EXPECT_EQ(pool.as_constant(pool.constant(-7)), -7);
  EXPECT_EQ(pool.symbols(sum), (std::vector<Dim>{n, m}));
  EXPECT_EQ(pool.to_text(sum), "N + M");
  EXPECT_EQ(pool.evaluate(pool.constant(3), [](Dim) { return std::optional<std::int64_t>(4); }), 3);
  EXPECT_EQ(pool.evaluate(sum, [](Dim) { return std::optional<std::int64_t>(4); }), std::nullopt);
  EXPECT_TRUE(pool.equal(sum, sum));
}

/// Walks of 2,000 extents that share thousands of parts took a minute after the search had ended.
TEST(MeteredDims, AreNotWalkedOnceSpent) {
  const auto meter = meter_of_one_byte();
  DimPool pool(meter);
  Dim sum = pool.constant(1);
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) sum = pool.add(sum, pool.symbol(name));
  EXPECT_EQ(pool.symbols(sum).size(), 8U);
  meter->charge(meter->steps_allowed());
  const std::uint64_t before = meter->steps();
  EXPECT_TRUE(pool.symbols(sum).empty());
  EXPECT_EQ(pool.evaluate(sum, [](Dim) { return std::optional<std::int64_t>(4); }), std::nullopt);
  EXPECT_EQ(meter->steps(), before);
}

TEST(MeteredDims, AreChargedForTermsThatAreLookedAt) {
  const auto meter = std::make_shared<Meter>();
  DimPool pool(meter);
  Dim sum = pool.constant(1);
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"})
    sum = pool.add(sum, pool.symbol(name));
  const std::uint64_t before = meter->steps(), memory = meter->most_memory();
  EXPECT_EQ(pool.mul(sum, sum), Dim(Unknown::kTooComplex));  // made, and dropped
  EXPECT_GT(meter->steps() - before, 15 * 15);
  EXPECT_EQ(meter->most_memory(), memory);
}

TEST(MeteredFacts, ReleaseTheirMemory) {
  const auto meter = std::make_shared<Meter>();
  std::uint64_t most = 0;
  for (int store = 0; store < 2; ++store) {
    FactStore facts(meter);
    std::vector<Dim> dims;
    for (std::int64_t extent = 0; extent < 64; ++extent) {
      dims.push_back(facts.dims().constant(-extent));
      facts.intern_shape(dims);
    }
    if (store == 0) most = meter->most_memory();
  }
  EXPECT_GT(most, 64 * 32 * sizeof(Dim));
  EXPECT_EQ(meter->most_memory(), most);
}

}  // namespace
}  // namespace tensorlint
