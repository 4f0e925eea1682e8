#include "ir/facts/dim.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace tensorlint {
namespace {

TEST(Dims, FollowPartsThatStandInPartsManyTimesOnce) {
  DimPool pool;
  const Dim n = pool.symbol("N"), m = pool.symbol("M");
  Dim nested = n;
  for (int depth = 0; depth < 16; ++depth) {
    const Dim square = pool.mul(nested, nested), cube = pool.mul(square, nested);
    nested = pool.floor_div(pool.add(pool.add(square, cube), nested), pool.add(square, pool.constant(3)));
  }
  ASSERT_FALSE(nested.is_unknown());
  EXPECT_EQ(pool.evaluate(nested, [](Dim) { return std::optional<std::int64_t>(0); }), 0);
  const Dim renamed =
      pool.substitute(nested, [&](Dim symbol) { return symbol == n ? std::optional(m) : std::nullopt; });
  EXPECT_EQ(pool.symbols(renamed), std::vector<Dim>{m});
  EXPECT_EQ(pool.to_text(nested).size(), 4096 + 3);
}

TEST(Dims, TextHasBracketsWhereASideOfADivisionHasBlanks) {
  DimPool pool;
  const Dim n = pool.symbol("N"), spaced = pool.symbol("two words"), three = pool.constant(3);
  const auto over_three = [&](Dim dim) { return pool.to_text(pool.floor_div(dim, three)); };
  EXPECT_EQ(over_three(n), "floor(N/3)");
  EXPECT_EQ(over_three(pool.floor_div(n, three)), "floor(floor(N/3)/3)");
  EXPECT_EQ(over_three(pool.add(n, pool.constant(1))), "floor((N + 1)/3)");
  EXPECT_EQ(over_three(spaced), "floor((two words)/3)");
  EXPECT_EQ(over_three(pool.mod(n, three)), "floor((mod(N, 3))/3)");
  EXPECT_EQ(pool.to_text(pool.sub(pool.constant(-2), pool.mul(three, n))), "-3*N - 2");
}

}  // namespace
}  // namespace tensorlint
