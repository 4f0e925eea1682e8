#include <gtest/gtest.h>

#include <vector>

#include "ir/graph/parts.h"

namespace tensorlint {
namespace {

std::vector<NodeId> listed(const NodeList& list) { return {list.begin(), list.end()}; }

NodeList list_of(std::initializer_list<std::uint32_t> numbers) {
  NodeList list;
  for (const std::uint32_t number : numbers) list.append(NodeId{number});
  return list;
}

TEST(NodeList, KeepsConsecutiveNodes) {
  EXPECT_TRUE(NodeList().empty());
  const NodeList list = list_of({5, 6, 7});
  EXPECT_EQ(listed(list), (std::vector{NodeId{5}, NodeId{6}, NodeId{7}}));
  EXPECT_EQ(list.size(), 3U);
  EXPECT_EQ(list.front(), NodeId{5});
  EXPECT_EQ(list.back(), NodeId{7});
  EXPECT_EQ(list.index_of(NodeId{6}), 1U);
}

TEST(NodeList, KeepsNodesWithOthersInBetween) {
  const NodeList list = list_of({5, 6, 9, 10, 20});
  EXPECT_EQ(listed(list), (std::vector{NodeId{5}, NodeId{6}, NodeId{9}, NodeId{10}, NodeId{20}}));
  EXPECT_EQ(list[2], NodeId{9});
  EXPECT_EQ(list.back(), NodeId{20});
  EXPECT_EQ(list.index_of(NodeId{5}), 0U);
  EXPECT_EQ(list.index_of(NodeId{10}), 3U);
}

}  // namespace
}  // namespace tensorlint
