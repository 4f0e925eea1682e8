#include "base/id_vector.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tensorlint {
namespace {

enum class Apple : std::uint32_t {};
enum class Pear : std::uint32_t {};

template <typename Array, typename Id>
concept HasItems = requires(Array array, Id id) { array[id]; };

TEST(IdVector, HasAnItemForEachId) {
  IdVector<Apple, int> weights(3, 7);
  weights[Apple{2}] = 9;
  EXPECT_EQ(weights[Apple{0}], 7);
  EXPECT_EQ(weights[Apple{2}], 9);
  EXPECT_EQ(weights.size(), 3U);
  EXPECT_TRUE((IdVector<Apple, int>().empty()));
}

TEST(IdVector, BoolsCanBeSet) {
  IdVector<Apple, bool> ripe(2);
  ripe[Apple{1}] = true;
  const IdVector<Apple, bool>& same = ripe;
  EXPECT_FALSE(same[Apple{0}]);
  EXPECT_TRUE(same[Apple{1}]);
}

TEST(IdVector, TakesNoIdOfAnotherKind) {
  static_assert(HasItems<IdVector<Apple, int>, Apple>);
  static_assert(!HasItems<IdVector<Apple, int>, Pear>);
  static_assert(!HasItems<IdVector<Apple, int>, int>);
}

TEST(IdsBelow, CountFromTheFirst) {
  std::uint32_t sum = 0;
  for (const Apple apple : ids_below<Apple>(4, Apple{1})) sum += static_cast<std::uint32_t>(apple);
  EXPECT_EQ(sum, 6U);
  for (const Apple apple : ids_below<Apple>(0)) FAIL() << static_cast<std::uint32_t>(apple);
}

}  // namespace
}  // namespace tensorlint
