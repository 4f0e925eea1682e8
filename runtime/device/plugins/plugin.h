#pragma once

// What plug-ins share: the calls of the kernels over a device's own memory, and the table. A plug-in is a class with
// the member `PluginState state` and
//
//   static Device* open(int index, std::uint64_t memory_limit, std::string& error);
//   static bool is_of_earlier_work(int error);  // a CUDA error that an earlier call's work left
//
//   void* allocate(std::size_t bytes);          // null: refused
//   void release(void* block);
//   void* begin_value(void* block, std::uint64_t offset, std::size_t bytes);  // null: refused
//   void end_value(void* value);
//   std::size_t workspace_bytes() const;         // of the one that there is
//   void* workspace(std::size_t bytes);          // null: refused
//   void* library_workspace(std::size_t bytes);  // null: refused; its content means nothing
//
//   int copy_in(...), copy_out(...), synchronize(), make_events(...), record(...), wait(...), host_wait(...);
//   int load_cublaslt(const char* file, bool uses_tf32);  // makes state.cublaslt
//
//   // Makes the operands reachable for kernels and calls launch(*this, stream).
//   template <typename Launch> int launch(const KernelOperands& operands, Launch launch);

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/device/plugins/cublas_lt.h"
#include "runtime/device/table.h"

namespace tensorlint::plugins {

/// Memory that a launch reads or writes; null: left out.
struct KernelOperand {
  const void* address = nullptr;
  bool is_output = false;
  std::size_t element_bytes = 1;
};

/// Those of a launch that are given.
class KernelOperands {
 public:
  KernelOperands() = default;
  KernelOperands(std::initializer_list<KernelOperand> operands) {
    for (const KernelOperand& operand : operands) add(operand);
  }
  void add(const KernelOperand& operand) {
    if (operand.address != nullptr) operands_[count_++] = operand;
  }
  const KernelOperand* begin() const { return operands_; }
  const KernelOperand* end() const { return operands_ + count_; }

 private:
  static constexpr std::size_t kMost = 16;  ///< class losses have 9, element functions one more than their operands
  static_assert(kernels::kMaxElementOperands < kMost);

  KernelOperand operands_[kMost];
  std::size_t count_ = 0;
};

struct PluginState {
  std::string error;
  const char* fixed_error = nullptr;  ///< instead of `error`
  tensorlint_device_counts counts{};
  std::uint64_t memory_limit = 0;
  std::uint64_t step = kTensorlintNoStep;         ///< of work that is put into streams
  std::uint64_t failed_step = kTensorlintNoStep;  ///< of work that failed in the last call
  std::unique_ptr<CublasLt> cublaslt;             ///< null: it is not loaded

  int fail(std::string message) {
    error = std::move(message);
    fixed_error = nullptr;
    return 1;
  }
  /// Needs no memory. `message` is not copied.
  int fail_fixed(const char* message) noexcept {
    fixed_error = message;
    failed_step = kTensorlintNoStep;
    return 1;
  }
  const char* message() const { return fixed_error != nullptr ? fixed_error : error.c_str(); }
  int load_cublaslt(const char* file, bool uses_tf32, const char* marker) {
    std::string why;
    cublaslt = CublasLt::load(file, uses_tf32, marker, why);
    return cublaslt == nullptr ? fail(std::move(why)) : 0;
  }
};

template <typename Device>
class PluginTable {
 public:
  /// Without what is for tests.
  static tensorlint_device_table_v1 table() {
    tensorlint_device_table_v1 table{};
    table.version = 1;
    table.request_bytes = tensorlint_request_bytes();
    table.open = open;
    table.close = [](tensorlint_device* device) { delete self(device); };
    table.allocate = guarded<&Device::allocate>;
    table.release = guarded<&Device::release>;
    table.begin_value = guarded<&Device::begin_value>;
    table.end_value = guarded<&Device::end_value>;
    table.copy_in = guarded<&Device::copy_in>;
    table.copy_out = guarded<&Device::copy_out>;
    table.synchronize = guarded<&Device::synchronize>;
    table.make_events = guarded<&Device::make_events>;
    table.record = guarded<&Device::record>;
    table.wait = guarded<&Device::wait>;
    table.host_wait = guarded<&Device::host_wait>;
    table.reduce = guarded<reduce>;
    table.pointwise_loss = guarded<pointwise_loss>;
    table.class_loss = guarded<class_loss>;
    table.softmax = guarded<softmax>;
    table.matrix_product = guarded<matrix_product>;
    table.attention = guarded<attention>;
    table.elementwise = guarded<elementwise>;
    table.convolution = guarded<convolution>;
    table.pooling = guarded<pooling>;
    table.normalization = guarded<normalization>;
    table.move = guarded<move>;
    table.load_cublaslt = guarded<load_cublaslt>;
    table.why_not_cublaslt = [](const kernels::MatrixProduct* request, int has_addend) {
      kernels::ColumnProduct product;
      return kernels::column_product(*request, has_addend != 0, &product);
    };
    table.cublaslt_product = guarded<cublaslt_product>;
    table.shared_bytes = [](tensorlint_device* device) { return self(device)->shared_bytes(); };
    table.error = [](tensorlint_device* device) { return self(device)->state.message(); };
    table.set_step = [](tensorlint_device* device, std::uint64_t step) { self(device)->state.step = step; };
    table.failed_step = [](tensorlint_device* device) { return self(device)->state.failed_step; };
    table.counts = [](tensorlint_device* device) { return self(device)->state.counts; };
    return table;
  }

