#include "runtime/compare/effect.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "base/hash.h"
#include "runtime/values/codec.h"

namespace tensorlint::compare {

using runtime::HostTensor;

namespace {

constexpr std::size_t kFewPoints = 64;                 // say nothing about a share
constexpr std::size_t kEnough = std::size_t{1} << 16;  // elements, evenly taken, for any share that matters

struct Point {
  double reference, effect, error;
};

/// Less the part of each that is proportional to the reference.
void take_slopes_off(std::vector<Point>& points) {
  double squares = 0, effects = 0, errors = 0;
  for (const Point& point : points) {
    squares += point.reference * point.reference;
    effects += point.reference * point.effect, errors += point.reference * point.error;
  }
  if (!(squares > 0)) return;
  for (Point& point : points) {
    point.effect -= effects / squares * point.reference;
    point.error -= errors / squares * point.reference;
  }
}

}  // namespace

EffectShare share_of(const HostTensor& reference, const HostTensor& affected, const HostTensor& other,
                     runtime::Memory& memory) {
  const HostTensor a = runtime::to_float64(reference, memory), b = runtime::to_float64(affected, memory);
  const HostTensor c = runtime::to_float64(other, memory);
  const std::span<const double> right = a.as<double>(), with = b.as<double>(), recorded = c.as<double>();
  std::vector<Point> points;
  std::unordered_set<std::uint64_t, WordHash> seen;  // equal elements err equally: they count once
  for (std::size_t i = 0; i < right.size(); i += right.size() / kEnough + 1) {
    const Point point{right[i], with[i] - right[i], recorded[i] - right[i]};
    if (std::isfinite(point.effect) && std::isfinite(point.error) &&
        seen.insert(std::bit_cast<std::uint64_t>(point.reference)).second)
      points.push_back(point);
  }
  if (points.size() < kFewPoints) return {};
  take_slopes_off(points);
  double products = 0, squares = 0;
  for (const Point& point : points) {
    products += point.effect * point.error;
    squares += point.effect * point.effect;
  }
  if (!(squares > 0)) return {};
  EffectShare result{.share = products / squares};
  double variance = 0;
  for (const Point& point : points) {
    const double residual = point.effect * (point.error - result.share * point.effect);
    variance += residual * residual;
  }
  result.deviations = variance > 0 ? std::fabs(products) / std::sqrt(variance) : HUGE_VAL;
  return result;
}

}  // namespace tensorlint::compare
