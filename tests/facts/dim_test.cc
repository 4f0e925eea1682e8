#include "ir/facts/dim.h"
#include "base/checked.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "tests/sanitized.h"

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

TEST(Dims, ListTheirSymbolsWhetherTheseAreFewOrMany) {
  DimPool pool;
  std::vector<Dim> symbols;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) symbols.push_back(pool.symbol(name));
  for (std::size_t count = 1; count <= symbols.size(); ++count) {
    const std::vector<Dim> expected(symbols.begin(), symbols.begin() + static_cast<std::ptrdiff_t>(count));
    Dim sum = pool.constant(1), nested = pool.constant(1);
    for (std::size_t i = count; i-- > 0;) {  // the last one first: lists are sorted
      sum = pool.add(sum, symbols[i]);
      nested = pool.floor_div(pool.add(nested, symbols[i]), pool.constant(3));
    }
    EXPECT_EQ(pool.symbols(sum), expected);
    EXPECT_EQ(pool.symbols(nested), expected);
    EXPECT_EQ(pool.symbols(pool.max(pool.mul(sum, symbols[0]), nested)), expected);
  }
  EXPECT_TRUE(pool.symbols(pool.constant(7)).empty());
  EXPECT_TRUE(pool.symbols(Dim()).empty());
}

TEST(Dims, TextHasBracketsWhereASideOfADivisionHasBlanks) {
  DimPool pool;
  const Dim n = pool.symbol("N"), spaced = pool.symbol("two words"), three = pool.constant(3);
  const auto over_three = [&](Dim dim) { return pool.to_text(pool.floor_div(dim, three)); };
  EXPECT_EQ(over_three(n), "floor(N/3)");
  EXPECT_EQ(pool.to_text(pool.floor_div(n, pool.floor_div(pool.symbol("M", 3), three))), "floor(N/floor(M/3))");
  EXPECT_EQ(over_three(pool.add(n, pool.constant(1))), "floor((N + 1)/3)");
  EXPECT_EQ(over_three(spaced), "floor(\"two words\"/3)");
  EXPECT_EQ(over_three(pool.mod(n, pool.constant(5))), "floor((mod(N, 5))/3)");
  EXPECT_EQ(pool.to_text(pool.sub(pool.constant(-2), pool.mul(three, n))), "-3*N - 2");
}

TEST(Dims, SimplifyWhatConvolutionsAndSlicesMake) {
  DimPool pool;
  const Dim h = pool.symbol("H"), seq = pool.symbol("seq"), m = pool.symbol("M");
  const auto number = [&](std::int64_t value) { return pool.constant(value); };
  const auto halved = [&](Dim dim) {  // kernel 3, padding 1, stride 2
    return pool.add(pool.floor_div(pool.sub(dim, number(1)), number(2)), number(1));
  };
  EXPECT_EQ(pool.to_text(halved(h)), "floor((H + 1)/2)");
  EXPECT_EQ(pool.to_text(halved(halved(halved(h)))), "floor((H + 7)/8)");
  EXPECT_EQ(pool.to_text(pool.floor_div(pool.floor_div(h, number(2)), number(2))), "floor(H/4)");
  EXPECT_EQ(pool.to_text(pool.floor_div(pool.add(pool.mul(number(2), h), number(1)), number(4))), "floor(H/2)");
  EXPECT_EQ(pool.to_text(pool.floor_div(pool.mod(h, number(4)), number(4))), "0");
  EXPECT_EQ(pool.to_text(pool.mod(pool.add(pool.mul(number(4), h), m), number(4))), "mod(M, 4)");
  EXPECT_EQ(pool.to_text(pool.mod(pool.mod(h, number(8)), number(4))), "mod(H, 4)");
  const Dim cut = pool.min(seq, number(512));
  EXPECT_EQ(pool.to_text(pool.broadcast(seq, pool.broadcast(cut, pool.broadcast(seq, cut)))), "seq");
  EXPECT_EQ(pool.to_text(pool.broadcast(pool.broadcast(seq, m), pool.broadcast(m, h))), "broadcast(H, seq, M)");
  EXPECT_EQ(pool.broadcast(pool.add(h, number(2)), m), pool.add(h, number(2)));
  EXPECT_EQ(pool.to_text(pool.min(pool.min(cut, m), number(256))), "min(seq, M, 256)");
  EXPECT_EQ(pool.min(seq, pool.max(m, seq)), seq);
  EXPECT_EQ(pool.max(seq, pool.min(m, seq)), seq);
  // min(seq, M) may be 1 where seq is not.
  EXPECT_NE(pool.broadcast(seq, pool.min(seq, m)), seq);
}

/// A random expression, in the pool and as what it means.
struct Expression {
  Dim dim;
  std::function<std::optional<std::int64_t>(const std::vector<std::int64_t>&)> value;  // nullopt: not legal
};

class RandomExpressions {
 public:
  explicit RandomExpressions(unsigned seed) : random_(seed) {
    symbols_ = {pool_.symbol("a"), pool_.symbol("b"), pool_.symbol("c", 1)};
  }