  static Device* self(tensorlint_device* device) { return reinterpret_cast<Device*>(device); }

 private:
  /// A function of the table. No exception passes it: plug-in and program may have C++ libraries of their own.
  template <auto kFunction, typename... Arguments>
  static auto guarded(tensorlint_device* device, Arguments... arguments) noexcept {
    using Result = decltype(call<kFunction>(device, arguments...));
    try {
      return call<kFunction>(device, arguments...);
    } catch (const std::bad_alloc&) {
      return failure<Result>(self(device)->state.fail_fixed("out of memory"));
    } catch (...) {
      return failure<Result>(self(device)->state.fail_fixed("an exception in the plug-in"));
    }
  }
  template <auto kFunction, typename... Arguments>
  static auto call(tensorlint_device* device, Arguments... arguments) {
    if constexpr (std::is_member_function_pointer_v<decltype(kFunction)>) {
      return (self(device)->*kFunction)(arguments...);
    } else {
      return kFunction(device, arguments...);
    }
  }
  template <typename Result>
  static Result failure(int status) noexcept {
    if constexpr (std::is_pointer_v<Result>) return nullptr;
    if constexpr (std::is_same_v<Result, int>) return status;
  }

  static tensorlint_device* open(int index, std::uint64_t memory_limit, char* error, std::size_t error_bytes) noexcept {
    std::string why;
    Device* device = nullptr;
    try {
      device = Device::open(index, memory_limit, why);
    } catch (...) {
      why = "no memory";  // short enough to need none
    }
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
    if (Device::is_of_earlier_work(status.device_error())) device.state.failed_step = kTensorlintUnknownStep;
    return device.state.fail(std::move(text));
  }

  /// How the kernels of one family are launched. Without captures: a device may launch after the call has returned, and
  /// then has its own copy of `Request` alone.
  template <typename Request>
  struct Kernel {
    const char* name;
    kernels::Status (*workspace)(const Request& request, std::size_t* bytes);  ///< null: none is needed
    kernels::Status (*launch)(const Request& request, void* workspace, std::size_t bytes, kernels::Stream stream);
  };

  /// `request` owns all that it points to on the host.
  template <typename Request>
  static int launch(Device& device, const Kernel<Request>& kernel, const KernelOperands& operands, Request request) {
    return device.launch(operands, [kernel, request = std::move(request)](Device& on, kernels::Stream stream) {
      const auto launched = [&](kernels::Status status) {
        ++on.state.counts.launches;
        return report(on, kernel.name, status);
      };
      if (kernel.workspace == nullptr) return launched(kernel.launch(request, nullptr, 0, stream));
      // A query plans the launch as the launch itself does: only a workspace that is too small is worth one. A launch
      // that finds it so launches nothing.
      std::size_t bytes = on.workspace_bytes();
      void* workspace = nullptr;
      if (bytes > 0) {
        if ((workspace = on.workspace(bytes)) == nullptr) return 1;
        const kernels::Status status = kernel.launch(request, workspace, bytes, stream);
        if (status != kernels::Status::kWorkspaceTooSmall) return launched(status);
      }
      if (const int failed = report(on, kernel.name, kernel.workspace(request, &bytes)); failed != 0) return failed;
      if (bytes > 0 && (workspace = on.workspace(bytes)) == nullptr) return 1;
      return launched(kernel.launch(request, workspace, bytes, stream));
    });
  }

