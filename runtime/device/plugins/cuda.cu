// libtensorlint_cuda.so: the kernels on a CUDA device. cudart is linked in, so that a machine needs the driver alone.

#include <cuda_runtime.h>

#include <map>
#include <utility>
#include <vector>

#include "kernels/common/workspace.h"
#include "runtime/device/plugins/driver.h"
#include "runtime/device/plugins/plugin.h"

namespace tensorlint::plugins {
namespace {

class CudaDevice {
 public:
  PluginState state;

  static CudaDevice* open(int index, std::uint64_t memory_limit, std::string& error) {
    auto* const device = new CudaDevice;
    device->state.memory_limit = memory_limit;
    device->index_ = index;
    int failed = device->select();
    // Work of no stream waits for the legacy default stream, nor that for it.
    for (cudaStream_t& stream : device->streams_)
      if (failed == 0) failed = device->check("stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (failed == 0) return device;
    error = device->state.error;
    delete device;
    return nullptr;
  }
  ~CudaDevice() {
    (void)cudaSetDevice(index_);
    for (cudaStream_t stream : streams_)
      if (stream != nullptr) (void)cudaStreamSynchronize(stream);
    state.cublaslt.reset();
    for (const auto& block : blocks_) (void)cudaFree(block.first);
    for (const Workspace& workspace : {workspace_, library_workspace_}) (void)cudaFree(workspace.memory);
    for (cudaEvent_t event : events_) (void)cudaEventDestroy(event);
    for (cudaStream_t stream : streams_)
      if (stream != nullptr) (void)cudaStreamDestroy(stream);
  }

  /// Errors of work that the next call gives back, whichever that is: CUDA does not say whose they are.
  /// Source: CUDA Toolkit 13.0, CUDA Runtime API, cudaError_t: those that leave the process in an inconsistent state.
  static bool is_of_earlier_work(int error) {
    switch (error) {
      case cudaErrorIllegalAddress:
      case cudaErrorLaunchTimeout:
      case cudaErrorAssert:
      case cudaErrorHardwareStackError:
      case cudaErrorIllegalInstruction:
      case cudaErrorMisalignedAddress:
      case cudaErrorInvalidAddressSpace:
      case cudaErrorInvalidPc:
      case cudaErrorLaunchFailure:
      case cudaErrorECCUncorrectable:
      case cudaErrorNvlinkUncorrectable:
      case cudaErrorUnknown:
        return true;
      default:
        return false;
    }
  }

  void* allocate(std::size_t bytes) {
    tensorlint_device_counts& counts = state.counts;
    if (bytes > state.memory_limit || counts.live_bytes > state.memory_limit - bytes) {
      state.fail("a block of " + std::to_string(bytes) + " bytes exceeds the limit of " +
                 std::to_string(state.memory_limit) + " bytes of device memory");
      return nullptr;
    }
    void* memory = nullptr;
    if (begin("allocate") != 0) return nullptr;
    // Of nothing CUDA gives a null pointer.
    if (check("allocate", cudaMalloc(&memory, bytes == 0 ? 1 : bytes)) != 0) return nullptr;
    blocks_.emplace(memory, bytes);
    ++counts.live_blocks;
    counts.live_bytes += bytes;
    counts.peak_bytes = counts.peak_bytes < counts.live_bytes ? counts.live_bytes : counts.peak_bytes;
    return memory;
  }

  void release(void* block) {
    const auto found = blocks_.find(block);
    if (found == blocks_.end()) return;
    --state.counts.live_blocks;
    state.counts.live_bytes -= found->second;
    blocks_.erase(found);
    (void)cudaSetDevice(index_);
    (void)cudaFree(block);  // which waits for what is under way
  }

  void* begin_value(void* block, std::uint64_t offset, std::size_t bytes) {
    if (begin("begin_value") != 0) return nullptr;
    const auto found = blocks_.find(block);
    if (found == blocks_.end() || bytes > found->second || offset > found->second - bytes) {
      state.fail("begin_value: the value lies outside of its block");
      return nullptr;
    }
    ++state.counts.live_values;
    return static_cast<unsigned char*>(block) + offset;
  }
  void end_value(void*) { --state.counts.live_values; }

  /// From pageable memory: has returned when the host's bytes are in memory of the driver's.
  int copy_in(void* to, const void* from, std::size_t bytes) {
    if (const int failed = begin("copy_in"); failed != 0) return failed;
    ++state.counts.copies_in;
    state.counts.bytes_in += bytes;
    return check("copy_in", cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, streams_[kTensorlintCopiesIn]));
  }

