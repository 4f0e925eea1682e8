#include "runtime/values/movement.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tensorlint::runtime {
namespace {

/// Axes over which both tensors are walked, the innermost last; neighbours that are one run in both are merged.
struct Walk {
  std::vector<std::int64_t> extents, to, from;
};

Walk merged(std::span<const std::int64_t> extents, std::span<const std::int64_t> to,
            std::span<const std::int64_t> from) {
  Walk walk;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] == 1) continue;
    if (!walk.extents.empty() && walk.to.back() == to[axis] * extents[axis] &&
        walk.from.back() == from[axis] * extents[axis]) {
      walk.extents.back() *= extents[axis];
      walk.to.back() = to[axis];
      walk.from.back() = from[axis];
    } else {
      walk.extents.push_back(extents[axis]);
      walk.to.push_back(to[axis]);
      walk.from.push_back(from[axis]);
    }
  }
  return walk;
}

/// Two axes, so that the walk is over planes: an axis of extent 1 where there are fewer. An axis that is a run in
/// `from` comes second to last where the last one is none, so that both tensors are read and written by cache lines.
void arrange(Walk& walk) {
  while (walk.extents.size() < 2) {
    walk.extents.insert(walk.extents.begin(), 1);
    walk.to.insert(walk.to.begin(), 0);
    walk.from.insert(walk.from.begin(), 0);
  }
  const std::size_t inner = walk.extents.size() - 1;
  if (walk.from[inner] == 1 || walk.from[inner] == 0) return;
  for (std::size_t axis = 0; axis + 1 < inner; ++axis) {
    if (walk.from[axis] != 1) continue;
    for (std::vector<std::int64_t>* const list : {&walk.extents, &walk.to, &walk.from})
      std::rotate(list->begin() + static_cast<std::ptrdiff_t>(axis),
                  list->begin() + static_cast<std::ptrdiff_t>(axis) + 1,
                  list->begin() + static_cast<std::ptrdiff_t>(inner));
    return;
  }
}

template <typename T>
void copy_run(T* to, std::int64_t to_stride, const T* from, std::int64_t from_stride, std::int64_t count) {
  if (to_stride == 1 && from_stride == 1) {
    std::copy_n(from, count, to);
  } else if (to_stride == 1 && from_stride == 0) {
    std::fill_n(to, count, *from);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

constexpr std::int64_t kTile = 16;  // elements of 4 bytes in a cache line

template <typename T>
void copy_plane(T* to, const T* from, std::span<const std::int64_t> extents, std::span<const std::int64_t> to_strides,
                std::span<const std::int64_t> from_strides) {
  const std::int64_t rows = extents[0], columns = extents[1];
  if (from_strides[1] == 1 || from_strides[1] == 0 || from_strides[0] != 1) {
    for (std::int64_t row = 0; row < rows; ++row)
      copy_run(to + row * to_strides[0], to_strides[1], from + row * from_strides[0], from_strides[1], columns);
    return;
  }
  for (std::int64_t column = 0; column < columns; column += kTile) {
    const std::int64_t width = std::min(kTile, columns - column);
    for (std::int64_t row = 0; row < rows; ++row)
      copy_run(to + row * to_strides[0] + column * to_strides[1], to_strides[1],
               from + row * from_strides[0] + column * from_strides[1], from_strides[1], width);
  }
}

template <typename T>
void copy_walk(T* to, const T* from, const Walk& walk) {
  const std::size_t outer = walk.extents.size() - 2;
  const auto plane = [&](const std::vector<std::int64_t>& list) { return std::span(list).subspan(outer); };
  std::vector<std::int64_t> index(outer, 0);
  for (;;) {
    copy_plane(to, from, plane(walk.extents), plane(walk.to), plane(walk.from));
    std::size_t axis = outer;
    for (;;) {
      if (axis-- == 0) return;
      to += walk.to[axis];
      from += walk.from[axis];
      if (++index[axis] < walk.extents[axis]) break;
      to -= walk.to[axis] * walk.extents[axis];
      from -= walk.from[axis] * walk.extents[axis];
      index[axis] = 0;
    }
  }
}

/// `size` is known where it is compiled for single elements, which a call of memcpy would slow down.
template <std::size_t size>
void copy_words(std::byte* to, std::size_t to_step, const std::byte* from, std::size_t from_step, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, size);
}

void copy_bytes(std::byte* to, std::size_t to_step, const std::byte* from, std::size_t from_step, std::size_t run,
                std::size_t count) {
  if (run == 4) return copy_words<4>(to, to_step, from, from_step, count);
  if (run == 8) return copy_words<8>(to, to_step, from, from_step, count);
  if (run == 16) return copy_words<16>(to, to_step, from, from_step, count);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, run);
}

}  // namespace

