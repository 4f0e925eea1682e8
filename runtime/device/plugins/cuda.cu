// libtensorlint_cuda.so: the kernels on a CUDA device. cudart is linked in, so that a machine needs the driver alone.

#include <cuda_runtime.h>

#include <map>

#include "kernels/common/workspace.h"
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
    if (device->select() == 0 && device->check("stream", cudaStreamCreate(&device->stream_)) == 0) return device;
    error = device->state.error;
    delete device;
    return nullptr;
  }
  ~CudaDevice() {
    if (stream_ == nullptr) return;
    (void)cudaSetDevice(index_);
    (void)cudaStreamSynchronize(stream_);
    for (const auto& block : blocks_) (void)cudaFree(block.first);
    (void)cudaFree(workspace_);
    (void)cudaStreamDestroy(stream_);
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

  int copy_in(void* to, const void* from, std::size_t bytes) {
    if (const int failed = begin("copy_in"); failed != 0) return failed;
    ++state.counts.copies_in;
    state.counts.bytes_in += bytes;
    return check("copy_in", cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
  }

  int copy_out(void* to, const void* from, std::size_t bytes) {
    if (const int failed = begin("copy_out"); failed != 0) return failed;
    ++state.counts.copies_out;
    state.counts.bytes_out += bytes;
    if (const int failed = check("copy_out", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_)))
      return failed;
    return check("copy_out", cudaStreamSynchronize(stream_));
  }

  int fill(void* to, unsigned char byte, std::size_t bytes) {
    if (const int failed = begin("fill"); failed != 0) return failed;
    return check("fill", cudaMemsetAsync(to, byte, bytes, stream_));
  }

  int synchronize() {
    if (const int failed = begin("synchronize"); failed != 0) return failed;
    return check("synchronize", cudaStreamSynchronize(stream_));
  }

  void* workspace(std::size_t bytes) {
    if (bytes <= workspace_bytes_) return workspace_;
    (void)cudaStreamSynchronize(stream_);
    (void)cudaFree(workspace_);
    workspace_ = nullptr;
    workspace_bytes_ = 0;
    if (check("workspace", cudaMalloc(&workspace_, bytes)) != 0) return nullptr;
    if (check("workspace", cudaMemsetAsync(workspace_, 0, bytes, stream_)) != 0) return nullptr;
    workspace_bytes_ = bytes;
    return workspace_;
  }

  template <typename Launch>
  int launch(const KernelOperand*, std::size_t, const Launch& launch) {
    if (const int failed = begin("launch"); failed != 0) return failed;
    return launch(stream_);
  }

 private:
  int begin(const char*) {
    ++state.counts.calls;
    return select();
  }
  int select() { return check("device", cudaSetDevice(index_)); }
  int check(const char* call, cudaError_t status) {
    if (status == cudaSuccess) return 0;
    (void)cudaGetLastError();
    return state.fail(std::string(call) + ": " + cudaGetErrorString(status));
  }

  std::map<void*, std::size_t> blocks_;
  int index_ = 0;
  cudaStream_t stream_ = nullptr;
  void* workspace_ = nullptr;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace
}  // namespace tensorlint::plugins

extern "C" __attribute__((visibility("default"))) const tensorlint_device_table_v1* tensorlint_device_v1() {
  return tensorlint::plugins::PluginTable<tensorlint::plugins::CudaDevice>::table("cuda", nullptr);
}
