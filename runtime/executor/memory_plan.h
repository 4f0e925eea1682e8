#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tensorlint::runtime {

/// A value in a device's memory, from one moment to another, both included.
struct MemoryLifetime {
  std::uint64_t bytes = 0;
  std::size_t first = 0, last = 0;
};

/// Where values lie in one block, chosen before a run.
struct MemoryPlan {
  std::vector<std::uint64_t> offsets;  ///< by lifetime; multiples of kMemoryStep
  std::uint64_t bytes = 0;             ///< of the block
  std::uint64_t live_bytes = 0;        ///< of the largest live set, each value rounded up to kMemoryStep
  std::size_t live_at = 0;             ///< the first moment of it
};

/// The widest access of a kernel.
inline constexpr std::uint64_t kMemoryStep = 16;
/// Values of kLargeValue bytes begin at a multiple of kLargeStep, as blocks of cudaMalloc do: rows of their accesses
/// then do not cross one cache line more. For smaller ones the gaps would cost more than 2 % of their memory.
inline constexpr std::uint64_t kLargeValue = 16384, kLargeStep = 256;

/// Where the memory of a graph begins in the block of those around it, which take `used` bytes of it.
constexpr std::uint64_t offset_within(std::uint64_t used, std::uint64_t bytes) {
  return bytes >= kLargeValue ? (used + kLargeStep - 1) / kLargeStep * kLargeStep : used;
}

/// About 0.1 s.
inline constexpr std::size_t kMostPairs = 50'000'000;

/// Values that live at one moment do not overlap. Finding the smallest block is NP-hard: several orders are placed
/// greedily, each value into the smallest gap that takes it, and what ends up on top is moved to the front a few times.
/// Deterministic. A largest live set of more than 2^58 bytes is reported, and nothing placed. Orders are tried as far
/// as `pairs_left` reaches, of which each takes the square of its length; several graphs share kMostPairs. More
/// than 1,024 values for which it does not reach are placed once, in the order in which they begin.
MemoryPlan plan_memory(std::span<const MemoryLifetime> lifetimes, std::size_t& pairs_left);
inline MemoryPlan plan_memory(std::span<const MemoryLifetime> lifetimes) {
  std::size_t pairs_left = kMostPairs;
  return plan_memory(lifetimes, pairs_left);
}

}  // namespace tensorlint::runtime
