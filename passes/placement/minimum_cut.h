#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace tensorlint::placement {

/// A directed graph between a source and a sink, and the cheapest set of edges that parts them: the first phase of
/// push-relabel (Goldberg, Tarjan 1988) with exact distances to the sink from time to time (Cherkassky, Goldberg 1997).
/// O(V^3); near linear on long chains and ladders, along which what many vertices send moves together.
class MinimumCut {
 public:
  using Vertex = std::uint32_t;
  static constexpr Vertex kSource = 0, kSink = 1;
  /// More than all finite capacities together may be: such an edge is never cut where another cut exists.
  static constexpr std::int64_t kInfinite = std::int64_t{1} << 58;

  Vertex add_vertex();
  std::size_t vertices() const { return first_.size(); }
  std::size_t edges() const { return edges_.size() / 2; }
  /// `capacity` is paid when `from` is on the source's side and `to` on the sink's; 0 adds nothing.
  void add_edge(Vertex from, Vertex to, std::int64_t capacity);

  /// Cuts the graph. Returns what the cut costs, at least kInfinite where every cut has an edge of kInfinite; nothing
  /// where more than `most_steps` edges would be looked at.
  std::optional<std::int64_t> solve(std::uint64_t most_steps = std::numeric_limits<std::uint64_t>::max());
  /// After solve() found a cut. Vertices that either side would take at the same cost are the source's.
  bool on_source_side(Vertex vertex) const { return height_[vertex] == kNone; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Edge {
    Vertex to = 0;
    std::uint32_t next = kNone;  // of the vertex that it leaves
    std::int64_t left = 0;
  };

  std::vector<Vertex> reach(Vertex from, bool forward, std::vector<bool>& reached) const;
  bool leave_sources();
  bool measure_heights();
  void push(Vertex vertex);
  void raise(Vertex vertex);

  std::vector<std::uint32_t> first_ = std::vector<std::uint32_t>(2, kNone);  // by vertex: its last edge
  std::vector<Edge> edges_;                                                  // 2k and 2k + 1 are each other's reverse
  std::vector<bool> is_source_, is_sink_;                                    // or bound to it by edges of kInfinite
  std::vector<Vertex> sinks_;
  std::vector<std::int64_t> excess_;    // by vertex: what came in and has not left
  std::vector<std::uint32_t> height_;   // no more than the edges to a sink; kNone: none can be reached
  std::vector<std::uint32_t> current_;  // by vertex: at its height, edges before this one take nothing
  std::vector<Vertex> by_height_, queue_;
  std::uint64_t steps_ = 0;
};

}  // namespace tensorlint::placement
