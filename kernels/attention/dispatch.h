#pragma once

#include "kernels/attention/attention_kernel.h"
#include "kernels/common/launch.h"

namespace tensorlint::kernels {

/// One instance file for each element type. Errors: kLaunchFailed.
template <typename T>
Status launch_attention(const AttentionParameters<T>& p, unsigned blocks, Stream stream);

#if defined(TL_ATTENTION_INSTANCES)
template <typename T>
Status launch_attention(const AttentionParameters<T>& p, unsigned blocks, Stream stream) {
  const int wide = attention_parts(p.value_width);
  const Geometry geometry = {blocks, kThreads, 1, attention_shared_bytes(p.width, p.value_width)};
  if (wide == 1) return launch(&attend_tiles<T, 1>, geometry, stream, p);
  if (wide == 2) return launch(&attend_tiles<T, 2>, geometry, stream, p);
  return launch(&attend_tiles<T, 4>, geometry, stream, p);
}
#endif

}  // namespace tensorlint::kernels
