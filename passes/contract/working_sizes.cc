#include "passes/contract/working_sizes.h"

#include <cstddef>
#include <initializer_list>
#include <tuple>
#include <utility>

#include "passes/contract/candidates.h"

namespace tensorlint::contract {
namespace {

/// Nodes that ask for sizes, one after the other.
constexpr int kMaxSteps = 12;

/// Where no node says what it asks for: branches that suit small inputs alone.
constexpr std::initializer_list<std::int64_t> kSmallSizes{16, 12, 8, 6, 4, 3, 2, 1};

/// Further on the way to running: fails later, or at fewer nodes.
bool is_better(const Probe& a, const Probe& b) {
  if (a.runs() || b.runs()) return a.runs() && !b.runs();
  const auto key = [](const Probe& probe) {
    return std::tuple(-static_cast<std::int64_t>(probe.failures.front().node), probe.failures.size());
  };
  return key(a) < key(b);
}

}  // namespace

Sizes all_of_size(const Prober& prober, std::int64_t size) { return Sizes(prober.extents().size(), size); }

std::optional<Sizes> find_working_sizes(Prober& prober) {
  Sizes sizes;
  const Probe* best = nullptr;  // of `sizes`
  for (const std::int64_t size : kUsualSizes) {
    const Probe* probe = prober.probe(all_of_size(prober, size));
    if (probe == nullptr) return std::nullopt;
    if (best != nullptr && !is_better(*probe, *best)) continue;
    best = probe;
    sizes = all_of_size(prober, size);
  }
  bool moved = true;
  for (int step = 0; step < kMaxSteps && moved && !best->runs(); ++step) {
    moved = false;
    for (Sizes& candidate : candidates(prober, best->failures.front().node, sizes)) {
      const Probe* probe = prober.probe(candidate);
      if (probe == nullptr) return std::nullopt;
      if (!is_better(*probe, *best)) continue;
      best = probe;
      sizes = std::move(candidate);
      moved = true;
      break;
    }
  }
  for (auto size = kSmallSizes.begin(); size != kSmallSizes.end() && !best->runs(); ++size) {
    sizes = all_of_size(prober, *size);
    best = prober.probe(sizes);
    if (best == nullptr) return std::nullopt;
  }
  if (!best->runs()) return std::nullopt;
  for (auto size = kSmallSizes.begin(); size != kSmallSizes.end() && best->is_too_large; ++size) {
    const Probe* probe = prober.probe(all_of_size(prober, *size));
    if (probe == nullptr) return std::nullopt;
    if (!probe->runs() || probe->is_too_large) continue;
    best = probe;
    sizes = all_of_size(prober, *size);
  }
  // What only followed from a size that was not right yet goes back to a usual one.
  for (std::int64_t& size : sizes) {
    const std::int64_t found = std::exchange(size, *kUsualSizes.begin());
    const Probe* probe = size == found ? best : prober.probe(sizes);
    if (probe == nullptr) return std::nullopt;
    if (!probe->runs() || (probe->is_too_large && !best->is_too_large)) size = found;
  }
  return sizes;
}

}  // namespace tensorlint::contract
