#include "runtime/executor/memory_plan.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>

namespace tensorlint::runtime {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 58;
/// Placements that are tried: so many pairs of values are compared, about 0.1 s, 48 times the top is moved, and 256
/// orders are drawn.
constexpr std::size_t kMostMoves = 48, kMostBlurred = 256;
/// So few values are placed by pairs whatever is left: some microseconds for each of them.
constexpr std::size_t kFewValues = 1024;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t step) { return (bytes + step - 1) / step * step; }

class Placer {
 public:
  explicit Placer(std::span<const MemoryLifetime> values) : values_(values), sizes_(values.size()) {
    for (std::size_t i = 0; i < values.size(); ++i) sizes_[i] = round_up(values[i].bytes, kMemoryStep);
  }

  /// By value, with the size of the block as the second part.
  using Placement = std::pair<std::vector<std::uint64_t>, std::uint64_t>;
  Placement place(std::span<const std::size_t> order) const {
    Placement placed{std::vector<std::uint64_t>(values_.size()), 0};
    std::vector<std::size_t> by_offset;  // those that have a place
    for (const std::size_t value : order) {
      if (sizes_[value] == 0) continue;
      const std::uint64_t step = values_[value].bytes >= kLargeValue ? kLargeStep : kMemoryStep;
      std::uint64_t end = 0, best = UINT64_MAX, best_gap = UINT64_MAX;
      for (const std::size_t other : by_offset) {
        if (values_[other].last < values_[value].first || values_[value].last < values_[other].first) continue;
        const std::uint64_t offset = placed.first[other], first = round_up(end, step);
        if (offset >= first + sizes_[value] && offset - end < best_gap) {
          best = first;
          best_gap = offset - end;
        }
        end = std::max(end, offset + sizes_[other]);
      }
      placed.first[value] = best != UINT64_MAX ? best : round_up(end, step);
      placed.second = std::max(placed.second, placed.first[value] + sizes_[value]);
      by_offset.insert(std::ranges::upper_bound(by_offset, placed.first[value], {},
                                                [&](std::size_t other) { return placed.first[other]; }),
                       value);
    }
    return placed;
  }

  std::uint64_t size(std::size_t value) const { return sizes_[value]; }

 private:
  std::span<const MemoryLifetime> values_;
  std::vector<std::uint64_t> sizes_;
};

/// In the order in which values begin, each in the smallest gap of that moment: n log n.
class GapPlacer {
 public:
  explicit GapPlacer(std::span<const MemoryLifetime> values) : values_(values) {}

  void place(MemoryPlan& plan) {
    std::vector<std::size_t> begins, ends;
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (values_[i].bytes > 0) begins.push_back(i);
    ends = begins;
    std::ranges::stable_sort(begins, {}, [&](std::size_t value) { return values_[value].first; });
    std::ranges::stable_sort(ends, {}, [&](std::size_t value) { return values_[value].last; });
    auto end = ends.begin();
    for (const std::size_t value : begins) {
      for (; values_[*end].last < values_[value].first; ++end)
        give(plan.offsets[*end], plan.offsets[*end] + round_up(values_[*end].bytes, kMemoryStep));
      plan.offsets[value] = take(values_[value].bytes);
    }
    plan.bytes = top_;
  }

 private:
  using Gap = std::pair<std::uint64_t, std::uint64_t>;  ///< size and begin

  std::uint64_t take(std::uint64_t bytes) {
    const std::uint64_t size = round_up(bytes, kMemoryStep);
    const std::uint64_t step = bytes >= kLargeValue ? kLargeStep : kMemoryStep;
    // One that fits wherever it begins; a smaller one may begin well.
    auto found = by_size_.lower_bound({size, 0});
    if (found != by_size_.end() && round_up(found->second, step) + size > found->second + found->first)
      found = by_size_.lower_bound({size + step, 0});
    if (found != by_size_.end()) {
      const auto [length, begin] = *found;
      const std::uint64_t first = round_up(begin, step);
      by_size_.erase(found);
      gaps_.erase(begin);
      give(begin, first);
      give(first + size, begin + length);
      return first;
    }
    // The last gap grows.
    std::uint64_t begin = top_;
    if (!gaps_.empty() && gaps_.rbegin()->second == top_) {
      begin = gaps_.rbegin()->first;
      by_size_.erase({top_ - begin, begin});
      gaps_.erase(begin);
    }
    const std::uint64_t first = round_up(begin, step);
    give(begin, first);
    top_ = first + size;
    return first;
  }

