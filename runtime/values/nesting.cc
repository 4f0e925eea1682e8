#include "runtime/values/nesting.h"

#include <algorithm>
#include <unordered_map>

namespace tensorlint::runtime {
namespace {

constexpr int kMostNested = 16;

/// Elements may be shared: each list is looked at once.
int depth_of(const HostValue& value, std::unordered_map<const void*, int>& known) {
  if (value.is_tensor() || value.is_absent()) return 0;
  const auto [at, is_new] = known.try_emplace(&value.elements(), 0);
  if (!is_new) return at->second;
  int depth = 0;
  for (const HostValue& element : value.elements()) depth = std::max(depth, depth_of(element, known));
  return known[&value.elements()] = depth + 1;
}

}  // namespace

HostValue bounded(HostValue value) {
  std::unordered_map<const void*, int> known;
  if (depth_of(value, known) > kMostNested) throw RunFault{"sequences and optionals are nested too deep"};
  return value;
}

}  // namespace tensorlint::runtime
