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

/// 10 major + minor of the current device. Errors: kLaunchFailed.
Status device_capability(int* capability);

/// Most shared memory of a block of the current device, for kernels that are allowed more than 48 KiB. Errors:
/// kLaunchFailed.
Status device_shared_memory(std::size_t* bytes);

/// Lets `kernel` use all the dynamic shared memory that a block of the current device can have beside the kernel's
/// static part. The first call for a device and kernel sets this once and for all, so that a launch never depends on
/// the ones before it, nor on another thread's. Without it a kernel has 48 KiB, its static part included. Errors:
/// kLaunchFailed.
Status allow_dynamic_shared_memory(const void* kernel);

/// Zeroes device memory in stream order. Errors: kLaunchFailed.
Status zero_memory(void* data, std::size_t bytes, Stream stream);

/// Launches `kernel(parameters)` on `stream`. One parameter struct per kernel keeps launches and captures alike.
template <typename Parameters>
Status launch(void (*kernel)(Parameters), const Geometry& geometry, Stream stream, const Parameters& parameters) {
  const void* const function = reinterpret_cast<const void*>(kernel);
  if (geometry.dynamic_shared_bytes > 0) {
    if (const Status status = allow_dynamic_shared_memory(function); status != Status::kOk) return status;
  }
#if defined(__CUDACC__)
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(geometry.blocks);
  config.blockDim = dim3(geometry.threads);
  config.dynamicSmemBytes = geometry.dynamic_shared_bytes;
  config.stream = stream;
  cudaLaunchAttribute attributes[2] = {};
  config.attrs = attributes;
  if (geometry.cluster > 1) {
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = geometry.cluster;
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
  }
  if (geometry.dynamic_shared_bytes > 0) {
    // As many blocks an SM as the registers allow: the driver's own choice of carveout may leave room for fewer. For
    // this launch only: without a cache the same kernel wants the L1.
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributePreferredSharedMemoryCarveout;
    attribute.val.sharedMemCarveout = cudaSharedmemCarveoutMaxShared;
  }
  if (const cudaError_t error = cudaLaunchKernelEx(&config, kernel, parameters); error != cudaSuccess) {
    (void)cudaGetLastError();
    return Status::launch_failed(static_cast<int>(error));
  }
  return Status::kOk;
#else
  (void)stream;
  const int error = emulator::launch(function, geometry.blocks, geometry.threads, geometry.cluster,
                                     geometry.dynamic_shared_bytes, [&] { kernel(parameters); });
  return error == 0 ? Status(Status::kOk) : Status::launch_failed(error);
#endif
}

}  // namespace tensorlint::kernels
