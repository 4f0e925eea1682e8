#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "runtime/device/table.h"

namespace tensorlint::runtime {

class Device;

/// A block of a device's memory, given back when it goes.
class DeviceBlock {
 public:
  DeviceBlock() = default;
  DeviceBlock(DeviceBlock&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceBlock& operator=(DeviceBlock&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceBlock();

  bool is_empty() const { return data_ == nullptr; }
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  friend class Device;
  DeviceBlock(Device* device, void* data, std::size_t bytes) : device_(device), data_(data), bytes_(bytes) {}

  Device* device_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A device behind its table. What it refuses is thrown as a RunFault with the device's words. Not thread-safe.
class Device {
 public:
  /// `name`: "cuda:0", "emulated:1". The plug-in of that kind lies beside the program or in ../lib. Errors: a name that
  /// is none, a plug-in that is missing or of another build, a device that its plug-in does not find.
  static Result<std::unique_ptr<Device>> open(std::string_view name, std::uint64_t memory_limit);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& name() const { return name_; }
  std::uint64_t memory_limit() const { return memory_limit_; }

  DeviceBlock allocate(std::size_t bytes);
  void copy_in(const DeviceBlock& to, const void* from, std::size_t bytes);
  void copy_out(void* to, const DeviceBlock& from, std::size_t bytes);
  void synchronize();

  // Pointers of the requests are of this device's blocks.
  void reduce(const kernels::Reduction& request, const void* input, void* result);
  void pointwise_loss(const kernels::PointwiseLoss& request);
  void class_loss(const kernels::ClassLoss& request);
  void softmax(const kernels::Softmax& request);

  tensorlint_device_counts counts() const { return table_->counts(handle_); }
  /// For tests: the `call`-th call that can fail does so. False where the device cannot be made to.
  bool fail_at(std::uint64_t call);

 private:
  friend class DeviceBlock;
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
