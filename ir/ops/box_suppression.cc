#include "ir/ops/box_suppression.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tensorlint::ops {
namespace {

/// About 0.12 ms: a file can have a call in every 60 bytes.
constexpr std::int64_t kMaxComparisons = 1024;
/// Areas of such boxes are far from the largest float32.
constexpr double kLargest = 1e15;

/// Every float32 that an engine may get, whether it rounds each step or fuses some.
struct Interval {
  double lo = 0, hi = 0;
};

Interval rounded(double lo, double hi) {
  // A double that is no float32 lies between two of them.
  const auto down = static_cast<float>(lo), up = static_cast<float>(hi);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return {static_cast<double>(static_cast<double>(down) > lo ? std::nextafter(down, -kInfinity) : down),
          static_cast<double>(static_cast<double>(up) < hi ? std::nextafter(up, kInfinity) : up)};
}

Interval operator+(Interval a, Interval b) { return rounded(a.lo + b.lo, a.hi + b.hi); }
Interval operator-(Interval a, Interval b) { return rounded(a.lo - b.hi, a.hi - b.lo); }
/// Of lengths and areas: not negative where it matters.
Interval operator*(Interval a, Interval b) {
  const auto [lo, hi] = std::minmax({a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi});
  return rounded(lo, hi);
}
Interval min(Interval a, Interval b) { return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)}; }
Interval max(Interval a, Interval b) { return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)}; }

/// Whether x > y; nullopt where that depends on rounding.
std::optional<bool> greater(Interval x, Interval y) {
  if (x.lo > y.hi) return true;
  if (x.hi <= y.lo) return false;
  return std::nullopt;
}

struct Box {
  std::array<Interval, 2> from, to;  ///< along both axes
};

Box box_at(const BoxSuppression& operands, std::size_t index) {
  const std::span<const double> at = operands.boxes.subspan(index * 4, 4);
  Box box;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const double a = at[axis], b = at[axis + 2];
    if (operands.center) {
      const Interval middle{a, a}, half = rounded(b / 2, b / 2);
      box.from[axis] = middle - half;
      box.to[axis] = middle + half;
    } else {
      box.from[axis] = {std::min(a, b), std::min(a, b)};
      box.to[axis] = {std::max(a, b), std::max(a, b)};
    }
  }
  return box;
}

/// Whether the boxes overlap by more than the threshold.
std::optional<bool> suppresses(const Box& a, const Box& b, double threshold) {
  constexpr Interval kZero{0, 0};
  std::array<Interval, 2> sides;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const Interval from = max(a.from[axis], b.from[axis]), to = min(a.to[axis], b.to[axis]);
    const auto meet = greater(to, from);
    if (!meet || !*meet) return meet;
    sides[axis] = to - from;
  }
  const Interval common = sides[0] * sides[1];
  const Interval area_a = (a.to[0] - a.from[0]) * (a.to[1] - a.from[1]),
                 area_b = (b.to[0] - b.from[0]) * (b.to[1] - b.from[1]);
  const Interval both = area_a + area_b - common;
  for (const Interval& area : {common, area_a, area_b, both}) {
    const auto positive = greater(area, kZero);
    if (!positive || !*positive) return positive;
  }
  return greater(rounded(common.lo / both.hi, common.hi / both.lo), {threshold, threshold});
}

}  // namespace

std::optional<std::vector<std::int64_t>> suppress_boxes(const BoxSuppression& operands, Meter& meter) {
  constexpr std::uint64_t kStepsOfComparison = 16;
  const auto moderate = [](double value) { return std::fabs(value) <= kLargest; };  // not NaN
  if (!std::ranges::all_of(operands.boxes, moderate) || !std::ranges::all_of(operands.scores, moderate) ||
      !moderate(operands.overlap) || !moderate(operands.lowest_score.value_or(0)))
    return std::nullopt;
  std::int64_t comparisons = 0;
  std::vector<std::int64_t> rows;
  for (std::int64_t batch = 0; batch < operands.batch; ++batch) {
    for (std::int64_t group = 0; group < operands.classes; ++group) {
      const auto scores =
          operands.scores.subspan(static_cast<std::size_t>((batch * operands.classes + group) * operands.count),
                                  static_cast<std::size_t>(operands.count));
      std::vector<std::size_t> order;
      for (std::size_t i = 0; i < scores.size(); ++i)
        if (!operands.lowest_score || scores[i] > *operands.lowest_score) order.push_back(i);
      std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
      });
      const auto first = static_cast<std::size_t>(batch * operands.count);
      std::vector<Box> kept;
      for (std::size_t at = 0; at < order.size() && static_cast<std::int64_t>(kept.size()) < operands.limit; ++at) {
        const auto coordinates = operands.boxes.subspan((first + order[at]) * 4, 4);
        if (at + 1 < order.size() && scores[order[at]] == scores[order[at + 1]] &&
            !std::ranges::equal(coordinates, operands.boxes.subspan((first + order[at + 1]) * 4, 4)))
          return std::nullopt;
        const Box box = box_at(operands, first + order[at]);
        bool suppressed = false;
        for (std::size_t i = 0; i < kept.size() && !suppressed; ++i) {
          if (++comparisons > kMaxComparisons || meter.is_spent()) return std::nullopt;
          meter.charge(kStepsOfComparison);
          const auto overlaps = suppresses(box, kept[i], operands.overlap);
          if (!overlaps) return std::nullopt;
          suppressed = *overlaps;
        }
        if (suppressed) continue;
        kept.push_back(box);
        for (const std::int64_t part : {batch, group, static_cast<std::int64_t>(order[at])}) rows.push_back(part);
      }
    }
  }
  return rows;
}

}  // namespace tensorlint::ops
