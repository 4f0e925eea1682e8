#include "runtime/values/movement.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tensorlint::runtime {
namespace {

/// Axes over which `from` is walked, the innermost last; neighbours that are one run of elements are merged.
struct Walk {
  std::vector<std::int64_t> extents, strides;
};

Walk merged(std::span<const std::int64_t> extents, std::span<const std::int64_t> strides) {
  Walk walk;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] == 1) continue;
    if (!walk.extents.empty() && walk.strides.back() == strides[axis] * extents[axis]) {
      walk.extents.back() *= extents[axis];
      walk.strides.back() = strides[axis];
    } else {
      walk.extents.push_back(extents[axis]);
      walk.strides.push_back(strides[axis]);
    }
  }
  return walk;
}

template <typename T>
void copy_run(T* to, const T* from, std::int64_t count, std::int64_t stride) {
  if (stride == 1) {
    std::copy_n(from, count, to);
  } else if (stride == 0) {
    std::fill_n(to, count, *from);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
  }
}

template <typename T>
void copy_walk(T* to, const T* from, const Walk& walk) {
  if (walk.extents.empty()) {
    *to = *from;
    return;
  }
  const std::size_t inner = walk.extents.size() - 1;
  std::vector<std::int64_t> index(inner, 0);
  for (;;) {
    copy_run(to, from, walk.extents[inner], walk.strides[inner]);
    to += walk.extents[inner];
    std::size_t axis = inner;
    while (axis > 0) {
      --axis;
      from += walk.strides[axis];
      if (++index[axis] < walk.extents[axis]) break;
      from -= walk.strides[axis] * walk.extents[axis];
      index[axis] = 0;
      if (axis == 0) return;
    }
    if (inner == 0) return;
  }
}

struct Word128 {
  std::uint64_t low, high;
};

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

void copy_strided(HostTensor& to, const HostTensor& from, std::int64_t start, std::span<const std::int64_t> strides) {
  assert(to.dtype() == from.dtype() && strides.size() == to.rank());
  if (to.size() == 0) return;
  const Walk walk = merged(to.extents(), strides);
  if (to.dtype() == DType::kString)
    return copy_walk(to.mutable_strings().data(), from.strings().data() + start, walk);
  switch (element_bytes(to.dtype())) {
    case 1:
      return copy_walk(to.as_mutable<std::uint8_t>().data(), from.as<std::uint8_t>().data() + start, walk);
    case 2:
      return copy_walk(to.as_mutable<std::uint16_t>().data(), from.as<std::uint16_t>().data() + start, walk);
    case 4:
      return copy_walk(to.as_mutable<std::uint32_t>().data(), from.as<std::uint32_t>().data() + start, walk);
    case 8:
      return copy_walk(to.as_mutable<std::uint64_t>().data(), from.as<std::uint64_t>().data() + start, walk);
    default:
      return copy_walk(to.as_mutable<Word128>().data(), from.as<Word128>().data() + start, walk);
  }
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