  /// A reduction with the extents and axes that the caller's one points to.
  struct OwnedReduction {
    kernels::Reduction parameters;
    std::vector<std::int64_t> extents;
    std::vector<int> axes;
    const void* input;
    void* result;

    kernels::Reduction request() const {
      kernels::Reduction request = parameters;
      request.extents = extents.data();
      request.axes = axes.data();
      return request;
    }
  };

  static int reduce(tensorlint_device* handle, const kernels::Reduction* request, const void* input, void* result) {
    const Kernel<OwnedReduction> kernel{
        "reduce",
        [](const OwnedReduction& owned, std::size_t* bytes) {
          return kernels::reduction_workspace(owned.request(), bytes);
        },
        [](const OwnedReduction& owned, void* workspace, std::size_t bytes, kernels::Stream stream) {
          return kernels::reduce(owned.request(), owned.input, owned.result, workspace, bytes, stream);
        }};
    return launch(*self(handle), kernel, {{input}, {result, true, kernels::size_of(request->result_dtype)}},
                  OwnedReduction{*request,
                                 {request->extents, request->extents + request->rank},
                                 {request->axes, request->axes + request->axis_count},
                                 input,
                                 result});
  }

  static int pointwise_loss(tensorlint_device* handle, const kernels::PointwiseLoss* request) {
    const std::size_t element = kernels::size_of(request->dtype);
    const Kernel<kernels::PointwiseLoss> kernel{
        "pointwise_loss",
        [](const kernels::PointwiseLoss& loss, std::size_t* bytes) {
          return kernels::pointwise_loss_workspace(loss, bytes);
        },
        [](const kernels::PointwiseLoss& loss, void* workspace, std::size_t bytes, kernels::Stream stream) {
          return kernels::pointwise_loss(loss, workspace, bytes, stream);
        }};
    return launch(*self(handle), kernel,
                  {{request->input},
                   {request->target},
                   {request->weight},
                   {request->positive_weight},
                   {request->upstream},
                   {request->losses, true, element},
                   {request->total, true, element},
                   {request->gradient, true, element}},
                  *request);
  }

  static int class_loss(tensorlint_device* handle, const kernels::ClassLoss* request) {
    const std::size_t element = kernels::size_of(request->dtype);
    const Kernel<kernels::ClassLoss> kernel{
        "class_loss",
        [](const kernels::ClassLoss& loss, std::size_t* bytes) { return kernels::class_loss_workspace(loss, bytes); },
        [](const kernels::ClassLoss& loss, void* workspace, std::size_t bytes, kernels::Stream stream) {
          return kernels::class_loss(loss, workspace, bytes, stream);
        }};
    return launch(*self(handle), kernel,
                  {{request->logits},
                   {request->labels},
                   {request->probabilities},
                   {request->weight},
                   {request->upstream},
                   {request->losses, true, element},
                   {request->total, true, element},
                   {request->gradient, true, element},
                   {request->bad_labels, true, sizeof(std::int64_t)}},
                  *request);
  }

  static int softmax(tensorlint_device* handle, const kernels::Softmax* request) {
    const Kernel<kernels::Softmax> kernel{
        "softmax", nullptr, [](const kernels::Softmax& softmax, void*, std::size_t, kernels::Stream stream) {
          return kernels::softmax(softmax, stream);
        }};
    return launch(*self(handle), kernel,
                  {{request->input}, {request->upstream}, {request->output, true, kernels::size_of(request->dtype)}},
                  *request);
  }

  static int matrix_product(tensorlint_device* handle, const kernels::MatrixProduct* request) {
    const Kernel<kernels::MatrixProduct> kernel{
        "matrix_product", nullptr,
        [](const kernels::MatrixProduct& product, void*, std::size_t, kernels::Stream stream) {
          return kernels::matrix_product(product, stream);
        }};
    return launch(*self(handle), kernel, operands_of(*request), *request);
  }

