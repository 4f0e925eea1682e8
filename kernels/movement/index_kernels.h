#pragma once

// What is asked of the indices of a movement before it. Not templates: one source file includes them.

#include "kernels/common/walk.h"
#include "kernels/movement/kernel.h"

namespace tensorlint::kernels {

struct MergeIndices {
  using State = IndexSummary;
  static TL_HOST_DEVICE State identity() { return {0, INT64_MAX}; }
  static TL_HOST_DEVICE State combine(const State& a, const State& b) {
    return {a.bad + b.bad, a.first < b.first ? a.first : b.first};
  }
};

/// Counts indices outside of their extents, and finds the first.
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, 2) scan_indices(const IndexParameters p) {
  TL_SHARED(IndexSummary, scratch, kWarps);
  TL_SHARED(unsigned, flag, 1);
  const unsigned tid = thread_in_block();
  IndexSummary found = MergeIndices::identity();
  const auto take = [&](std::int64_t index, std::int64_t position) {
    const std::int64_t extent = p.extents[p.parts.remainder(position)];
    if (index < -extent || index >= extent) found = MergeIndices::combine(found, {1, position});
  };
  if (p.wide) {
    walk_integers(static_cast<const std::int64_t*>(p.indices), p.count, p.blocks, take);
  } else {
    walk_integers(static_cast<const std::int32_t*>(p.indices), p.count, p.blocks, take);
  }
  found = combine_block<MergeIndices>(found, scratch);
  if (p.blocks > 1) {
    if (tid == 0) store_global(p.partials + block_in_grid(), found);
    if (!arrives_last(p.ticket, p.blocks, flag)) return;
    found = MergeIndices::identity();
    for (unsigned i = tid; i < p.blocks; i += kThreads)
      found = MergeIndices::combine(found, load_shared_between_blocks(p.partials + i));
    found = combine_block<MergeIndices>(found, scratch);
  }
  if (tid != 0) return;
  store_global(p.report, found.bad);
  store_global(p.report + 1, found.bad > 0 ? found.first : std::int64_t{-1});
}

TL_DEVICE std::int64_t target_of(const MovementParameters& p, std::int64_t tuple, bool& is_inside) {
  std::int64_t to = route_of<MovementKind::kScatter>(p, tuple * p.tuple_elements).to;
  TL_ROLLED
  for (int part = 0; part < p.parts; ++part) to += index_at(p, tuple, part, is_inside);
  return to;
}

/// For each tuple whether its target is there, and no later tuple has the same.
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, 2) find_last_updates(const LastUpdateParameters p) {
  const std::int64_t tuple = std::int64_t{block_in_grid()} * kThreads + thread_in_block();
  if (tuple >= p.movement.tuples) return;
  bool is_last = true;
  const std::int64_t target = target_of(p.movement, tuple, is_last);
  TL_ROLLED
  for (std::int64_t later = tuple + 1; is_last && later < p.movement.tuples; ++later) {
    bool is_inside = true;
    const std::int64_t other = target_of(p.movement, later, is_inside);
    is_last = !(is_inside && other == target);
  }
  store_global(p.last + tuple, is_last ? 1U : 0U);
}

}  // namespace tensorlint::kernels
