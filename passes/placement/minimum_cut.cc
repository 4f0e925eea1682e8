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

bool MinimumCut::find_levels() {
  level_.assign(first_.size(), -1);
  level_[kSource] = 0;
  std::vector<Vertex> queue{kSource};
  for (std::size_t at = 0; at < queue.size(); ++at) {
    for (std::uint32_t e = first_[queue[at]]; e != kNone; e = edges_[e].next) {
      if (edges_[e].left == 0 || level_[edges_[e].to] >= 0) continue;
      level_[edges_[e].to] = level_[queue[at]] + 1;
      queue.push_back(edges_[e].to);
    }
  }
  return level_[kSink] >= 0;
}

std::int64_t MinimumCut::push_blocking_flow() {
  std::int64_t total = 0;
  next_edge_ = first_;
  std::vector<std::uint32_t> path;  // edges from the source on
  for (Vertex at = kSource;;) {
    if (at == kSink) {
      std::int64_t least = kInfinite;
      for (const std::uint32_t e : path) least = std::min(least, edges_[e].left);
      total = std::min(total + least, kInfinite);
      std::size_t full = path.size();
      for (std::size_t i = path.size(); i-- > 0;) {
        edges_[path[i]].left -= least;
        edges_[path[i] ^ 1U].left += least;
        if (edges_[path[i]].left == 0) full = i;
      }
      at = edges_[path[full] ^ 1U].to;
      path.resize(full);
      if (total == kInfinite) return total;
      continue;
    }
    std::uint32_t& e = next_edge_[at];
    while (e != kNone && (edges_[e].left == 0 || level_[edges_[e].to] != level_[at] + 1)) e = edges_[e].next;
    if (e != kNone) {
      path.push_back(e);
      at = edges_[e].to;
      continue;
    }
    if (at == kSource) return total;
    const std::uint32_t back = path.back();  // a dead end: the edge that led here is of no more use
    path.pop_back();
    at = edges_[back ^ 1U].to;
    next_edge_[at] = edges_[back].next;
  }
}

void MinimumCut::mark_sink_side() {
  reaches_sink_.assign(first_.size(), false);
  reaches_sink_[kSink] = true;
  std::vector<Vertex> queue{kSink};
  for (std::size_t at = 0; at < queue.size(); ++at) {
    for (std::uint32_t e = first_[queue[at]]; e != kNone; e = edges_[e].next) {
      if (edges_[e ^ 1U].left == 0 || reaches_sink_[edges_[e].to]) continue;
      reaches_sink_[edges_[e].to] = true;
      queue.push_back(edges_[e].to);
    }
  }
}

std::int64_t MinimumCut::solve() {
  std::int64_t total = 0;
  while (total < kInfinite && find_levels()) total = std::min(total + push_blocking_flow(), kInfinite);
  mark_sink_side();
  return total;
}

}  // namespace tensorlint::placement