  int copy_out(void* to, const void* from, std::size_t bytes) {
    if (const int failed = begin("copy_out"); failed != 0) return failed;
    ++state.counts.copies_out;
    state.counts.bytes_out += bytes;
    return check("copy_out", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, streams_[kTensorlintCopiesOut]));
  }

  int fill(void* to, unsigned char byte, std::size_t bytes) {
    if (const int failed = begin("fill"); failed != 0) return failed;
    return check("fill", cudaMemsetAsync(to, byte, bytes, streams_[kTensorlintKernels]));
  }

  int synchronize() {
    if (const int failed = begin("synchronize"); failed != 0) return failed;
    int failed = 0;
    for (cudaStream_t stream : streams_) failed |= check("synchronize", cudaStreamSynchronize(stream));
    return failed;
  }

  int make_events(std::uint32_t count) {
    if (const int failed = begin("make_events"); failed != 0) return failed;
    while (events_.size() < count) {
      cudaEvent_t event = nullptr;
      if (const int failed = check("make_events", cudaEventCreateWithFlags(&event, cudaEventDisableTiming)))
        return failed;
      events_.push_back(event);
    }
    return 0;
  }

  int record(tensorlint_stream stream, std::uint32_t event) {
    if (const int failed = begin("record"); failed != 0) return failed;
    if (event >= events_.size()) return state.fail("record: there is no such event");
    return check("record", cudaEventRecord(events_[event], streams_[stream]));
  }

  int wait(tensorlint_stream stream, std::uint32_t event) {
    if (const int failed = begin("wait"); failed != 0) return failed;
    ++state.counts.waits;
    if (event >= events_.size()) return state.fail("wait: there is no such event");
    return check("wait", cudaStreamWaitEvent(streams_[stream], events_[event], 0));
  }

  int host_wait(std::uint32_t event) {
    if (const int failed = begin("host_wait"); failed != 0) return failed;
    ++state.counts.waits;
    if (event >= events_.size()) return state.fail("host_wait: there is no such event");
    return check("host_wait", cudaEventSynchronize(events_[event]));
  }

  /// Zero at first: the kernels leave their tickets so.
  void* workspace(std::size_t bytes) {
    const bool is_new = bytes > workspace_.bytes;
    void* const memory = grow(workspace_, bytes);
    if (!is_new || memory == nullptr) return memory;
    return check("workspace", cudaMemsetAsync(memory, 0, bytes, streams_[kTensorlintKernels])) == 0 ? memory : nullptr;
  }
  void* library_workspace(std::size_t bytes) { return grow(library_workspace_, bytes); }

  int load_cublaslt(const char* file, bool uses_tf32) {
    if (const int failed = begin("load_cublaslt"); failed != 0) return failed;
    return state.load_cublaslt(file, uses_tf32, nullptr);
  }

  template <typename Launch>
  int launch(const std::vector<KernelOperand>&, const Launch& launch) {
    if (const int failed = begin("launch"); failed != 0) return failed;
    return launch(*this, streams_[kTensorlintKernels]);
  }

 private:
  struct Workspace {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };
  void* grow(Workspace& workspace, std::size_t bytes) {
    if (bytes <= workspace.bytes) return workspace.memory;
    (void)cudaStreamSynchronize(streams_[kTensorlintKernels]);
    (void)cudaFree(std::exchange(workspace, {}).memory);
    if (check("workspace", cudaMalloc(&workspace.memory, bytes)) != 0) return nullptr;
    workspace.bytes = bytes;
    return workspace.memory;
  }

  int begin(const char*) {
    state.failed_step = kTensorlintNoStep;
    ++state.counts.calls;
    return select();
  }
  int select() { return check("device", cudaSetDevice(index_)); }
  int check(const char* call, cudaError_t status) {
    if (status == cudaSuccess) return 0;
    (void)cudaGetLastError();
    if (is_of_earlier_work(status)) state.failed_step = kTensorlintUnknownStep;
    int driver = 0, runtime = 0;
    if (status == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess &&
        cudaRuntimeGetVersion(&runtime) == cudaSuccess)
      return state.fail(unsuitable_driver(driver, runtime));
    return state.fail(std::string(call) + ": " + cudaGetErrorString(status));
  }

  std::map<void*, std::size_t> blocks_;
  int index_ = 0;
  cudaStream_t streams_[3] = {};
  std::vector<cudaEvent_t> events_;
  Workspace workspace_, library_workspace_;
};

}  // namespace
}  // namespace tensorlint::plugins

extern "C" __attribute__((visibility("default"))) const tensorlint_device_table_v1* tensorlint_device_v1() {
  static const tensorlint_device_table_v1 table =
      tensorlint::plugins::PluginTable<tensorlint::plugins::CudaDevice>::table("cuda");
  return &table;
}