  static int load_cublaslt(tensorlint_device* device, const char* file, int uses_tf32) {
    return self(device)->load_cublaslt(file, uses_tf32 != 0);
  }

  static int cublaslt_product(tensorlint_device* handle, const kernels::MatrixProduct* request) {
    Device& device = *self(handle);
    if (device.state.cublaslt == nullptr) return device.state.fail("cublaslt_product: cublasLt is not loaded");
    return device.launch(operands_of(*request), [request = *request](Device& on, kernels::Stream stream) {
      ++on.state.counts.launches;
      std::string failed =
          on.state.cublaslt->multiply(request, [&](std::size_t bytes) { return on.library_workspace(bytes); }, stream);
      return failed.empty() ? 0 : on.state.fail(std::move(failed));
    });
  }

  static KernelOperands operands_of(const kernels::MatrixProduct& request) {
    return {{request.a.data},
            {request.b.data},
            {request.addend.data},
            {request.result, true, kernels::size_of(request.dtype)}};
  }

  static int attention(tensorlint_device* handle, const kernels::Attention* request) {
    const Kernel<kernels::Attention> kernel{
        "attention", nullptr, [](const kernels::Attention& attention, void*, std::size_t, kernels::Stream stream) {
          return kernels::attention(attention, stream);
        }};
    return launch(*self(handle), kernel,
                  {{request->query.data},
                   {request->key.data},
                   {request->value.data},
                   {request->mask.data},
                   {request->result, true, kernels::size_of(request->dtype)}},
                  *request);
  }

  static int move(tensorlint_device* handle, const kernels::Movement* request) {
    const Kernel<kernels::Movement> kernel{
        "move",
        [](const kernels::Movement& movement, std::size_t* bytes) {
          return kernels::movement_workspace(movement, bytes);
        },
        [](const kernels::Movement& movement, void* workspace, std::size_t bytes, kernels::Stream stream) {
          return kernels::move(movement, workspace, bytes, stream);
        }};
    return launch(*self(handle), kernel,
                  {{request->source},
                   {request->indices},
                   {request->destination, true, static_cast<std::size_t>(request->element_bytes)},
                   {request->bad_indices, true, sizeof(std::int64_t)}},
                  *request);
  }

  static int elementwise(tensorlint_device* handle, const kernels::Elementwise* request) {
    const Kernel<kernels::Elementwise> kernel{
        "elementwise", nullptr, [](const kernels::Elementwise& program, void*, std::size_t, kernels::Stream stream) {
          return kernels::elementwise(program, stream);
        }};
    KernelOperands operands;
    for (int k = 0; k < request->operand_count; ++k) operands.add({request->operands[k].data});
    operands.add({request->result, true, kernels::size_of(request->result_dtype)});
    return launch(*self(handle), kernel, operands, *request);
  }

  static int convolution(tensorlint_device* handle, const kernels::Convolution* request) {
    const Kernel<kernels::Convolution> kernel{
        "convolution", nullptr,
        [](const kernels::Convolution& convolution, void*, std::size_t, kernels::Stream stream) {
          return kernels::convolution(convolution, stream);
        }};
    return launch(*self(handle), kernel,
                  {{request->data},
                   {request->weight},
                   {request->bias},
                   {request->result, true, kernels::size_of(request->dtype)}},
                  *request);
  }

  static int pooling(tensorlint_device* handle, const kernels::Pooling* request) {
    const Kernel<kernels::Pooling> kernel{
        "pooling", nullptr, [](const kernels::Pooling& pooling, void*, std::size_t, kernels::Stream stream) {
          return kernels::pooling(pooling, stream);
        }};
    return launch(*self(handle), kernel, {{request->data}, {request->result, true, kernels::size_of(request->dtype)}},
                  *request);
  }

  static int normalization(tensorlint_device* handle, const kernels::Normalization* request) {
    const Kernel<kernels::Normalization> kernel{
        "normalization", nullptr,
        [](const kernels::Normalization& normalization, void*, std::size_t, kernels::Stream stream) {
          return kernels::normalization(normalization, stream);
        }};
    return launch(*self(handle), kernel,
                  {{request->data},
                   {request->scale},
                   {request->bias},
                   {request->mean},
                   {request->variance},
                   {request->result, true, kernels::size_of(request->dtype)}},
                  *request);
  }
};

}  // namespace tensorlint::plugins
