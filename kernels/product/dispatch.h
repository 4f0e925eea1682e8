#pragma once

#include "kernels/common/launch.h"
#include "kernels/product/matrix_kernel.h"

namespace tensorlint::kernels {

/// One instance file for each element type. Errors: kLaunchFailed.
template <typename T>
Status launch_product(const ProductParameters<T>& p, Stream stream);

#if defined(TL_PRODUCT_INSTANCES)
template <typename T>
Status launch_product(const ProductParameters<T>& p, Stream stream) {
  const Geometry geometry = {p.plan.blocks, kThreads, 1, 0};
  if constexpr (sizeof(T) < 8) {
    if (p.plan.tile == kLargeTile) return launch(&multiply_matrices<T, kLargeTile>, geometry, stream, p);
  }
  return launch(&multiply_matrices<T, kSmallTile>, geometry, stream, p);
}
#endif

}  // namespace tensorlint::kernels
