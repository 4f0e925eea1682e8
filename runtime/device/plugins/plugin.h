#pragma once

// What plug-ins share: the calls of the kernels over a device's own memory, and the table. A plug-in is a class with
//   static Device* open(int index, std::uint64_t memory_limit, std::string& error);
//   void* allocate(std::size_t bytes);  void release(void* block);
//   int copy_in(...), copy_out(...), fill(...), synchronize();
//   void* workspace(std::size_t bytes);                        // null: refused
//   template <typename Launch> int launch(operands, launch);   // makes the operands reachable for kernels, and calls
// and the members of PluginState.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>

#include "runtime/device/table.h"

namespace tensorlint::plugins {

/// Memory that a launch reads or writes; null: left out.
struct KernelOperand {
  const void* address = nullptr;
  bool is_output = false;
  std::size_t element_bytes = 1;
};

struct PluginState {
  std::string error;
  tensorlint_device_counts counts{};
  std::uint64_t memory_limit = 0;

  int fail(std::string message) {
    error = std::move(message);
    return 1;
  }
};

template <typename Device>
class PluginTable {
 public:
  static const tensorlint_device_table_v1* table(const char* kind, void (*fail_at)(tensorlint_device*, std::uint64_t)) {
    static tensorlint_device_table_v1 table;
    table.version = 1;
    table.request_bytes = tensorlint_request_bytes();
    table.kind = kind;
    table.open = open;
    table.close = [](tensorlint_device* device) { delete self(device); };
    table.allocate = [](tensorlint_device* device, std::size_t bytes) { return self(device)->allocate(bytes); };
    table.release = [](tensorlint_device* device, void* block) { self(device)->release(block); };
    table.copy_in = [](tensorlint_device* device, void* to, const void* from, std::size_t bytes) {
      return self(device)->copy_in(to, from, bytes);
    };
    table.copy_out = [](tensorlint_device* device, void* to, const void* from, std::size_t bytes) {
      return self(device)->copy_out(to, from, bytes);
    };
    table.fill = [](tensorlint_device* device, void* to, unsigned char byte, std::size_t bytes) {
      return self(device)->fill(to, byte, bytes);
    };
    table.synchronize = [](tensorlint_device* device) { return self(device)->synchronize(); };
    table.reduce = reduce;
    table.pointwise_loss = pointwise_loss;
    table.class_loss = class_loss;
    table.softmax = softmax;
    table.error = [](tensorlint_device* device) { return self(device)->state.error.c_str(); };
    table.counts = [](tensorlint_device* device) { return self(device)->state.counts; };
    table.fail_at = fail_at;
    return &table;
  }

  static Device* self(tensorlint_device* device) { return reinterpret_cast<Device*>(device); }

 private:
  static tensorlint_device* open(int index, std::uint64_t memory_limit, char* error, std::size_t error_bytes) {
    std::string why;
    Device* const device = Device::open(index, memory_limit, why);
    if (device == nullptr && error_bytes > 0) {
      const std::size_t length = why.size() < error_bytes - 1 ? why.size() : error_bytes - 1;
      std::memcpy(error, why.data(), length);
      error[length] = '\0';
    }
    return reinterpret_cast<tensorlint_device*>(device);
  }

  static int report(Device& device, const char* call, kernels::Status status) {
    if (status == kernels::Status::kOk) return 0;
    std::string text = std::string(call) + ": " + kernels::describe(status);
    if (status.device_error() != 0) text += " (error " + std::to_string(status.device_error()) + ")";
    return device.state.fail(std::move(text));
  }

  /// `ask` gives the bytes of workspace, `call` launches.
  template <typename Ask, typename Call>
  static int launch(Device& device, const char* name, const KernelOperand* operands, std::size_t count, const Ask& ask,
                    const Call& call) {
    std::size_t bytes = 0;
    if (const int failed = report(device, name, ask(&bytes)); failed != 0) return failed;
    void* workspace = nullptr;
    if (bytes > 0 && (workspace = device.workspace(bytes)) == nullptr) return 1;
    return device.launch(operands, count, [&](kernels::Stream stream) {
      ++device.state.counts.launches;
      return report(device, name, call(workspace, bytes, stream));
    });
  }

  static int reduce(tensorlint_device* handle, const kernels::Reduction* request, const void* input, void* result) {
    const KernelOperand operands[] = {{input}, {result, true, kernels::size_of(request->result_dtype)}};
    return launch(
        *self(handle), "reduce", operands, 2,
        [&](std::size_t* bytes) { return kernels::reduction_workspace(*request, bytes); },
        [&](void* workspace, std::size_t bytes, kernels::Stream stream) {
          return kernels::reduce(*request, input, result, workspace, bytes, stream);
        });
  }

  static int pointwise_loss(tensorlint_device* handle, const kernels::PointwiseLoss* request) {
    const std::size_t element = kernels::size_of(request->dtype);
    const KernelOperand operands[] = {{request->input},
                                      {request->target},
                                      {request->weight},
                                      {request->positive_weight},
                                      {request->upstream},
                                      {request->losses, true, element},
                                      {request->total, true, element},
                                      {request->gradient, true, element}};
    return launch(
        *self(handle), "pointwise_loss", operands, 8,
        [&](std::size_t* bytes) { return kernels::pointwise_loss_workspace(*request, bytes); },
        [&](void* workspace, std::size_t bytes, kernels::Stream stream) {
          return kernels::pointwise_loss(*request, workspace, bytes, stream);
        });
  }

  static int class_loss(tensorlint_device* handle, const kernels::ClassLoss* request) {
    const std::size_t element = kernels::size_of(request->dtype);
    const KernelOperand operands[] = {{request->logits},
                                      {request->labels},
                                      {request->probabilities},
                                      {request->weight},
                                      {request->upstream},
                                      {request->losses, true, element},
                                      {request->total, true, element},
                                      {request->gradient, true, element},
                                      {request->bad_labels, true, sizeof(std::int64_t)}};
    return launch(
        *self(handle), "class_loss", operands, 9,
        [&](std::size_t* bytes) { return kernels::class_loss_workspace(*request, bytes); },
        [&](void* workspace, std::size_t bytes, kernels::Stream stream) {
          return kernels::class_loss(*request, workspace, bytes, stream);
        });
  }

  static int softmax(tensorlint_device* handle, const kernels::Softmax* request) {
    const KernelOperand operands[] = {
        {request->input}, {request->upstream}, {request->output, true, kernels::size_of(request->dtype)}};
    return launch(
        *self(handle), "softmax", operands, 3, [](std::size_t*) { return kernels::Status(kernels::Status::kOk); },
        [&](void*, std::size_t, kernels::Stream stream) { return kernels::softmax(*request, stream); });
  }
};

}  // namespace tensorlint::plugins
