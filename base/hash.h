#pragma once

#include <cstdint>

namespace tensorlint {

/// Mixes a word into a hash. Good enough to spread interned ids; deterministic from run to run.
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash ^= word + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdULL;
  return hash ^ (hash >> 32);
}

}  // namespace tensorlint
