#pragma once

// One kernel for each kind and width: a thread takes 4 words of the result that lie a grid apart, finds where each
// comes from and goes to, loads all of them, and stores them.

#include "kernels/common/combine.h"
#include "kernels/movement/plan.h"

namespace tensorlint::kernels {

/// Where word `i` comes from and goes to, in words.
struct Route {
  std::int64_t from, to;
  std::int64_t tuple;
  bool is_inside;  // the source has it, and the destination gets it
};

/// Element c of an axis whose source has n, seen over the border.
TL_HOST_DEVICE std::int64_t over_border(Border border, std::int64_t c, std::int64_t n, bool& is_inside) {
  if (c >= 0 && c < n) return c;
  switch (border) {
    case Border::kEdge:
      return c < 0 ? 0 : n - 1;
    case Border::kReflect:
      return c < 0 ? -c : 2 * (n - 1) - c;
    case Border::kWrap:
      return c < 0 ? c + n : c - n;
    default:
      is_inside = false;
      return 0;
  }
}

/// Index `part` of a tuple; outside of its extent nothing is there.
TL_DEVICE std::int64_t index_at(const MovementParameters& p, std::int64_t tuple, int part, bool& is_inside) {
  const std::int64_t at = tuple * p.parts + part;
  std::int64_t index = p.wide_indices ? load_global(static_cast<const std::int64_t*>(p.indices) + at)
                                      : std::int64_t{load_global(static_cast<const std::int32_t*>(p.indices) + at)};
  if (index < 0) index += p.part_extents[part];
  if (index < 0 || index >= p.part_extents[part]) {
    is_inside = false;
    return 0;
  }
  return index * p.part_strides[part];
}

template <MovementKind kKind>
TL_HOST_DEVICE Route route_of(const MovementParameters& p, std::int64_t i) {
  Route route = {p.from_offset, p.to_offset, 0, true};
  // Unrolled, so that the loads of a batch lie in one loop.
  TL_UNROLL
  for (int axis = kMaxMovementRank - 1; axis >= 0; --axis) {
    if (axis >= p.rank) continue;
    const std::int64_t outer = axis > 0 ? p.extents[axis].quotient(i) : 0;
    const std::int64_t c = i - outer * p.extents[axis].value;
    i = outer;
    route.to += c * p.to_strides[axis];
    if constexpr (kKind == MovementKind::kPad) {
      route.from += over_border(p.border, c - p.before[axis], p.inside[axis], route.is_inside) * p.from_strides[axis];
    } else {
      route.from += c * p.from_strides[axis];
    }
    if constexpr (kKind == MovementKind::kGather || kKind == MovementKind::kScatter)
      route.tuple += c * p.index_strides[axis];
  }
  return route;
}

/// The same with the indices.
template <MovementKind kKind>
TL_DEVICE Route indexed_route_of(const MovementParameters& p, std::int64_t i) {
  Route route = route_of<kKind>(p, i);
  if constexpr (kKind == MovementKind::kGather || kKind == MovementKind::kScatter) {
    if constexpr (kKind == MovementKind::kScatter) route.is_inside = load_global(p.last + route.tuple) != 0;
    std::int64_t& side = kKind == MovementKind::kGather ? route.from : route.to;
    TL_UNROLL
    for (int part = 0; part < kMaxMovementRank; ++part)
      if (part < p.parts) side += index_at(p, route.tuple, part, route.is_inside);
  }
  return route;
}

template <typename Word, MovementKind kKind>
TL_DEVICE Word word_at(const MovementParameters& p, const Route& route) {
  Word word;
  if constexpr (kKind == MovementKind::kGather) {
    word = Word{};
  } else {
    memcpy(&word, &p.fill, sizeof word);
  }
  if (kKind == MovementKind::kCopy || route.is_inside)
    word = load_global(reinterpret_cast<const Word*>(p.source) + route.from);
  return word;
}

template <typename Word, MovementKind kKind>
TL_DEVICE void put_word(const MovementParameters& p, const Route& route, const Word& word) {
  if (kKind != MovementKind::kScatter || route.is_inside)
    store_global(reinterpret_cast<Word*>(p.destination) + route.to, word);
}

template <typename Word, MovementKind kKind>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, 4) move_words(const MovementParameters p) {
  const std::int64_t step = std::int64_t{blocks_in_grid()} * kThreads;
  std::int64_t i = std::int64_t{block_in_grid()} * kThreads + thread_in_block();
  TL_ROLLED
  for (; i + 3 * step < p.elements; i += 4 * step) {
    Route routes[4];
    Word batch[4];
    TL_UNROLL
    for (int v = 0; v < 4; ++v) routes[v] = indexed_route_of<kKind>(p, i + v * step);
    TL_UNROLL
    for (int v = 0; v < 4; ++v) batch[v] = word_at<Word, kKind>(p, routes[v]);
    TL_UNROLL
    for (int v = 0; v < 4; ++v) put_word<Word, kKind>(p, routes[v], batch[v]);
  }
  TL_ROLLED
  for (; i < p.elements; i += step) {
    const Route route = indexed_route_of<kKind>(p, i);
    put_word<Word, kKind>(p, route, word_at<Word, kKind>(p, route));
  }
}

}  // namespace tensorlint::kernels
