#pragma once

// What CUDA's plug-in needs of the CUDA runtime, on the host: the plug-in is tested without a GPU, and any call can be
// made to fail. Work is done late, only where the host waits, and in a random order that events permit. Copies read and
// write the host's memory late, whether it is pinned or not: that the host's copies of memory that is not pinned have
// been made when the call returns is what the runtime only "might" do (cuda_runtime_api.h, "API synchronization
// behavior"). Kernels run under the emulator, at once: a test waits before it launches one.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/common/device.h"
#include "kernels/emulator/simt.h"

enum cudaError_t : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorInvalidDevice = 101,
  cudaErrorECCUncorrectable = 214,
  cudaErrorNvlinkUncorrectable = 220,
  cudaErrorContained = 226,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchTimeout = 702,
  cudaErrorAssert = 710,
  cudaErrorHardwareStackError = 714,
  cudaErrorIllegalInstruction = 715,
  cudaErrorMisalignedAddress = 716,
  cudaErrorInvalidAddressSpace = 717,
  cudaErrorInvalidPc = 718,
  cudaErrorLaunchFailure = 719,
  cudaErrorTensorMemoryLeak = 721,
  cudaErrorUnknown = 999,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaHostAllocDefault = 0;

namespace cuda_stand_in {

/// Of an event; who waits for one waits for the recording that was the last one then.
struct Recording {
  bool has_occurred = false;
};

}  // namespace cuda_stand_in

struct CUevent_st {
  std::shared_ptr<cuda_stand_in::Recording> last;  ///< null: never recorded, which counts as occurred
};
// As the emulated kernels know it.
struct tensorlint::kernels::CUstream_st {
  struct Work {
    std::function<void()> run;
    std::shared_ptr<cuda_stand_in::Recording> awaited;  ///< null: it waits for nothing
  };
  std::deque<Work> work;
};
using cudaEvent_t = CUevent_st*;
using cudaStream_t = tensorlint::kernels::Stream;

namespace cuda_stand_in {

/// What a test sees and decides.
struct Runtime {
  std::vector<cudaStream_t> streams;
  std::map<void*, std::size_t> device_memory, pinned_memory;
  std::size_t events = 0;
  std::mt19937_64 random{1};
  /// By function: after so many more calls this error, once.
  std::map<std::string, std::pair<int, cudaError_t>> failing;
  std::map<std::string, std::uint64_t> calls;

  cudaError_t called(const char* function) {
    ++calls[function];
    const auto found = failing.find(function);
    if (found == failing.end() || found->second.first-- > 0) return cudaSuccess;
    const cudaError_t error = found->second.second;
    failing.erase(found);
    return error;
  }

  bool step() {
    std::vector<cudaStream_t> ready;
    for (const cudaStream_t stream : streams)
      if (!stream->work.empty() &&
          (stream->work.front().awaited == nullptr || stream->work.front().awaited->has_occurred))
        ready.push_back(stream);
    if (ready.empty()) return false;
    const cudaStream_t stream = ready[random() % ready.size()];
    const tensorlint::kernels::CUstream_st::Work work = std::move(stream->work.front());
    stream->work.pop_front();
    if (work.run) work.run();
    return true;
  }
  template <typename Done>
  void work_until(const Done& is_done) {
    while (!is_done())
      if (!step()) std::abort();
  }
};

inline Runtime& runtime() {
  static Runtime runtime;
  return runtime;
}

}  // namespace cuda_stand_in

inline cudaError_t cudaSetDevice(int) { return cuda_stand_in::runtime().called("cudaSetDevice"); }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    default:
      return "another error";
  }
}
inline cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
inline cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }

inline cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (const cudaError_t error = cuda_stand_in::runtime().called("cudaMalloc")) return error;
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*memory, 0xa7, bytes);
  cuda_stand_in::runtime().device_memory[*memory] = bytes;
  tensorlint::kernels::emulator::register_buffer(*memory, bytes, 4, tensorlint::kernels::emulator::Access::kUntracked,
                                                 "device memory");
  return cudaSuccess;
}
inline cudaError_t cudaFree(void* memory) {
  if (cuda_stand_in::runtime().device_memory.erase(memory) > 0)
    tensorlint::kernels::emulator::unregister_buffer(memory);
  std::free(memory);
  return cuda_stand_in::runtime().called("cudaFree");
}
inline cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  if (const cudaError_t error = cuda_stand_in::runtime().called("cudaHostAlloc")) return error;
  *memory = std::malloc(bytes);
  cuda_stand_in::runtime().pinned_memory[*memory] = bytes;
  return cudaSuccess;
}
inline cudaError_t cudaFreeHost(void* memory) {
  cuda_stand_in::runtime().pinned_memory.erase(memory);
  std::free(memory);
  return cudaSuccess;
}

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  if (const cudaError_t error = cuda_stand_in::runtime().called("cudaStreamCreateWithFlags")) return error;
  cuda_stand_in::runtime().streams.push_back(*stream = new tensorlint::kernels::CUstream_st);
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t error = cuda_stand_in::runtime().called("cudaStreamSynchronize")) return error;
  cuda_stand_in::runtime().work_until([&] { return stream->work.empty(); });
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::erase(cuda_stand_in::runtime().streams, stream);
  delete stream;
  return cudaSuccess;
}

inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  if (const cudaError_t error = cuda_stand_in::runtime().called("cudaEventCreateWithFlags")) return error;
  ++cuda_stand_in::runtime().events;
  *event = new CUevent_st;
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  --cuda_stand_in::runtime().events;
  delete event;
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t error = cuda_stand_in::runtime().called("cudaEventRecord")) return error;
  event->last = std::make_shared<cuda_stand_in::Recording>();
  stream->work.push_back({[recording = event->last] { recording->has_occurred = true; }, nullptr});
  return cudaSuccess;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t error = cuda_stand_in::runtime().called("cudaStreamWaitEvent")) return error;
  stream->work.push_back({nullptr, event->last});
  return cudaSuccess;
}
inline cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t error = cuda_stand_in::runtime().called("cudaEventQuery")) return error;
  return event->last == nullptr || event->last->has_occurred ? cudaSuccess : cudaErrorNotReady;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t error = cuda_stand_in::runtime().called("cudaEventSynchronize")) return error;
  cuda_stand_in::runtime().work_until([&] { return event->last == nullptr || event->last->has_occurred; });
  return cudaSuccess;
}

inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  if (const cudaError_t error = cuda_stand_in::runtime().called("cudaMemcpyAsync")) return error;
  stream->work.push_back({[=] { std::memcpy(to, from, bytes); }, nullptr});
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int byte, std::size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = cuda_stand_in::runtime().called("cudaMemsetAsync")) return error;
  cuda_stand_in::runtime().work_until([&] { return stream->work.empty(); });
  std::memset(to, byte, bytes);
  return cudaSuccess;
}
