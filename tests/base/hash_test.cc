#include "base/hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/name_table.h"

namespace tensorlint {
namespace {

/// How many keys share a slot of a table with as many slots as keys, at most. Random keys: 7 or 8 of 65,536.
std::size_t fullest_slot(const std::vector<std::uint64_t>& hashes) {
  std::vector<std::size_t> slots(hashes.size());
  for (const std::uint64_t hash : hashes) ++slots[hash % slots.size()];
  return *std::ranges::max_element(slots);
}

/// One in some thousands of seeds spreads one of the patterns below a little worse than random keys.
constexpr std::size_t kCrowded = 32;

template <typename Key>
std::vector<std::uint64_t> hashes_of(Key key) {
  std::vector<std::uint64_t> hashes;
  for (std::uint64_t i = 0; i < 65536; ++i) hashes.push_back(key(i));
  return hashes;
}

TEST(TableHash, SpreadsKeysThatFollowAPattern) {
  EXPECT_LT(fullest_slot(hashes_of([](std::uint64_t i) { return table_hash(0, i); })), kCrowded);
  for (unsigned shift = 8; shift <= 48; shift += 8)
    EXPECT_LT(fullest_slot(hashes_of([&](std::uint64_t i) { return table_hash(0, i << shift); })), kCrowded) << shift;
  // Pairs of a graph and a name, extents of opposite sign.
  EXPECT_LT(fullest_slot(hashes_of([](std::uint64_t i) { return table_hash(0, (i >> 8) << 32 | (i & 255)); })),
            kCrowded);
  EXPECT_LT(fullest_slot(hashes_of([](std::uint64_t i) { return table_hash(table_hash(0, i), 0 - i); })), kCrowded);
}

TEST(TableHash, SpreadsTexts) {
  for (const char* const format : {"n", "layer.", "model/encoder/layers/attention/"})
    EXPECT_LT(fullest_slot(hashes_of([&](std::uint64_t i) { return table_hash(format + std::to_string(i)); })),
              kCrowded);
  // Each part of a text counts: begin, middle and end.
  EXPECT_NE(table_hash("abcdefghijklmnop"), table_hash("xbcdefghijklmnop"));
  EXPECT_NE(table_hash("abcdefghijklmnop"), table_hash("abcdefgxijklmnop"));
  EXPECT_NE(table_hash("abcdefghijklmnop"), table_hash("abcdefghijklmnox"));
  EXPECT_NE(table_hash("abc"), table_hash("abd"));
  EXPECT_EQ(table_hash(std::string("same text")), table_hash(std::string_view("same text")));
}

// Words that collide under the seed 0, as one could compute them offline: (state ^ w1) * (factor ^ rot(w1)) is 0 where
// a factor is, so all words after it hash alike. With a seed the zero is elsewhere.
TEST(TableHash, HasASeed) {
  EXPECT_NE(kHashSeed.state, 0U);
  EXPECT_EQ(kHashSeed.factor & 1, 1U);
  EXPECT_NE(make_hash_seed().state, make_hash_seed().factor);
  EXPECT_NE(table_hash(0, 0), 0U);
}

TEST(NameTable, FindsWhatItHolds) {
  std::vector<std::string> texts;
  for (int i = 0; i < 5000; ++i) texts.push_back("value_" + std::to_string(i * 7919));
  NameTable table;
  for (const std::string& text : texts) table.intern(text);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(table.find(texts[i]), i + 1);
    EXPECT_EQ(table.intern(texts[i]), i + 1);
  }
  EXPECT_EQ(table.find("value_1"), 0U);
}

}  // namespace
}  // namespace tensorlint
