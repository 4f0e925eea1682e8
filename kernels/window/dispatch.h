#pragma once

#include "kernels/common/launch.h"
#include "kernels/window/convolution_kernel.h"
#include "kernels/window/pooling_kernel.h"

namespace tensorlint::kernels {

// One instance file for each element type. Errors: kLaunchFailed.
template <typename T>
Status launch_convolution(const ConvolutionParameters<T>& p, Stream stream);
template <typename T>
Status launch_few_filters(const FewFiltersParameters<T>& p, unsigned blocks, Stream stream);
template <typename T>
Status launch_pooling(bool maximum, const PoolingParameters<T>& p, unsigned blocks, Stream stream);

#if defined(TL_WINDOW_INSTANCES)
template <typename T>
Status launch_convolution(const ConvolutionParameters<T>& p, Stream stream) {
  const Geometry geometry = {p.plan.blocks, kThreads, 1, 0};
  if constexpr (sizeof(T) < 8) {
    if (p.plan.tile == kLargeTile) return launch(&convolve_tiles<T, kLargeTile>, geometry, stream, p);
  }
  return launch(&convolve_tiles<T, kSmallTile>, geometry, stream, p);
}

template <typename T>
Status launch_few_filters(const FewFiltersParameters<T>& p, unsigned blocks, Stream stream) {
  return launch(&convolve_few_filters<T>, {blocks, kThreads, 1, 0}, stream, p);
}

template <typename T>
Status launch_pooling(bool maximum, const PoolingParameters<T>& p, unsigned blocks, Stream stream) {
  return launch(maximum ? &pool_windows<T, true> : &pool_windows<T, false>, {blocks, kThreads, 1, 0}, stream, p);
}

#define TL_WINDOW_INSTANCE(T)                                                              \
  template Status launch_convolution<T>(const ConvolutionParameters<T>&, Stream);          \
  template Status launch_few_filters<T>(const FewFiltersParameters<T>&, unsigned, Stream); \
  template Status launch_pooling<T>(bool, const PoolingParameters<T>&, unsigned, Stream);
#endif

}  // namespace tensorlint::kernels
