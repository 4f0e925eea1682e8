#include "runtime/values/nesting.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

namespace tensorlint::runtime {
namespace {

constexpr int kMostNested = 16;
constexpr std::uint64_t kMostWithin = std::uint64_t{1} << 20;

struct Nested {
  int depth = 0;
  std::uint64_t values = 1;  ///< with those within, each as often as it is there; no more than are counted
};

/// Elements may be shared: each list is looked at once.
Nested nested_in(const HostValue& value, std::unordered_map<const void*, Nested>& known) {
  if (value.is_tensor() || value.is_absent()) return {};
  const auto [at, is_new] = known.try_emplace(&value.elements());
  if (!is_new) return at->second;
  Nested all;
  for (const HostValue& element : value.elements()) {
    const Nested one = nested_in(element, known);
    all = {std::max(all.depth, one.depth), std::min(all.values + one.values, 2 * kMostWithin)};
  }
  ++all.depth;
  return known[&value.elements()] = all;
}

}  // namespace

HostValue bounded(HostValue value) {
  std::unordered_map<const void*, Nested> known;
  const Nested nested = nested_in(value, known);
  if (nested.depth > kMostNested) throw RunFault{"sequences and optionals are nested too deep"};
  if (nested.depth > 1 && nested.values > kMostWithin)
    throw RunFault{"sequences and optionals within each other have more than 1,048,576 values"};
  return value;
}

}  // namespace tensorlint::runtime
