#include "kernels/common/launch.h"

#if defined(__CUDACC__)
#include <map>
#include <mutex>
#endif

namespace tensorlint::kernels {

#if defined(__CUDACC__)

namespace {

Status from(cudaError_t error) {
  if (error == cudaSuccess) return Status::kOk;
  (void)cudaGetLastError();  // taken: the next call of anyone must not find it
  return Status::launch_failed(static_cast<int>(error));
}

cudaError_t raise_dynamic_limit(const void* kernel, int device) {
  cudaFuncAttributes attributes{};
  if (const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel); error != cudaSuccess) return error;
  int most = 0;
  if (const cudaError_t error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
      error != cudaSuccess) {
    return error;
  }
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              most - static_cast<int>(attributes.sharedSizeBytes));
}

}  // namespace

Status device_capability(int* capability) {
  int device = 0, major = 0, minor = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  *capability = 10 * major + minor;
  return from(error);
}

Status device_shared_memory(std::size_t* bytes) {
  int device = 0, most = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  *bytes = static_cast<std::size_t>(most);
  return from(error);
}

Status allow_dynamic_shared_memory(const void* kernel) {
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return from(error);
  static std::mutex mutex;
  static std::map<std::pair<int, const void*>, bool> raised;  // a failure is tried again
  const std::lock_guard<std::mutex> lock(mutex);
  bool& done = raised[{device, kernel}];
  if (done) return Status::kOk;
  const cudaError_t error = raise_dynamic_limit(kernel, device);
  done = error == cudaSuccess;
  return from(error);
}

Status zero_memory(void* data, std::size_t bytes, Stream stream) {
  return bytes == 0 ? Status(Status::kOk) : from(cudaMemsetAsync(data, 0, bytes, stream));
}

#else

Status device_capability(int* capability) {
  *capability = emulator::device().capability;
  return Status::kOk;
}

Status device_shared_memory(std::size_t* bytes) {
  *bytes = emulator::device().shared_bytes_most;
  return Status::kOk;
}

Status allow_dynamic_shared_memory(const void* kernel) {
  emulator::allow_dynamic_shared_memory(kernel);
  return Status::kOk;
}

Status zero_memory(void* data, std::size_t bytes, Stream) {
  if (bytes == 0) return Status::kOk;
  std::memset(data, 0, bytes);
  emulator::mark_written(data, bytes);
  return Status::kOk;
}

#endif

}  // namespace tensorlint::kernels
