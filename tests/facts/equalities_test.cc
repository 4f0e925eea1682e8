#include "ir/facts/equalities.h"

#include <gtest/gtest.h>

namespace tensorlint {
namespace {

class EqualitiesTest : public testing::Test {
 protected:
  Dim plus(Dim a, std::int64_t b) { return pool_.add(a, pool_.constant(b)); }
  std::string applied(Dim dim) { return pool_.to_text(known_.apply(pool_, dim)); }

  DimPool pool_;
  Equalities known_;
  Dim n_ = pool_.symbol("N"), m_ = pool_.symbol("M"), k_ = pool_.symbol("K");
};

TEST_F(EqualitiesTest, YoungSymbolsGoFirst) {
  EXPECT_TRUE(known_.learn(pool_, n_, m_));
  EXPECT_EQ(applied(plus(m_, 1)), "N + 1");
  EXPECT_FALSE(known_.learn(pool_, m_, n_));
  EXPECT_TRUE(known_.learn(pool_, k_, m_));
  EXPECT_EQ(applied(pool_.sub(k_, n_)), "0");
}

TEST_F(EqualitiesTest, Expressions) {
  EXPECT_TRUE(known_.learn(pool_, plus(n_, 3), plus(m_, 1)));  // M = N + 2: M - 2 may be no extent
  EXPECT_EQ(applied(m_), "N + 2");
  EXPECT_TRUE(known_.learn(pool_, pool_.mul(pool_.constant(2), n_), k_));
  EXPECT_EQ(applied(k_), "2*N");
  const Dim halves = pool_.floor_div(pool_.symbol("H"), pool_.constant(2)),
            quarters = pool_.floor_div(pool_.symbol("W"), pool_.constant(4));
  EXPECT_FALSE(known_.learn(pool_, halves, quarters));  // no symbol stands alone
}

TEST_F(EqualitiesTest, NumbersAreLearntOfFreshSymbolsOnly) {
  const Dim fresh = pool_.fresh(1, 0, Unknown::kNotTracked), other = pool_.fresh(1, 1, Unknown::kDataDependent);
  EXPECT_FALSE(known_.learn(pool_, n_, pool_.constant(3)));
  EXPECT_TRUE(known_.learn(pool_, fresh, pool_.constant(3)));
  EXPECT_EQ(applied(fresh), "3");
  EXPECT_TRUE(known_.learn(pool_, n_, other));
  EXPECT_EQ(applied(other), "N");
}

TEST_F(EqualitiesTest, FreshSymbolsOutliveNone) {
  // The younger one may belong to one iteration.
  const Dim old = pool_.fresh(1, 0, Unknown::kNotTracked), young = pool_.fresh(2, 0, Unknown::kNotTracked);
  EXPECT_TRUE(known_.learn(pool_, old, plus(young, 0)));
  EXPECT_EQ(known_.apply(pool_, young), old);
  EXPECT_EQ(known_.apply(pool_, old), old);
}

TEST_F(EqualitiesTest, Ends) {
  for (int i = 0; i < 100; ++i)
    known_.learn(pool_, pool_.symbol("a" + std::to_string(i)), plus(pool_.symbol("a" + std::to_string(i + 1)), 1));
  EXPECT_EQ(applied(pool_.symbol("z")), "z");
  EXPECT_FALSE(known_.learn(pool_, n_, m_));
}

}  // namespace
}  // namespace tensorlint
