#pragma once

#include <utility>

#include "kernels/common/device.h"
#include "kernels/common/status.h"

namespace tensorlint::kernels {

/// Grid, block and cluster of one launch; x only.
struct Geometry {
  unsigned blocks = 1;
  unsigned threads = 256;
  unsigned cluster = 1;
  std::size_t dynamic_shared_bytes = 0;
};

/// Launches `kernel(parameters)` on `stream`. One parameter struct per kernel keeps launches and captures alike.
template <typename Parameters>
Status launch(void (*kernel)(Parameters), const Geometry& geometry, Stream stream, const Parameters& parameters) {
#if defined(__CUDACC__)
  if (geometry.dynamic_shared_bytes > 48 * 1024) {  // above the default a kernel has to ask
    const cudaError_t asked =
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(geometry.dynamic_shared_bytes));
    if (asked != cudaSuccess) return (void)cudaGetLastError(), Status::kLaunchFailed;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(geometry.blocks);
  config.blockDim = dim3(geometry.threads);
  config.dynamicSmemBytes = geometry.dynamic_shared_bytes;
  config.stream = stream;
  cudaLaunchAttribute attribute{};
  if (geometry.cluster > 1) {
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = geometry.cluster;
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
  }
  if (cudaLaunchKernelEx(&config, kernel, parameters) != cudaSuccess) {
    (void)cudaGetLastError();
    return Status::kLaunchFailed;
  }
  return Status::kOk;
#else
  (void)stream;
  emulator::launch(geometry.blocks, geometry.threads, geometry.cluster, geometry.dynamic_shared_bytes,
                   [&] { kernel(parameters); });
  return Status::kOk;
#endif
}

/// Zeroes device memory in stream order.
inline Status zero_memory(void* data, std::size_t bytes, Stream stream) {
  if (bytes == 0) return Status::kOk;
#if defined(__CUDACC__)
  if (cudaMemsetAsync(data, 0, bytes, stream) != cudaSuccess) return (void)cudaGetLastError(), Status::kLaunchFailed;
#else
  (void)stream;
  std::memset(data, 0, bytes);
  emulator::mark_written(data, bytes);
#endif
  return Status::kOk;
}

}  // namespace tensorlint::kernels