  void give(std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return;
    auto next = gaps_.lower_bound(begin);
    if (next != gaps_.end() && next->first == end) {
      end = next->second;
      by_size_.erase({next->second - next->first, next->first});
      next = gaps_.erase(next);
    }
    if (next != gaps_.begin() && std::prev(next)->second == begin) {
      begin = std::prev(next)->first;
      by_size_.erase({std::prev(next)->second - begin, begin});
      gaps_.erase(begin);
    }
    gaps_.emplace(begin, end);
    by_size_.emplace(end - begin, begin);
  }

  std::span<const MemoryLifetime> values_;
  std::map<std::uint64_t, std::uint64_t> gaps_;  ///< below the top
  std::set<Gap> by_size_;
  std::uint64_t top_ = 0;
};

void find_largest_live_set(std::span<const MemoryLifetime> lifetimes, MemoryPlan& plan) {
  std::vector<std::pair<std::size_t, std::size_t>> begins, ends;
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    begins.emplace_back(lifetimes[i].first, i);
    ends.emplace_back(lifetimes[i].last, i);
  }
  std::ranges::sort(begins);
  std::ranges::sort(ends);
  std::uint64_t live = 0;
  auto end = ends.begin();
  for (const auto& [moment, value] : begins) {
    for (; end != ends.end() && end->first < moment; ++end) live -= round_up(lifetimes[end->second].bytes, kMemoryStep);
    const std::uint64_t bytes = lifetimes[value].bytes;
    if (bytes > kMostBytes || (live += round_up(bytes, kMemoryStep)) > kMostBytes) {
      plan.live_bytes = std::max(bytes, live);
      plan.live_at = moment;
      return;
    }
    if (live <= plan.live_bytes) continue;
    plan.live_bytes = live;
    plan.live_at = moment;
  }
}

}  // namespace

MemoryPlan plan_memory(std::span<const MemoryLifetime> lifetimes, std::size_t& pairs_left) {
  MemoryPlan plan{.offsets = std::vector<std::uint64_t>(lifetimes.size())};
  find_largest_live_set(lifetimes, plan);
  plan.bytes = plan.live_bytes;
  if (plan.live_bytes > kMostBytes) return plan;
  if (lifetimes.size() > kFewValues && lifetimes.size() * lifetimes.size() > pairs_left) {
    GapPlacer(lifetimes).place(plan);
    return plan;
  }

  const Placer placer(lifetimes);
  const auto length = [&](std::size_t value) { return lifetimes[value].last - lifetimes[value].first + 1; };
  const auto area = [&](std::size_t value) {
    return static_cast<double>(placer.size(value)) * static_cast<double>(length(value));
  };
  std::vector<std::size_t> given(lifetimes.size());
  std::iota(given.begin(), given.end(), std::size_t{0});
  using Before = std::function<bool(std::size_t, std::size_t)>;
  const Before orders[] = {
      [&](std::size_t a, std::size_t b) { return placer.size(a) > placer.size(b); },
      [&](std::size_t a, std::size_t b) { return area(a) > area(b); },
      [&](std::size_t a, std::size_t b) { return lifetimes[a].first < lifetimes[b].first; },
      [&](std::size_t a, std::size_t b) { return length(a) > length(b); },
  };
  plan.bytes = UINT64_MAX;
  /// False when there is no more to be won, or no time.
  const auto attempt = [&](std::span<const std::size_t> order, Placer::Placement& placed) {
    placed = placer.place(order);
    if (placed.second < plan.bytes) std::tie(plan.offsets, plan.bytes) = placed;
    pairs_left -= std::min(pairs_left, order.size() * order.size());
    return plan.bytes > plan.live_bytes && pairs_left > 0;
  };
  Placer::Placement placed;
  for (const Before& before : orders) {
    std::vector<std::size_t> order = given;
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return before(a, b) || (a < b && !before(b, a)); });
    if (!attempt(order, placed)) return plan;
    for (std::size_t move = 0; move < kMostMoves; ++move) {
      std::vector<std::size_t> moved, rest;
      for (const std::size_t value : order)
        (placed.first[value] + placer.size(value) == placed.second ? moved : rest).push_back(value);
      moved.insert(moved.end(), rest.begin(), rest.end());
      order = std::move(moved);
      if (!attempt(order, placed)) return plan;
    }
  }
  // Sizes blurred by up to half, the same way in every run.
  std::minstd_rand random(1);
  for (std::size_t blurred = 0; blurred < kMostBlurred; ++blurred) {
    std::vector<double> keys(given.size());
    for (const std::size_t value : given)
      keys[value] = static_cast<double>(placer.size(value)) * (1 + static_cast<double>(random() % 1024) / 1024);
    std::vector<std::size_t> order = given;
    std::ranges::sort(order,
                      [&](std::size_t a, std::size_t b) { return keys[a] != keys[b] ? keys[a] > keys[b] : a < b; });
    if (!attempt(order, placed)) return plan;
  }
  return plan;
}

}  // namespace tensorlint::runtime
