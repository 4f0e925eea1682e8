#include "passes/placement/minimum_cut.h"

#include <algorithm>

namespace tensorlint::placement {

MinimumCut::Vertex MinimumCut::add_vertex() {
  first_.push_back(kNone);
  return static_cast<Vertex>(first_.size() - 1);
}

void MinimumCut::add_edge(Vertex from, Vertex to, std::int64_t capacity) {
  if (capacity <= 0 || from == to) return;
  const auto add = [&](Vertex a, Vertex b, std::int64_t left) {
    edges_.push_back({b, first_[a], left});
    first_[a] = static_cast<std::uint32_t>(edges_.size() - 1);
  };
  add(from, to, std::min(capacity, kInfinite));
  add(to, from, 0);
}

/// Follows edges of kInfinite.
std::vector<MinimumCut::Vertex> MinimumCut::reach(Vertex from, bool forward, std::vector<bool>& reached) const {
  reached.assign(first_.size(), false);
  reached[from] = true;
  std::vector<Vertex> found{from};
  for (std::size_t at = 0; at < found.size(); ++at) {
    for (std::uint32_t e = first_[found[at]]; e != kNone; e = edges_[e].next) {
      if (edges_[forward ? e : e ^ 1U].left < kInfinite || reached[edges_[e].to]) continue;
      reached[edges_[e].to] = true;
      found.push_back(edges_[e].to);
    }
  }
  return found;
}

/// Fills every edge that leaves the source and what is bound to it: all of them are finite, and so are sums of excess.
/// False where the sink is bound to the source.
bool MinimumCut::leave_sources() {
  sinks_ = reach(kSink, false, is_sink_);
  excess_.assign(first_.size(), 0);
  for (const Vertex vertex : reach(kSource, true, is_source_)) {
    for (std::uint32_t e = first_[vertex]; e != kNone; e = edges_[e].next) {
      Edge& edge = edges_[e];
      if (is_source_[edge.to]) continue;
      excess_[edge.to] += edge.left;
      edges_[e ^ 1U].left += edge.left;
      edge.left = 0;
    }
  }
  return !is_source_[kSink];
}

/// Heights become distances. False where no vertex that reaches a sink has excess: the flow is the largest.
bool MinimumCut::measure_heights() {
  height_.assign(first_.size(), kNone);
  for (const Vertex sink : sinks_) height_[sink] = 0;
  by_height_ = sinks_;
  bool has_excess = false;
  for (std::size_t at = 0; at < by_height_.size(); ++at) {
    const std::uint32_t height = height_[by_height_[at]] + 1;
    for (std::uint32_t e = first_[by_height_[at]]; e != kNone; e = edges_[e].next) {
      ++steps_;
      const Vertex from = edges_[e].to;
      if (edges_[e ^ 1U].left == 0 || height_[from] != kNone || is_source_[from]) continue;
      height_[from] = height;
      current_[from] = first_[from];
      has_excess = has_excess || excess_[from] > 0;
      by_height_.push_back(from);
    }
  }
  return has_excess;
}

/// Moves excess one step down, as far as edges take it; what is left, and what it meets, is queued.
void MinimumCut::push(Vertex vertex) {
  for (std::uint32_t& e = current_[vertex]; e != kNone; e = edges_[e].next) {
    ++steps_;
    Edge& edge = edges_[e];
    if (edge.left == 0 || height_[edge.to] != height_[vertex] - 1) continue;
    const std::int64_t pushed = std::min(excess_[vertex], edge.left);
    edge.left -= pushed;
    edges_[e ^ 1U].left += pushed;
    excess_[vertex] -= pushed;
    if (excess_[edge.to] == 0 && !is_sink_[edge.to]) queue_.push_back(edge.to);
    excess_[edge.to] += pushed;
    if (excess_[vertex] == 0) return;
  }
  queue_.push_back(vertex);
}

/// To where an edge leads down.
void MinimumCut::raise(Vertex vertex) {
  std::uint32_t least = kNone;
  for (std::uint32_t e = first_[vertex]; e != kNone; e = edges_[e].next) {
    ++steps_;
    if (edges_[e].left > 0) least = std::min(least, height_[edges_[e].to]);
  }
  height_[vertex] = least < first_.size() ? least + 1 : kNone;
  current_[vertex] = first_[vertex];
}

std::optional<std::int64_t> MinimumCut::solve(std::uint64_t most_steps) {
  current_ = first_;
  height_.assign(first_.size(), kNone);
  if (!leave_sources()) return kInfinite;
  while (measure_heights()) {
    // The highest first: what they push moves on together with what is below.
    for (std::size_t i = by_height_.size(); i-- > sinks_.size();)
      if (excess_[by_height_[i]] > 0) push(by_height_[i]);
    // Heights that are raised one by one fall behind the distances: as much is spent on them as on measuring.
    const std::uint64_t last_step = steps_ + 2 * edges_.size();
    for (std::size_t at = 0; at < queue_.size() && steps_ < last_step; ++at) {
      const Vertex vertex = queue_[at];
      if (excess_[vertex] == 0) continue;  // it was pushed on in the meantime
      if (current_[vertex] == kNone) raise(vertex);
      if (height_[vertex] != kNone) push(vertex);
    }
    queue_.clear();
    if (steps_ > most_steps) return std::nullopt;
  }
  std::int64_t total = 0;
  for (const Vertex sink : sinks_) total = std::min(total + excess_[sink], kInfinite);
  return total;
}

}  // namespace tensorlint::placement
