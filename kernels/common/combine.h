#pragma once

// Combining states over lanes, warps, clusters and the grid. `Monoid` has a trivially copyable State and
//   static State identity();
//   static State combine(State a, State b);   // associative up to rounding, commutative bit for bit (zeros' signs
//   aside)
// All trees are fixed by the counts alone, so equal inputs give equal bits whatever the schedule and the machine.

#include "kernels/common/device.h"

namespace tensorlint::kernels {

/// Threads of a block everywhere in this folder: 8 warps, so that 8 blocks fill an SM of sm_80 and sm_90 at 32
/// registers and at least two still fit at 128.
constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / kWarpLanes;

/// Combines over groups of `lanes` (a power of two, at most 32) neighbouring lanes; every lane gets its group's result.
template <typename Monoid>
TL_DEVICE typename Monoid::State combine_lanes(typename Monoid::State state, unsigned lanes) {
  using State = typename Monoid::State;
  for (unsigned offset = 1; offset < lanes; offset *= 2) {
    const State other = shuffle_xor(kFullMask, state, offset);
    state = Monoid::combine(state, other);
  }
  return state;
}

/// Combines over the block; every thread gets the result. Ends with all reads of `scratch` (kWarps elements) done only
/// when the caller passes a barrier before the next use.
template <typename Monoid, typename Scratch>
TL_DEVICE typename Monoid::State combine_block(typename Monoid::State state, const Scratch& scratch) {
  using State = typename Monoid::State;
  state = combine_lanes<Monoid>(state, kWarpLanes);
  if (lane_in_warp() == 0) scratch[warp_in_block()] = state;
  block_barrier();
  State total = scratch[0];
  for (unsigned warp = 1; warp < kWarps; ++warp) {
    const State other = scratch[warp];
    total = Monoid::combine(total, other);
  }
  return total;
}

/// True in every thread of the one block of `count` that arrives last at `ticket`; there, all that any of them wrote
/// before is visible. The ticket is zero again afterwards. `flag`: shared, one element.
template <typename Flag>
TL_DEVICE bool arrives_last(unsigned* ticket, unsigned count, const Flag& flag) {
  block_barrier();  // what any thread wrote before happens before the fence of thread 0
  if (thread_in_block() == 0) {
    fence();
    const bool last = atomic_increment(ticket) == count - 1;
    fence();
    flag[0] = last ? 1U : 0U;
    if (last) store_global(ticket, 0U);
  }
  block_barrier();
  return flag[0] != 0U;
}

/// A plain sum as a monoid.
template <typename S>
struct Add {
  using State = S;
  static TL_HOST_DEVICE State identity() { return State{0}; }
  static TL_HOST_DEVICE State combine(State a, State b) { return a + b; }
};

/// The partial sums of all blocks, added in block order by the one that arrives last; that block's thread 0 gets true.
template <typename Scratch, typename Flag>
TL_DEVICE bool grid_sum(double& sum, double* partials, unsigned* ticket, unsigned blocks, const Scratch& scratch,
                        const Flag& flag) {
  const unsigned tid = thread_in_block();
  sum = combine_block<Add<double>>(sum, scratch);
  if (blocks > 1) {
    if (tid == 0) store_global(partials + block_in_grid(), sum);
    if (!arrives_last(ticket, blocks, flag)) return false;
    sum = 0;
    for (unsigned i = tid; i < blocks; i += kThreads) sum += load_shared_between_blocks(partials + i);
    sum = combine_block<Add<double>>(sum, scratch);
  }
  return tid == 0;
}

}  // namespace tensorlint::kernels
