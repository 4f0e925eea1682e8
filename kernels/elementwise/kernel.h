#pragma once

// One kernel for all programs of element functions of a compute type. A warp stages a tile of every operand in shared
// memory, by vectors of 16 bytes whatever the dtypes, so that elements of different widths meet in one lane; each lane
// runs the program on 8 neighbouring elements at a time; and results leave the same way. Which step it is, is the same
// for all lanes, so that the price of interpretation is some instructions a step for 256 elements.

#include "kernels/common/launch.h"
#include "kernels/common/vector.h"
#include "kernels/elementwise/element_functions.h"
#include "kernels/elementwise/plan.h"

namespace tensorlint::kernels {

using Cell = Vector<std::uint32_t>;
constexpr unsigned kCellBytes = sizeof(Cell);

/// Blocks of 256 threads that fit an SM at the registers which the compute type needs.
template <typename C>
constexpr int kElementwiseBlocks = sizeof(C) == 4 ? 4 : 2;

/// Where element `element` of the result finds its operand, in elements.
TL_HOST_DEVICE std::int64_t offset_in(const StagedOperand& operand, const ElementwiseParameters& p,
                                      std::int64_t element) {
  std::int64_t offset = 0;
  TL_ROLLED
  for (int axis = p.rank - 1; axis > 0; --axis) {
    const std::int64_t outer = p.extents[axis].quotient(element);
    offset += (element - outer * p.extents[axis].value) * operand.strides[axis];
    element = outer;
  }
  return offset + element * operand.strides[0];
}

/// `count` cells of this lane from `at(number)`, 4 under way at a time.
template <typename Shared, typename Address>
TL_DEVICE void stage_vectors(const Shared& shared, unsigned to, unsigned count, const Address& at) {
  unsigned j = 0;
  TL_ROLLED
  for (; j + 4 <= count; j += 4) {
    Cell batch[4];
    TL_UNROLL
    for (unsigned v = 0; v < 4; ++v) batch[v] = load_global(at(j + v));
    TL_UNROLL
    for (unsigned v = 0; v < 4; ++v) shared[to + (j + v) * kWarpLanes] = batch[v];
  }
  TL_ROLLED
  for (; j < count; ++j) shared[to + j * kWarpLanes] = load_global(at(j));
}

/// The same element by element, 0 where there are none.
template <typename Word, typename Shared>
TL_DEVICE void stage_elements(const StagedOperand& operand, const ElementwiseParameters& p, const Shared& shared,
                              unsigned to, unsigned count, std::int64_t first) {
  constexpr int kSize = Vector<Word>::kSize;
  const Word* const data = reinterpret_cast<const Word*>(operand.data);
  TL_ROLLED
  for (unsigned j = 0; j < count; ++j) {
    const std::int64_t element = first + std::int64_t{j * kWarpLanes + lane_in_warp()} * kSize;
    Vector<Word> vector{};
    TL_UNROLL
    for (int i = 0; i < kSize; ++i)
      if (element + i < p.elements) vector.set_element(i, load_global(data + offset_in(operand, p, element + i)));
    shared[to + j * kWarpLanes] = bit_cast<Cell>(vector);
  }
}

template <typename Shared>
TL_DEVICE void stage(const StagedOperand& operand, const ElementwiseParameters& p, const Shared& shared, unsigned base,
                     std::int64_t first, bool whole) {
  const unsigned lane = lane_in_warp();
  const unsigned to = base + operand.cells + lane;
  const unsigned count = static_cast<unsigned>(p.passes * kLaneElements * operand.bytes) / kCellBytes;
  if (whole && operand.staging == Staging::kDense) {
    const Cell* const data = reinterpret_cast<const Cell*>(operand.data + first * operand.bytes) + lane;
    stage_vectors(shared, to, count, [&](unsigned j) { return data + j * kWarpLanes; });
  } else if (whole && operand.staging == Staging::kVectors) {
    const unsigned size = kCellBytes / static_cast<unsigned>(operand.bytes);
    stage_vectors(shared, to, count, [&](unsigned j) {
      const std::int64_t element = first + std::int64_t{(j * kWarpLanes + lane) * size};
      return reinterpret_cast<const Cell*>(operand.data + offset_in(operand, p, element) * operand.bytes);
    });
  } else {
    switch (operand.bytes) {
      case 1:
        return stage_elements<std::uint8_t>(operand, p, shared, to, count, first);
      case 2:
        return stage_elements<std::uint16_t>(operand, p, shared, to, count, first);
      case 4:
        return stage_elements<std::uint32_t>(operand, p, shared, to, count, first);
      default:
        return stage_elements<std::uint64_t>(operand, p, shared, to, count, first);
    }
  }
}

/// This lane's elements of type T, which begin `lane`-th from `from` on.
template <typename T, typename C, typename Shared>
TL_DEVICE void unpack_lane(const Shared& shared, unsigned from, unsigned lane, Lane<C>& to) {
  constexpr int kSize = Vector<T>::kSize;
  if constexpr (kSize == 2 * kLaneElements) {  // two lanes share a cell
    const Cell cell = shared[from + lane / 2];
    Vector<T> vector{};
    vector.words[0] = lane % 2 == 0 ? cell.words[0] : cell.words[2];
    vector.words[1] = lane % 2 == 0 ? cell.words[1] : cell.words[3];
    TL_UNROLL
    for (int i = 0; i < kLaneElements; ++i) to.x[i] = computed<C>(vector.element(i));
  } else {
    TL_UNROLL
    for (int v = 0; v < kLaneElements / kSize; ++v) {
      const Cell cell = shared[from + lane * (kLaneElements / kSize) + static_cast<unsigned>(v)];
      const Vector<T> vector = bit_cast<Vector<T>>(cell);
      TL_UNROLL
      for (int i = 0; i < kSize; ++i) to.x[v * kSize + i] = computed<C>(vector.element(i));
    }
  }
}

template <typename C>
TL_DEVICE void fill_lane(Lane<C>& to, C value) {
  TL_UNROLL
  for (int i = 0; i < kLaneElements; ++i) to.x[i] = value;
}

/// One element for all, read through the cache.
template <typename C>
TL_DEVICE C single_element(const StagedOperand& operand) {
  const void* const at = operand.data;
  switch (operand.dtype) {
    case Dtype::kFloat64:
      return computed<C>(load_global(static_cast<const double*>(at)));
    case Dtype::kFloat32:
      return computed<C>(load_global(static_cast<const float*>(at)));
    case Dtype::kFloat16:
      return computed<C>(load_global(static_cast<const Half*>(at)));
    case Dtype::kBFloat16:
      return computed<C>(load_global(static_cast<const BFloat16*>(at)));
    case Dtype::kInt8:
      return computed<C>(load_global(static_cast<const std::int8_t*>(at)));
    case Dtype::kInt16:
      return computed<C>(load_global(static_cast<const std::int16_t*>(at)));
    case Dtype::kInt32:
      return computed<C>(load_global(static_cast<const std::int32_t*>(at)));
    case Dtype::kInt64:
      return computed<C>(load_global(static_cast<const std::int64_t*>(at)));
    default:
      return computed<C>(load_global(static_cast<const std::uint8_t*>(at)));
  }
}

/// Cells of a kept result: those of one lane lie a warp apart, so that lanes lie side by side.
template <typename C>
constexpr unsigned kSlotCells = static_cast<unsigned>(kLaneElements * sizeof(C) / sizeof(Cell));

template <typename C, typename Shared>
TL_DEVICE void save(const ElementwiseParameters& p, const Shared& shared, unsigned base, int slot,
                    const Lane<C>& from) {
  constexpr int kSize = Vector<C>::kSize;
  const unsigned first = base + p.slot_cells + static_cast<unsigned>(slot - kFirstSlot) * kSlotCells<C> * kWarpLanes;
  TL_UNROLL
  for (unsigned v = 0; v < kSlotCells<C>; ++v) {
    Vector<C> vector{};
    TL_UNROLL
    for (int i = 0; i < kSize; ++i) vector.set_element(i, from.x[static_cast<int>(v) * kSize + i]);
    shared[first + v * kWarpLanes + lane_in_warp()] = bit_cast<Cell>(vector);
  }
}

template <typename C, typename Shared>
TL_DEVICE void fetch(const ElementwiseParameters& p, const Shared& shared, unsigned base, unsigned pass, int source,
                     Lane<C>& to) {
  if (source >= kFirstSlot) {
    constexpr int kSize = Vector<C>::kSize;
    const unsigned first =
        base + p.slot_cells + static_cast<unsigned>(source - kFirstSlot) * kSlotCells<C> * kWarpLanes;
    TL_UNROLL
    for (unsigned v = 0; v < kSlotCells<C>; ++v) {
      const Cell cell = shared[first + v * kWarpLanes + lane_in_warp()];
      const Vector<C> vector = bit_cast<Vector<C>>(cell);
      TL_UNROLL
      for (int i = 0; i < kSize; ++i) to.x[static_cast<int>(v) * kSize + i] = vector.element(i);
    }
    return;
  }
  const StagedOperand& operand = p.operands[source];
  if (operand.staging == Staging::kNumber) return fill_lane(to, computed<C>(operand.number));
  if (operand.staging == Staging::kOne) return fill_lane(to, single_element<C>(operand));
  const unsigned from = base + operand.cells;
  const unsigned lane = pass * kWarpLanes + lane_in_warp();
  switch (operand.dtype) {
    case Dtype::kFloat64:
      return unpack_lane<double>(shared, from, lane, to);
    case Dtype::kFloat32:
      return unpack_lane<float>(shared, from, lane, to);
    case Dtype::kFloat16:
      return unpack_lane<Half>(shared, from, lane, to);
    case Dtype::kBFloat16:
      return unpack_lane<BFloat16>(shared, from, lane, to);
    case Dtype::kInt8:
      return unpack_lane<std::int8_t>(shared, from, lane, to);
    case Dtype::kInt16:
      return unpack_lane<std::int16_t>(shared, from, lane, to);
    case Dtype::kInt32:
      return unpack_lane<std::int32_t>(shared, from, lane, to);
    case Dtype::kInt64:
      return unpack_lane<std::int64_t>(shared, from, lane, to);
    default:
      return unpack_lane<std::uint8_t>(shared, from, lane, to);
  }
}

template <typename T, typename C>
TL_DEVICE void round_lane(Lane<C>& a) {
  TL_UNROLL
  for (int i = 0; i < kLaneElements; ++i) a.x[i] = computed<C>(converted<T>(a.x[i]));
}

/// As if the step's result had been stored and read again.
template <typename C>
TL_DEVICE void round_to(Dtype dtype, Lane<C>& a) {
  if constexpr (std::is_floating_point_v<C>) {
    if (dtype == Dtype::kFloat16) return round_lane<Half>(a);
    if (dtype == Dtype::kBFloat16) return round_lane<BFloat16>(a);
    if constexpr (sizeof(C) == 8)
      if (dtype == Dtype::kFloat32) return round_lane<float>(a);
  } else {
    switch (dtype) {
      case Dtype::kInt8:
        return round_lane<std::int8_t>(a);
      case Dtype::kInt16:
        return round_lane<std::int16_t>(a);
      case Dtype::kInt32:
        return round_lane<std::int32_t>(a);
      case Dtype::kUInt8:
        return round_lane<std::uint8_t>(a);
      default:
        break;
    }
  }
  if (dtype == Dtype::kBool) {
    TL_UNROLL
    for (int i = 0; i < kLaneElements; ++i) a.x[i] = element::truth<C>(a.x[i] != 0);
  }
}

template <typename T, typename C, typename Shared>
TL_DEVICE void pack_lane(const Shared& shared, unsigned to, unsigned lane, const Lane<C>& from) {
  constexpr int kSize = Vector<T>::kSize;
  if constexpr (kSize == 2 * kLaneElements) {  // the even lane writes for its neighbour
    struct Half8 {
      std::uint32_t words[2];
    };
    Vector<T> vector{};
    TL_UNROLL
    for (int i = 0; i < kLaneElements; ++i) vector.set_element(i, converted<T>(from.x[i]));
    const Half8 own = {{vector.words[0], vector.words[1]}};
    const Half8 other = shuffle_xor(kFullMask, own, 1);
    if (lane % 2 == 0) shared[to + lane / 2] = Cell{{own.words[0], own.words[1], other.words[0], other.words[1]}};
  } else {
    TL_UNROLL
    for (int v = 0; v < kLaneElements / kSize; ++v) {
      Vector<T> vector{};
      TL_UNROLL
      for (int i = 0; i < kSize; ++i) vector.set_element(i, converted<T>(from.x[v * kSize + i]));
      shared[to + lane * (kLaneElements / kSize) + static_cast<unsigned>(v)] = bit_cast<Cell>(vector);
    }
  }
}

/// Integers are a lane's low bits, whatever their dtype calls them.
template <typename C, typename Shared>
TL_DEVICE void pack_result(const ElementwiseParameters& p, const Shared& shared, unsigned base, unsigned pass,
                           Lane<C>& from) {
  const unsigned to = base + p.result_cells;
  const unsigned lane = pass * kWarpLanes + lane_in_warp();
  switch (p.result_dtype) {
    case Dtype::kFloat64:
      return pack_lane<double>(shared, to, lane, from);
    case Dtype::kFloat32:
      return pack_lane<float>(shared, to, lane, from);
    case Dtype::kFloat16:
      return pack_lane<Half>(shared, to, lane, from);
    case Dtype::kBFloat16:
      return pack_lane<BFloat16>(shared, to, lane, from);
    case Dtype::kInt64:
      return pack_lane<std::int64_t>(shared, to, lane, from);
    case Dtype::kInt32:
      return pack_lane<std::int32_t>(shared, to, lane, from);
    case Dtype::kInt16:
      return pack_lane<std::int16_t>(shared, to, lane, from);
    case Dtype::kBool:
      round_to(Dtype::kBool, from);
      return pack_lane<std::uint8_t>(shared, to, lane, from);
    default:
      return pack_lane<std::uint8_t>(shared, to, lane, from);
  }
}

template <typename Word, typename Shared>
TL_DEVICE void write_elements(const ElementwiseParameters& p, const Shared& shared, unsigned from, unsigned count,
                              std::int64_t first) {
  constexpr int kSize = Vector<Word>::kSize;
  Word* const result = reinterpret_cast<Word*>(p.result);
  TL_ROLLED
  for (unsigned j = 0; j < count; ++j) {
    const Cell cell = shared[from + j * kWarpLanes];
    const Vector<Word> vector = bit_cast<Vector<Word>>(cell);
    const std::int64_t element = first + std::int64_t{j * kWarpLanes + lane_in_warp()} * kSize;
    TL_UNROLL
    for (int i = 0; i < kSize; ++i)
      if (element + i < p.elements) store_global(result + element + i, vector.element(i));
  }
}

/// A tile of results to where they belong.
template <typename Shared>
TL_DEVICE void write(const ElementwiseParameters& p, const Shared& shared, unsigned base, std::int64_t first,
                     bool whole) {
  const unsigned from = base + p.result_cells + lane_in_warp();
  const unsigned count = static_cast<unsigned>(p.passes * kLaneElements * p.result_bytes) / kCellBytes;
  if (whole && p.result_aligned) {
    Cell* const result = reinterpret_cast<Cell*>(p.result + first * p.result_bytes) + lane_in_warp();
    TL_ROLLED
    for (unsigned j = 0; j < count; ++j) {
      const Cell cell = shared[from + j * kWarpLanes];
      store_global(result + j * kWarpLanes, cell);
    }
    return;
  }
  switch (p.result_bytes) {
    case 1:
      return write_elements<std::uint8_t>(p, shared, from, count, first);
    case 2:
      return write_elements<std::uint16_t>(p, shared, from, count, first);
    case 4:
      return write_elements<std::uint32_t>(p, shared, from, count, first);
    default:
      return write_elements<std::uint64_t>(p, shared, from, count, first);
  }
}

template <typename C>
TL_KERNEL void TL_LAUNCH_BOUNDS(256, kElementwiseBlocks<C>) elementwise(const ElementwiseParameters p) {
  TL_DYNAMIC_SHARED(Cell, shared);
  const unsigned base = warp_in_block() * p.warp_cells;
  const unsigned warps = threads_per_block() / kWarpLanes;
  const std::int64_t tile_elements = std::int64_t{p.passes} * kLaneElements * kWarpLanes;
  TL_ROLLED
  for (std::int64_t tile = std::int64_t{block_in_grid()} * warps + warp_in_block(); tile < p.tiles;
       tile += std::int64_t{blocks_in_grid()} * warps) {
    const std::int64_t first = tile * tile_elements;
    const bool whole = first + tile_elements <= p.elements;
    TL_ROLLED
    for (int k = 0; k < p.operand_count; ++k)
      if (p.operands[k].staging > Staging::kOne) stage(p.operands[k], p, shared, base, first, whole);
    warp_barrier(kFullMask);
    TL_ROLLED
    for (unsigned pass = 0; pass < static_cast<unsigned>(p.passes); ++pass) {
      Lane<C> a{};
      TL_ROLLED
      for (int s = 0; s < p.step_count; ++s) {
        const ProgramStep& step = p.steps[s];
        Lane<C> b{};
        Lane<C> c{};
        if (step.c == kAccumulator) {
          c = a;
        } else if (step.c != kNothing) {
          fetch(p, shared, base, pass, step.c, c);
        }
        if (step.b == kAccumulator) {
          b = a;
        } else if (step.b != kNothing) {
          fetch(p, shared, base, pass, step.b, b);
        }
        if (step.a != kAccumulator) fetch(p, shared, base, pass, step.a, a);
        apply_element_op(step.op, a, b, c, step.alpha, step.beta);
        round_to(step.dtype, a);
        if (step.save != kNothing) save(p, shared, base, step.save, a);
      }
      pack_result(p, shared, base, pass, a);
    }
    warp_barrier(kFullMask);
    write(p, shared, base, first, whole);
  }
}

}  // namespace tensorlint::kernels
