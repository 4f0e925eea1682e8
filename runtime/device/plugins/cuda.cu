// libtensorlint_cuda.so: the kernels on a CUDA device. cudart is linked in, so that a machine needs the driver alone.

#include <cuda_runtime.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "kernels/common/workspace.h"
#include "runtime/device/plugins/driver.h"
#include "runtime/device/plugins/plugin.h"
#include "runtime/device/plugins/staging.h"

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
    // The legacy default stream and these streams do not wait for each other.
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
      case cudaErrorContained:
      case cudaErrorTensorMemoryLeak:
      case cudaErrorUnknown:
        return true;
      default:
        return false;
    }
  }

  std::uint64_t shared_bytes() {
    std::size_t bytes = 0;
    return select() == 0 && kernels::device_shared_memory(&bytes) == kernels::Status::kOk ? bytes : 0;
  }

  void* allocate(std::size_t bytes) {
    tensorlint_device_counts& counts = state.counts;
    if (bytes > state.memory_limit || counts.live_bytes > state.memory_limit - bytes) {
      state.fail("a block of " + std::to_string(bytes) + " bytes exceeds the limit of " +
                 std::to_string(state.memory_limit) + " bytes of device memory");
      return nullptr;
    }
    void* memory = nullptr;
    if (begin() != 0) return nullptr;
    // CUDA returns a null pointer for 0 bytes.
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
    (void)cudaFree(block);
  }

  void* begin_value(void* block, std::uint64_t offset, std::size_t bytes) {
    if (begin() != 0) return nullptr;
    const auto found = blocks_.find(block);
    if (found == blocks_.end() || bytes > found->second || offset > found->second - bytes || offset % kAlignment != 0) {
      state.fail("begin_value: the value lies outside of its block, or is not aligned");
      return nullptr;
    }
    unsigned char* const value = static_cast<unsigned char*>(block) + offset;
    values_.insert(value);
    state.counts.live_values = values_.size();
    return value;
  }
  void end_value(void* value) {
    // Those of no bytes may begin where another one does.
    if (const auto found = values_.find(value); found != values_.end()) values_.erase(found);
    state.counts.live_values = values_.size();
  }

  int copy_in(void* to, const void* from, std::size_t bytes) {
    if (const int failed = begin(); failed != 0) return failed;
    ++state.counts.copies_in;
    state.counts.bytes_in += bytes;
    return check("copy_in", staging_in_.copy_in(to, from, bytes, streams_[kTensorlintCopiesIn]));
  }

  int copy_out(void* to, const void* from, std::size_t bytes) {
    if (const int failed = begin(); failed != 0) return failed;
    ++state.counts.copies_out;
    state.counts.bytes_out += bytes;
    return check("copy_out", staging_out_.copy_out(to, from, bytes, streams_[kTensorlintCopiesOut]));
  }

  /// Waits for every stream, whatever fails: the host then frees memory that copies write. The first error is reported.
  int synchronize() {
    int failed = begin();
    for (cudaStream_t stream : streams_) {
      const cudaError_t status = cudaStreamSynchronize(stream);
      if (failed == 0) failed = check("synchronize", status);
    }
    for (Staging* const staging : {&staging_in_, &staging_out_}) {
      const cudaError_t status = staging->deliver_all(failed != 0);
      if (failed == 0) failed = check("synchronize", status);
    }
    (void)cudaGetLastError();
    return failed;
  }

  int make_events(std::uint32_t count) {
    if (const int failed = begin(); failed != 0) return failed;
    while (events_.size() < count) {
      cudaEvent_t event = nullptr;
      if (const int failed = check("make_events", cudaEventCreateWithFlags(&event, cudaEventDisableTiming)))
        return failed;
      events_.push_back(event);
    }
    return 0;
  }

  int record(tensorlint_stream stream, std::uint32_t event) {
    if (const int failed = begin(); failed != 0) return failed;
    if (event >= events_.size()) return state.fail("record: there is no such event");
    return check("record", cudaEventRecord(events_[event], streams_[stream]));
  }

  int wait(tensorlint_stream stream, std::uint32_t event) {
    if (const int failed = begin(); failed != 0) return failed;
    ++state.counts.waits;
    if (event >= events_.size()) return state.fail("wait: there is no such event");
    return check("wait", cudaStreamWaitEvent(streams_[stream], events_[event], 0));
  }

  int host_wait(std::uint32_t event) {
    if (const int failed = begin(); failed != 0) return failed;
    ++state.counts.waits;
    if (event >= events_.size()) return state.fail("host_wait: there is no such event");
    if (const int failed = check("host_wait", cudaEventSynchronize(events_[event])); failed != 0) return failed;
    // The copies before the event in any order of streams have been made.
    return check("host_wait", staging_out_.deliver());
  }

  std::size_t workspace_bytes() const { return workspace_.bytes; }
  /// Its tickets are zero at first, and the kernels leave them so.
  void* workspace(std::size_t bytes) { return grow(workspace_, bytes, kernels::kTicketBytes); }
  void* library_workspace(std::size_t bytes) { return grow(library_workspace_, bytes, 0); }

  int load_cublaslt(const char* file, bool uses_tf32) {
    if (const int failed = begin(); failed != 0) return failed;
    return state.load_cublaslt(file, uses_tf32, nullptr);
  }

  template <typename Launch>
  int launch(const KernelOperands&, const Launch& launch) {
    if (const int failed = begin(); failed != 0) return failed;
    return launch(*this, streams_[kTensorlintKernels]);
  }

 private:
  struct Workspace {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };
  /// With its first `zeroed` bytes zero when it is new.
  void* grow(Workspace& workspace, std::size_t bytes, std::size_t zeroed) {
    if (bytes <= workspace.bytes) return workspace.memory;
    if (check("workspace", cudaStreamSynchronize(streams_[kTensorlintKernels])) != 0) return nullptr;
    (void)cudaFree(std::exchange(workspace, {}).memory);
    void* memory = nullptr;
    if (check("workspace", cudaMalloc(&memory, bytes)) != 0) return nullptr;
    const std::size_t first = bytes < zeroed ? bytes : zeroed;
    if (first > 0 && check("workspace", cudaMemsetAsync(memory, 0, first, streams_[kTensorlintKernels])) != 0) {
      (void)cudaFree(memory);
      return nullptr;
    }
    workspace = {memory, bytes};
    return memory;
  }

  int begin() {
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

  static constexpr std::size_t kAlignment = 16;  ///< of the widest access of a kernel

  std::map<void*, std::size_t> blocks_;
  std::multiset<void*> values_;
  int index_ = 0;
  cudaStream_t streams_[3] = {};
  Staging staging_in_, staging_out_;
  std::vector<cudaEvent_t> events_;
  Workspace workspace_, library_workspace_;
};

}  // namespace
}  // namespace tensorlint::plugins

extern "C" __attribute__((visibility("default"))) const tensorlint_device_table_v1* tensorlint_device_v1() {
  static const tensorlint_device_table_v1 table =
      tensorlint::plugins::PluginTable<tensorlint::plugins::CudaDevice>::table();
  return &table;
}
