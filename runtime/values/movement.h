#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/values/host_tensor.h"

namespace tensorlint::runtime {

/// Row-major strides in elements.
std::vector<std::int64_t> strides_of(std::span<const std::int64_t> extents);

/// Copies `count` elements, of any dtype, strings included; both tensors have one dtype.
void copy_elements(HostTensor& to, std::size_t to_first, const HostTensor& from, std::size_t from_first,
                   std::size_t count);

/// Element (i, j, ...) of `to`, row-major, is element start + i * strides[0] + j * strides[1] + ... of `from`. Strides
/// may be 0 (broadcasting) and negative (reversal). The one way for Transpose, Slice, Expand and the like.
void copy_strided(HostTensor& to, const HostTensor& from, std::int64_t start, std::span<const std::int64_t> strides);

/// Strides of `from` for each axis of `target`, to which it is broadcast (numpy's rules): 0 for stretched axes. Throws
/// RunFault where it cannot be.
std::vector<std::int64_t> broadcast_strides(std::span<const std::int64_t> from, std::span<const std::int64_t> target);

/// Entry `index` of an axis, which goes.
HostTensor slice_of(const HostTensor& tensor, std::size_t axis, std::int64_t index, Memory& memory);
/// Tensors of one shape along a new axis. Throws RunFault where shapes or dtypes differ.
HostTensor stacked(std::span<const HostTensor> tensors, std::size_t axis, Memory& memory);

}  // namespace tensorlint::runtime
