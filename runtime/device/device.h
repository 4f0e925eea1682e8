#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "runtime/device/table.h"
#include "runtime/values/memory.h"

namespace tensorlint::runtime {

class Device;

/// What a device refused, or what failed in its work.
struct DeviceFault : RunFault {
  std::optional<std::uint64_t> step;  ///< whose work failed, where that is known and was not the call itself
  bool is_of_earlier_work = false;    ///< not the call itself failed; whose work is not known
};

/// A block of a device's memory, given back when it goes. The host has waited for all work on its values then.
class DeviceBlock {
 public:
  DeviceBlock() = default;
  DeviceBlock(DeviceBlock&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), data_(std::exchange(other.data_, nullptr)) {}
  DeviceBlock& operator=(DeviceBlock&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~DeviceBlock();

 private:
  friend class Device;
  DeviceBlock(Device* device, void* data) : device_(device), data_(data) {}

  Device* device_ = nullptr;
  void* data_ = nullptr;
};

/// A part of a block as long as it has a meaning. Ended when it goes: calls before that may still be under way.
class DeviceValue {
 public:
  DeviceValue() = default;
  DeviceValue(DeviceValue&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), data_(std::exchange(other.data_, nullptr)) {}
  DeviceValue& operator=(DeviceValue&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~DeviceValue();

  void* data() const { return data_; }

 private:
  friend class Device;
  DeviceValue(Device* device, void* data) : device_(device), data_(data) {}

  Device* device_ = nullptr;
  void* data_ = nullptr;
};

/// A device, called through its table. What it refuses is thrown as a DeviceFault with the device's words. Not
/// thread-safe.
class Device {
 public:
  using Stream = tensorlint_stream;

  /// `name`: "cuda:0", "emulated:1". The plug-in of that kind lies beside the program or in ../lib. Errors: not the
  /// name of a device, a plug-in that is missing or of another build, a device that its plug-in does not find.
  static Result<std::unique_ptr<Device>> open(std::string_view name, std::uint64_t memory_limit);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& name() const { return name_; }
  std::uint64_t memory_limit() const { return memory_limit_; }

  DeviceBlock allocate(std::size_t bytes);
  /// At `offset` of the block, a multiple of 16.
  DeviceValue place(const DeviceBlock& block, std::uint64_t offset, std::size_t bytes);

  // Work, as the table says when it is done.

  void copy_in(const DeviceValue& to, const void* from, std::size_t bytes);
  void copy_out(void* to, const DeviceValue& from, std::size_t bytes);
  void synchronize();

  void make_events(std::uint32_t count);
  void record(Stream stream, std::uint32_t event);
  void wait(Stream stream, std::uint32_t event);
  void host_wait(std::uint32_t event);
  /// Faults of work that is begun from now on name this step.
  void set_step(std::uint64_t step) { table_->set_step(handle_, step); }

  /// Most shared memory that a block of a kernel has.
  std::uint64_t shared_bytes() const { return table_->shared_bytes(handle_); }

  // Pointers of the requests are of this device's values.
  void reduce(const kernels::Reduction& request, const void* input, void* result);
  void pointwise_loss(const kernels::PointwiseLoss& request);
  void class_loss(const kernels::ClassLoss& request);
  void softmax(const kernels::Softmax& request);
  void matrix_product(const kernels::MatrixProduct& request);
  void attention(const kernels::Attention& request);
  void elementwise(const kernels::Elementwise& request);
  void convolution(const kernels::Convolution& request);
  void pooling(const kernels::Pooling& request);
  void normalization(const kernels::Normalization& request);
  void move(const kernels::Movement& request);

  /// Loads cublasLt: of `file`, or where that is empty the one that the system finds. Error: the device's own.
  std::optional<Error> load_cublaslt(const std::string& file, bool uses_tf32);
  /// Why cublasLt does not take such a product, in words that follow "because"; empty: it does. Pointers do not count.
  std::string why_not_cublaslt(const kernels::MatrixProduct& request, bool has_addend) const;
  /// As matrix_product, by cublasLt, which is loaded and takes it.
  void cublaslt_product(const kernels::MatrixProduct& request);

  tensorlint_device_counts counts() const { return table_->counts(handle_); }

  // For tests; false where the device cannot.

  /// The `call`-th call from now on fails, if `late` in its work.
  bool fail_at(std::uint64_t call, bool late = false);
  /// The `call`-th device of this kind that is opened from now on is refused.
  bool fail_open_at(std::uint64_t call);
  /// The `wait`-th wait from now on does nothing.
  bool skip_wait(std::uint64_t wait);
  /// Faults of work name no step.
  bool hide_steps(bool hidden);
  /// Chooses the order of work that events leave open.
  bool use_seed(std::uint64_t seed);

 private:
  friend class DeviceBlock;
  friend class DeviceValue;
  Device(std::string name, std::uint64_t memory_limit, const tensorlint_device_table_v1* table,
         tensorlint_device* handle)
      : name_(std::move(name)), memory_limit_(memory_limit), table_(table), handle_(handle) {}
  void check(int status) const;

  std::string name_;
  std::uint64_t memory_limit_;
  const tensorlint_device_table_v1* table_;
  tensorlint_device* handle_;
};

}  // namespace tensorlint::runtime
