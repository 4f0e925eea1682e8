#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/values/host_tensor.h"

namespace tensorlint::runtime {

/// Row-major strides in elements.
std::vector<std::int64_t> strides_of(std::span<const std::int64_t> extents);

/// Copies `count` elements, of any dtype, strings included; both tensors have one dtype.
void copy_elements(HostTensor& to, std::size_t to_first, const HostTensor& from, std::size_t from_first,
                   std::size_t count);

/// `count` times `run` elements, whose beginnings lie `to_step` and `from_step` elements apart.
struct Blocks {
  std::size_t run = 0, count = 0;
  std::size_t to_first = 0, to_step = 0, from_first = 0, from_step = 0;
};
void copy_blocks(HostTensor& to, const HostTensor& from, const Blocks& blocks);

/// Element (i, j, ...) of `to`, row-major, is element start + i * strides[0] + j * strides[1] + ... of `from`. Strides
/// may be 0 (broadcasting) and negative (reversal). The one way for Transpose, Slice, Expand and the like.
void copy_strided(HostTensor& to, const HostTensor& from, std::int64_t start, std::span<const std::int64_t> strides);

/// A box of elements that lies in a tensor with these strides.
struct Region {
  std::int64_t start = 0;
  std::span<const std::int64_t> strides;
};
/// The same where only a part of `to` is written: for each index of `extents`.
void copy_region(HostTensor& to, const Region& into, const HostTensor& from, const Region& out_of,
                 std::span<const std::int64_t> extents);

/// Every element becomes the one element of `value`.
void fill(HostTensor& to, const HostTensor& value);
/// All bits 0; strings are empty.
HostTensor zeros(DType dtype, Extents extents, Memory& memory);

/// Entry i of the result along `axis` is entry picks[i] of `from`, all in [0, extent): Gather and the like.
void pick_slices(HostTensor& to, const HostTensor& from, std::size_t axis, std::span<const std::int64_t> picks);

/// A tensor as outer x extent x inner elements around an axis.
struct AxisSplit {
  std::size_t outer = 1, extent = 1, inner = 1;
};
AxisSplit split_at(std::span<const std::int64_t> extents, std::size_t axis);

/// The tensor with the axis moved to the end; shares elements where it is there already.
HostTensor axis_last(const HostTensor& tensor, std::size_t axis, Memory& memory);
/// The other way: `to` with the axis where it belongs from `from` with it at the end.
void copy_axis_back(HostTensor& to, const HostTensor& from, std::size_t axis);

/// Strides of `from` for each axis of `target`, to which it is broadcast (numpy's rules): 0 for stretched axes. Throws
/// RunFault where it cannot be.
std::vector<std::int64_t> broadcast_strides(std::span<const std::int64_t> from, std::span<const std::int64_t> target);

/// Entry `index` of an axis, which goes.
HostTensor slice_of(const HostTensor& tensor, std::size_t axis, std::int64_t index, Memory& memory);
/// Tensors of one shape along a new axis. Throws RunFault where shapes or dtypes differ.
HostTensor stacked(std::span<const HostTensor> tensors, std::size_t axis, Memory& memory);

struct Word128 {
  std::uint64_t low, high;
};

/// Calls move(to, from) with pointers to elements of one dtype, as words of their width or as strings: for moving
/// elements whatever they are.
template <typename Move>
void move_elements(HostTensor& to, const HostTensor& from, Move move) {
  assert(to.dtype() == from.dtype());
  if (to.dtype() == DType::kString) return move(to.mutable_strings().data(), from.strings().data());
  switch (element_bytes(to.dtype())) {
    case 1:
      return move(to.as_mutable<std::uint8_t>().data(), from.as<std::uint8_t>().data());
    case 2:
      return move(to.as_mutable<std::uint16_t>().data(), from.as<std::uint16_t>().data());
    case 4:
      return move(to.as_mutable<std::uint32_t>().data(), from.as<std::uint32_t>().data());
    case 8:
      return move(to.as_mutable<std::uint64_t>().data(), from.as<std::uint64_t>().data());
    default:
      return move(to.as_mutable<Word128>().data(), from.as<Word128>().data());
  }
}

/// Walks the rows (runs along the last axis) of `extents` in row-major order: visit(row, offset), where each step along
/// an axis adds its stride to the offset. Once for rank 0.
template <typename Visit>
void for_each_row(std::span<const std::int64_t> extents, std::span<const std::int64_t> strides, Visit visit) {
  const std::size_t outer = extents.empty() ? 0 : extents.size() - 1;
  std::size_t rows = 1;
  for (std::size_t axis = 0; axis < outer; ++axis) rows *= static_cast<std::size_t>(extents[axis]);
  std::vector<std::int64_t> index(outer, 0);
  std::int64_t offset = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    visit(row, offset);
    for (std::size_t axis = outer; axis-- > 0;) {
      offset += strides[axis];
      if (++index[axis] < extents[axis]) break;
      offset -= strides[axis] * extents[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace tensorlint::runtime