std::vector<std::int64_t> strides_of(std::span<const std::int64_t> extents) {
  std::vector<std::int64_t> strides(extents.size(), 1);
  for (std::size_t axis = extents.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * extents[axis];
  return strides;
}

void copy_elements(HostTensor& to, std::size_t to_first, const HostTensor& from, std::size_t from_first,
                   std::size_t count) {
  assert(to.dtype() == from.dtype());
  if (count == 0) return;
  if (to.dtype() == DType::kString) {
    std::copy_n(from.strings().begin() + static_cast<std::ptrdiff_t>(from_first), count,
                to.mutable_strings().begin() + static_cast<std::ptrdiff_t>(to_first));
    return;
  }
  const std::size_t width = element_bytes(to.dtype());
  std::memcpy(to.mutable_raw() + to_first * width, from.raw() + from_first * width, count * width);
}

void copy_blocks(HostTensor& to, const HostTensor& from, const Blocks& blocks) {
  assert(to.dtype() == from.dtype());
  if (blocks.run == 0 || blocks.count == 0) return;
  if (to.dtype() == DType::kString) {
    for (std::size_t i = 0; i < blocks.count; ++i)
      copy_elements(to, blocks.to_first + i * blocks.to_step, from, blocks.from_first + i * blocks.from_step,
                    blocks.run);
    return;
  }
  const std::size_t width = element_bytes(to.dtype());
  copy_bytes(to.mutable_raw() + blocks.to_first * width, blocks.to_step * width, from.raw() + blocks.from_first * width,
             blocks.from_step * width, blocks.run * width, blocks.count);
}

void copy_region(HostTensor& to, const Region& into, const HostTensor& from, const Region& out_of,
                 std::span<const std::int64_t> extents) {
  if (std::ranges::find(extents, 0) != extents.end()) return;
  Walk walk = merged(extents, into.strides, out_of.strides);
  arrange(walk);
  move_elements(to, from,
                [&](auto* target, const auto* source) { copy_walk(target + into.start, source + out_of.start, walk); });
}

void copy_strided(HostTensor& to, const HostTensor& from, std::int64_t start, std::span<const std::int64_t> strides) {
  assert(strides.size() == to.rank());
  const std::vector<std::int64_t> own = strides_of(to.extents());
  copy_region(to, {0, own}, from, {start, strides}, to.extents());
}

HostTensor zeros(DType dtype, Extents extents, Memory& memory) {
  HostTensor tensor(dtype, std::move(extents), memory);
  if (dtype != DType::kString) std::fill_n(tensor.mutable_raw(), tensor.bytes(), std::byte{0});
  return tensor;
}

void fill(HostTensor& to, const HostTensor& value) {
  const std::vector<std::int64_t> strides(to.rank(), 0);
  copy_strided(to, value, 0, strides);
}

AxisSplit split_at(std::span<const std::int64_t> extents, std::size_t axis) {
  AxisSplit split;
  for (std::size_t i = 0; i < extents.size(); ++i)
    (i < axis ? split.outer : i == axis ? split.extent : split.inner) *= static_cast<std::size_t>(extents[i]);
  return split;
}

void pick_slices(HostTensor& to, const HostTensor& from, std::size_t axis, std::span<const std::int64_t> picks) {
  const AxisSplit split = split_at(from.extents(), axis);
  if (split.outer == 0 || split.inner == 0) return;
  move_elements(to, from, [&](auto* target, const auto* source) {
    for (std::size_t o = 0; o < split.outer; ++o, source += split.extent * split.inner) {
      if (split.inner == 1) {
        for (const std::int64_t pick : picks) *target++ = source[pick];
        continue;
      }
      for (const std::int64_t pick : picks)
        target = std::copy_n(source + static_cast<std::size_t>(pick) * split.inner, split.inner, target);
    }
  });
}

HostTensor axis_last(const HostTensor& tensor, std::size_t axis, Memory& memory) {
  if (axis + 1 == tensor.rank()) return tensor;
  Extents extents = tensor.extents();
  std::vector<std::int64_t> strides = strides_of(extents);
  for (Extents* const list : {&extents, &strides})
    std::rotate(list->begin() + static_cast<std::ptrdiff_t>(axis),
                list->begin() + static_cast<std::ptrdiff_t>(axis) + 1, list->end());
  HostTensor moved(tensor.dtype(), std::move(extents), memory);
  copy_strided(moved, tensor, 0, strides);
  return moved;
}

void copy_axis_back(HostTensor& to, const HostTensor& from, std::size_t axis) {
  std::vector<std::int64_t> strides = strides_of(from.extents());
  std::rotate(strides.begin() + static_cast<std::ptrdiff_t>(axis), strides.end() - 1, strides.end());
  copy_strided(to, from, 0, strides);
}

std::vector<std::int64_t> broadcast_strides(std::span<const std::int64_t> from, std::span<const std::int64_t> target) {
  if (from.size() > target.size())
    throw RunFault{fmt::format("[{}] cannot be broadcast to [{}]", fmt::join(from, ", "), fmt::join(target, ", "))};
  std::vector<std::int64_t> strides(target.size(), 0);
  const std::vector<std::int64_t> own = strides_of(from);
  const std::size_t missing = target.size() - from.size();
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    if (from[axis] == target[missing + axis]) {
      strides[missing + axis] = from[axis] == 1 ? 0 : own[axis];
    } else if (from[axis] != 1) {
      throw RunFault{fmt::format("[{}] cannot be broadcast to [{}]", fmt::join(from, ", "), fmt::join(target, ", "))};
    }
  }
  return strides;
}

