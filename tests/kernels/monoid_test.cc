// What combine.h asks of every monoid: combine(a, b) is combine(b, a) to the bit, over states that steps and merges
// give. Each lane combines in an order of its own, so without it the threads of a row would differ.

#include "kernels/common/combine.h"

#include <cstring>
#include <string>

#include "kernels/attention/attention_kernel.h"
#include "kernels/loss/class_common.h"
#include "kernels/loss/cosine_embedding.h"
#include "kernels/loss/label_scan.h"
#include "kernels/movement/index_kernels.h"
#include "kernels/normalization/kernels.h"
#include "kernels/reduction/accumulators.h"
#include "tests/kernels/testing.h"

namespace tensorlint::kernels {
namespace {

constexpr int kPairs = 4096;

/// Equal word by word: two NaN are, and zeros of either sign.
template <typename C, typename State>
bool agree(const State& a, const State& b) {
  if constexpr (std::is_same_v<State, Scaled>) {
    return agree<double>(a.mantissa, b.mantissa) && a.exponent == b.exponent;
  } else {
    static_assert(sizeof(State) % sizeof(C) == 0);
    for (std::size_t at = 0; at < sizeof(State); at += sizeof(C)) {
      C x, y;
      std::memcpy(&x, reinterpret_cast<const char*>(&a) + at, sizeof x);
      std::memcpy(&y, reinterpret_cast<const char*>(&b) + at, sizeof y);
      if (x != y && (x == x || y == y)) return false;
    }
    return true;
  }
}

/// `make(random)`: a state. `C`: the type of its words.
template <typename Monoid, typename C, typename Make>
void expect_commutes(const std::string& name, const Make& make) {
  std::mt19937_64 random(17);
  for (int i = 0; i < kPairs; ++i) {
    typename Monoid::State a = make(random), b = make(random);
    if (i % 3 == 1) a = Monoid::combine(a, make(random));
    if (i % 3 == 2) b = Monoid::combine(make(random), b);
    ASSERT_TRUE((agree<C>(Monoid::combine(a, b), Monoid::combine(b, a)))) << name << ", pair " << i;
  }
}

double number(std::mt19937_64& random) {
  const double u = static_cast<double>(random() >> 11) * 0x1p-53 - 0.5;
  return std::ldexp(u, static_cast<int>(random() % 24) - 4);
}

/// With zeros of both signs, infinities and equal ones among them.
template <typename C>
C any_number(std::mt19937_64& random) {
  switch (random() % 16) {
    case 0:
      return static_cast<C>(random() % 3);
    case 1:
      return std::numeric_limits<C>::infinity();
    case 2:
      return -std::numeric_limits<C>::infinity();
    default:
      return static_cast<C>(number(random));
  }
}

/// The state of a few elements of type T.
template <typename Accumulator>
auto stepped(const AccumulatorOptions& options = {}) {
  return [options](std::mt19937_64& random) {
    using C = typename Accumulator::C;
    auto state = Accumulator::identity();
    for (std::uint64_t left = random() % 4; left > 0; --left) {
      C x;
      if constexpr (std::is_integral_v<C>) {
        x = static_cast<C>(random());
      } else {
        x = any_number<C>(random);
      }
      Accumulator::step(state, x, static_cast<std::int64_t>(random() % 64), options);
    }
    return state;
  };
}

template <typename T>
void check_reductions(const std::string& name) {
  using C = Compute<T>;
  expect_commutes<Sum<T, Term::kValue>, typename Sum<T, Term::kValue>::State>("sum of " + name,
                                                                              stepped<Sum<T, Term::kValue>>());
  expect_commutes<Sum<T, Term::kSquare>, typename Sum<T, Term::kSquare>::State>("squares of " + name,
                                                                                stepped<Sum<T, Term::kSquare>>());
  expect_commutes<Extreme<T, true>, C>("maximum of " + name, stepped<Extreme<T, true>>());
  expect_commutes<Extreme<T, false>, C>("minimum of " + name, stepped<Extreme<T, false>>());
  if constexpr (std::is_integral_v<T>) {
    expect_commutes<Product<T>, std::uint64_t>("product of " + name, stepped<Product<T>>());
  } else {
    expect_commutes<Product<T>, double>("product of " + name, stepped<Product<T>>());
    expect_commutes<LogSumExp<T>, C>("log sum exp of " + name, stepped<LogSumExp<T>>());
  }
}

TEST(Monoids, OfReductionsCommute) {
  check_reductions<double>("float64");
  check_reductions<float>("float32");
  check_reductions<std::int64_t>("int64");
  check_reductions<std::int8_t>("int8");
  expect_commutes<CountNonzero<std::uint32_t>, std::uint64_t>("count", stepped<CountNonzero<std::uint32_t>>());
}

TEST(Monoids, OfExtremesWithTheirPlaceCommute) {
  std::mt19937_64 random(3);
  const auto make = [](std::mt19937_64& from) {
    ArgExtreme<float>::State state = ArgExtreme<float>::identity();
    if (from() % 8 != 0) {
      const float values[] = {-1.0F, 0.0F, 2.0F, NAN};
      state = {static_cast<std::int64_t>(from() % 1000), values[from() % 4]};
    }
    return state;
  };
  for (int i = 0; i < kPairs; ++i) {
    const auto a = make(random), b = make(random);
    const auto one = ArgExtreme<float>::combine(a, b), other = ArgExtreme<float>::combine(b, a);
    ASSERT_TRUE(a.order == b.order || one.order == other.order) << i;  // an index has one value
  }
}

template <typename C>
void check_moments() {
  const auto make = [](std::mt19937_64& random) {
    if (random() % 16 == 0) return Moments<C>::identity();
    return typename Moments<C>::State{static_cast<C>(1 + random() % 5000), static_cast<C>(number(random)),
                                      static_cast<C>(std::fabs(number(random)))};
  };
  expect_commutes<Moments<C>, C>("moments", make);
}

TEST(Monoids, OfNormalizationsCommute) {
  check_moments<float>();
  check_moments<double>();
}

template <typename C>
void check_classes() {
  const auto make = [](std::mt19937_64& random) {
    typename MergeClasses<C>::State state = MergeClasses<C>::identity();
    for (std::uint64_t left = random() % 4; left > 0; --left)
      ExpSum<C>::step(state.exponentials, any_number<C>(random));
    state.dot = static_cast<C>(number(random));
    state.mass = static_cast<C>(number(random));
    return state;
  };
  expect_commutes<MergeClasses<C>, C>("classes", make);
}

TEST(Monoids, OfLossesCommute) {
  check_classes<float>();
  check_classes<double>();
  expect_commutes<Add<double>, double>("sum", number);
  expect_commutes<MergeCosine, double>(
      "cosine", [](std::mt19937_64& random) { return CosineSums{number(random), number(random), number(random)}; });
  expect_commutes<MergeLabels, std::int64_t>("labels", [](std::mt19937_64& random) {
    return LabelSummary{number(random), static_cast<std::int64_t>(random() % 9),
                        static_cast<std::int64_t>(random() % 9)};
  });
}

TEST(Monoids, OfAttentionAndMovementCommute) {
  const auto rows = [](std::mt19937_64& random) {
    LargestOfRows::State state;
    for (float& x : state.rows) x = any_number<float>(random);
    return state;
  };
  expect_commutes<LargestOfRows, float>("largest of rows", rows);
  expect_commutes<SumsOfRows, float>("sums of rows", rows);
  expect_commutes<MergeIndices, std::int64_t>("indices", [](std::mt19937_64& random) {
    return IndexSummary{static_cast<std::int64_t>(random() % 9), static_cast<std::int64_t>(random() % 9)};
  });
}

}  // namespace
}  // namespace tensorlint::kernels