  Expression make(int depth) {
    const auto pick = [this](int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); };
    if (depth == 0 || pick(6) == 0) {
      const int which = pick(5);
      if (which < 3)
        return {symbols_[static_cast<std::size_t>(which)],
                [which](const auto& values) { return std::optional(values[static_cast<std::size_t>(which)]); }};
      const std::int64_t value = pick(11) - 2;
      return {pool_.constant(value), [value](const auto&) { return std::optional(value); }};
    }
    const Expression x = make(depth - 1);
    switch (const int which = pick(9)) {
      case 0:
      case 1:
      case 2: {
        const std::int64_t divisor = std::vector<std::int64_t>{2, 3, 4, 6, 8, -2}[static_cast<std::size_t>(pick(6))];
        const Dim by = pool_.constant(divisor);
        return joined(which == 0 ? pool_.mod(x.dim, by) : pool_.floor_div(x.dim, by), x, x,
                      [divisor, which](std::int64_t p, std::int64_t) {
                        return which == 0 ? checked::floor_mod(p, divisor) : checked::floor_div(p, divisor);
                      });
      }
      default: {
        const Expression y = make(depth - 1);
        if (which == 3)
          return joined(pool_.add(x.dim, y.dim), x, y,
                        [](std::int64_t p, std::int64_t q) { return checked::add(p, q); });
        if (which == 4)
          return joined(pool_.mul(x.dim, y.dim), x, y,
                        [](std::int64_t p, std::int64_t q) { return checked::mul(p, q); });
        if (which == 5)
          return joined(pool_.min(x.dim, y.dim), x, y,
                        [](std::int64_t p, std::int64_t q) { return std::optional(std::min(p, q)); });
        if (which == 6)
          return joined(pool_.max(x.dim, y.dim), x, y,
                        [](std::int64_t p, std::int64_t q) { return std::optional(std::max(p, q)); });
        return joined(pool_.broadcast(x.dim, y.dim), x, y,
                      [](std::int64_t p, std::int64_t q) -> std::optional<std::int64_t> {
                        if (p != q && p != 1 && q != 1) return std::nullopt;
                        return p == 1 ? q : p;
                      });
      }
    }
  }

  DimPool& pool() { return pool_; }
  const std::vector<Dim>& symbols() const { return symbols_; }

 private:
  template <typename Meaning>
  static Expression joined(Dim dim, const Expression& x, const Expression& y, Meaning meaning) {
    return {dim, [x, y, meaning](const std::vector<std::int64_t>& values) -> std::optional<std::int64_t> {
              const auto p = x.value(values), q = y.value(values);
              return p && q ? meaning(*p, *q) : std::nullopt;
            }};
  }

  std::minstd_rand random_;
  DimPool pool_;
  std::vector<Dim> symbols_;
};

TEST(Dims, DifferWhereTheyDoForAllUsualSizes) {
  DimPool pool;
  const Dim b = pool.symbol("B"), t = pool.symbol("T");
  const Dim shorter = pool.max(pool.sub(t, pool.constant(1)), pool.constant(0));
  EXPECT_TRUE(pool.differ(pool.mul(b, shorter), pool.mul(b, t)));
  EXPECT_FALSE(pool.differ(pool.mul(b, shorter), pool.mul(b, pool.symbol("S"))));
  EXPECT_FALSE(pool.differ(pool.min(t, pool.constant(4)), t));  // equal up to 4
}

TEST(Dims, SimplifiedExpressionsHaveTheValuesThatTheyMean) {
  std::size_t compared = 0, known = 0;
  for (unsigned seed = 1; seed <= 4000; seed += stride(10)) {
    RandomExpressions random(seed);
    const Expression expression = random.make(4);
    if (expression.dim.is_unknown()) continue;
    ++known;
    const Bounds bounds = random.pool().bounds(expression.dim);
    for (const std::int64_t a : {0, 1, 2, 3, 7})
      for (const std::int64_t b : {0, 1, 2, 5, 8})
        for (const std::int64_t c : {1, 2, 4, 9}) {
          const std::vector<std::int64_t> values{a, b, c};
          const auto meant = expression.value(values);
          if (!meant) continue;
          const auto got = random.pool().evaluate(expression.dim, [&](Dim symbol) -> std::optional<std::int64_t> {
            for (std::size_t i = 0; i < values.size(); ++i)
              if (random.symbols()[i] == symbol) return values[i];
            return std::nullopt;
          });
          ASSERT_EQ(got, meant) << "seed " << seed << ": " << random.pool().to_text(expression.dim) << " for a = " << a
                                << ", b = " << b << ", c = " << c;
          ASSERT_TRUE(bounds.contains(*meant)) << "seed " << seed;
          ++compared;
        }
  }
  EXPECT_GT(known, 3000 / stride(10));
  EXPECT_GT(compared, 100'000 / stride(10));
}

}  // namespace
}  // namespace tensorlint
