#pragma once

#include <algorithm>

#include "kernels/attention/attention_kernel.h"
#include "kernels/common/launch.h"

namespace tensorlint::kernels {

/// One instance file for each element type. Errors: kLaunchFailed.
template <typename T>
Status launch_attention(const AttentionParameters<T>& p, unsigned blocks, Stream stream);

#if defined(TL_ATTENTION_INSTANCES)
template <typename T>
Status launch_attention(const AttentionParameters<T>& p, unsigned blocks, Stream stream) {
  const int wide = p.value_width <= kAttentionEdge ? 1 : p.value_width <= 2 * kAttentionEdge ? 2 : 4;
  const int padded = padded_width(p.width);
  const int rows = padded + std::max(padded, kAttentionEdge * wide) + kAttentionEdge;
  const Geometry geometry = {blocks, kThreads, 1, static_cast<std::size_t>(rows) * kAttentionPitch * sizeof(float)};
  if (wide == 1) return launch(&attend_tiles<T, 1>, geometry, stream, p);
  if (wide == 2) return launch(&attend_tiles<T, 2>, geometry, stream, p);
  return launch(&attend_tiles<T, 4>, geometry, stream, p);
}
#endif

}  // namespace tensorlint::kernels
