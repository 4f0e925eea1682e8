#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensorlint::placement {

/// A directed graph between a source and a sink, and the cheapest set of edges that parts them (Dinic 1970: O(V^2 E),
/// near linear where most vertices are bound to one side).
class MinimumCut {
 public:
  using Vertex = std::uint32_t;
  static constexpr Vertex kSource = 0, kSink = 1;
  /// More than all finite capacities together may be: such an edge is never cut where another cut exists.
  static constexpr std::int64_t kInfinite = std::int64_t{1} << 58;

  Vertex add_vertex();
  std::size_t vertices() const { return first_.size(); }
  /// `capacity` is paid when `from` is on the source's side and `to` on the sink's; 0 adds nothing.
  void add_edge(Vertex from, Vertex to, std::int64_t capacity);

  /// Cuts the graph. Returns what the cut costs, at least kInfinite where every cut has an edge of kInfinite.
  std::int64_t solve();
  /// After solve(). Vertices that either side would take at the same cost are the source's.
  bool on_source_side(Vertex vertex) const { return !reaches_sink_[vertex]; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Edge {
    Vertex to = 0;
    std::uint32_t next = kNone;  // of the vertex that it leaves
    std::int64_t left = 0;
  };

  bool find_levels();
  std::int64_t push_blocking_flow();
  void mark_sink_side();

  std::vector<std::uint32_t> first_ = std::vector<std::uint32_t>(2, kNone);  // by vertex: its last edge
  std::vector<Edge> edges_;                                                  // 2k and 2k + 1 are each other's reverse
  std::vector<std::int32_t> level_;
  std::vector<std::uint32_t> next_edge_;
  std::vector<bool> reaches_sink_;
};

}  // namespace tensorlint::placement
