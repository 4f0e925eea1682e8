#include "passes/placement/minimum_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

namespace tensorlint::placement {
namespace {

using Edges = std::vector<std::tuple<MinimumCut::Vertex, MinimumCut::Vertex, std::int64_t>>;

/// What a set of vertices on the source's side costs: bit v of `source_side` for each vertex but source and sink.
std::int64_t cost_of(const Edges& edges, std::uint32_t source_side) {
  const auto on_source = [&](MinimumCut::Vertex v) {
    return v == MinimumCut::kSource || (v != MinimumCut::kSink && ((source_side >> v) & 1U) != 0);
  };
  std::int64_t cost = 0;
  for (const auto& [from, to, capacity] : edges)
    if (on_source(from) && !on_source(to)) cost += capacity;
  return cost;
}

TEST(MinimumCut, IsTheLeastOfAllCuts) {
  std::mt19937 generator(1);
  const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
  for (int graph = 0; graph < 300; ++graph) {
    const std::uint32_t inner = random() % 9;
    MinimumCut cut;
    for (std::uint32_t v = 0; v < inner; ++v) cut.add_vertex();
    Edges edges;
    for (std::uint32_t e = random() % 40; e > 0; --e) {
      edges.emplace_back(random() % (inner + 2), random() % (inner + 2), random() % 5 == 0 ? 0 : random() % 20);
      cut.add_edge(std::get<0>(edges.back()), std::get<1>(edges.back()), std::get<2>(edges.back()));
    }
    std::int64_t least = MinimumCut::kInfinite;
    for (std::uint32_t side = 0; side < (1U << inner); ++side) least = std::min(least, cost_of(edges, side << 2));
    EXPECT_EQ(cut.solve(), least);
    std::uint32_t found = 0, largest = 0;
    for (std::uint32_t v = 2; v < inner + 2; ++v) found |= cut.on_source_side(v) ? 1U << v : 0U;
    EXPECT_EQ(cost_of(edges, found), least);
    for (std::uint32_t side = 0; side < (1U << inner); ++side)
      if (cost_of(edges, side << 2) == least) largest |= side << 2;
    EXPECT_EQ(found, largest);  // of equals, as much as can be is on the source's side
  }
}

TEST(MinimumCut, SaysThatThereIsNone) {
  MinimumCut cut;
  const auto v = cut.add_vertex();
  cut.add_edge(MinimumCut::kSource, v, MinimumCut::kInfinite);
  cut.add_edge(v, MinimumCut::kSink, MinimumCut::kInfinite);
  EXPECT_GE(cut.solve(), MinimumCut::kInfinite);
}

TEST(MinimumCut, OfALongChain) {
  MinimumCut cut;
  MinimumCut::Vertex last = MinimumCut::kSource;
  for (int i = 0; i < 200'000; ++i) {
    const auto next = cut.add_vertex();
    cut.add_edge(last, next, i == 100'000 ? 3 : 7);
    last = next;
  }
  cut.add_edge(last, MinimumCut::kSink, 5);
  EXPECT_EQ(cut.solve(), 3);
  EXPECT_TRUE(cut.on_source_side(100'001));
  EXPECT_FALSE(cut.on_source_side(100'003));
}

/// A row of vertices and the sink at its end. Each vertex costs `cost` on the sink's side, and `width` for each of the
/// next `reach` that is on the other side.
MinimumCut ladder(int length, int reach, std::int64_t cost, std::int64_t width) {
  MinimumCut cut;
  for (int i = 0; i < length; ++i) cut.add_edge(MinimumCut::kSource, cut.add_vertex(), cost);
  const auto vertex = [&](int i) { return i < length ? static_cast<MinimumCut::Vertex>(i + 2) : MinimumCut::kSink; };
  for (int i = 0; i < length; ++i) {
    for (int next = i + 1; next <= std::min(i + reach, length); ++next) {
      cut.add_edge(vertex(i), vertex(next), width);
      cut.add_edge(vertex(next), vertex(i), width);
    }
  }
  return cut;
}

/// A flow with a phase for each length of path would look at all of the graph as often as it is long.
TEST(MinimumCut, StepsGrowAsTheGraphDoes) {
  for (const int reach : {1, 2, 8}) {
    constexpr int kLength = 100'000;
    MinimumCut cut = ladder(kLength, reach, 1, kLength / 2);
    const auto cost = cut.solve(30 * cut.edges());
    ASSERT_TRUE(cost.has_value()) << reach;
    // The sink is cut off where that costs no more than all vertices together.
    EXPECT_EQ(*cost, reach == 1 ? kLength / 2 : kLength) << reach;
    EXPECT_EQ(cut.on_source_side(2), reach <= 2) << reach;
  }
}

TEST(MinimumCut, GivesUpAtItsLimit) {
  MinimumCut cut = ladder(1000, 1, 1, 500);
  EXPECT_EQ(cut.solve(100), std::nullopt);
}

}  // namespace
}  // namespace tensorlint::placement