HostTensor slice_of(const HostTensor& tensor, std::size_t axis, std::int64_t index, Memory& memory) {
  Extents extents = tensor.extents();
  std::vector<std::int64_t> strides = strides_of(extents);
  const std::int64_t start = strides[axis] * index;
  extents.erase(extents.begin() + static_cast<std::ptrdiff_t>(axis));
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(axis));
  HostTensor slice(tensor.dtype(), std::move(extents), memory);
  copy_strided(slice, tensor, start, strides);
  return slice;
}

HostTensor stacked(std::span<const HostTensor> tensors, std::size_t axis, Memory& memory) {
  assert(!tensors.empty());
  const HostTensor& first = tensors.front();
  Extents extents = first.extents();
  std::size_t inner = 1;
  for (std::size_t i = axis; i < extents.size(); ++i) inner *= static_cast<std::size_t>(extents[i]);
  const std::size_t outer = inner == 0 ? 0 : first.size() / inner;
  extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(axis), static_cast<std::int64_t>(tensors.size()));
  HostTensor result(first.dtype(), std::move(extents), memory);
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    if (tensors[k].dtype() != first.dtype() || tensors[k].extents() != first.extents())
      throw RunFault{fmt::format("{} is [{}] in one iteration and {} [{}] in another", to_text(first.dtype()),
                                 fmt::join(first.extents(), ", "), to_text(tensors[k].dtype()),
                                 fmt::join(tensors[k].extents(), ", "))};
    for (std::size_t o = 0; o < outer; ++o)
      copy_elements(result, (o * tensors.size() + k) * inner, tensors[k], o * inner, inner);
  }
  return result;
}

}  // namespace tensorlint::runtime
