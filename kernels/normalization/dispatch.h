#pragma once

#include "kernels/common/launch.h"
#include "kernels/normalization/kernels.h"

namespace tensorlint::kernels {

/// One instance file for each element type. Errors: kLaunchFailed.
template <typename T>
Status launch_normalization(const NormalizationParameters<T>& p, unsigned blocks, Stream stream);

#if defined(TL_NORMALIZATION_INSTANCES)
template <typename T>
Status launch_normalization(const NormalizationParameters<T>& p, unsigned blocks, Stream stream) {
  return launch(&normalize_rows<T>, {blocks, kThreads, 1, 0}, stream, p);
}
#endif

}  // namespace tensorlint::kernels
