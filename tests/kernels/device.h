#pragma once

// What the kernel tests run on: the emulator, with its schedules and complaints, or, compiled by nvcc, the GPU of the
// machine. The same test lines serve both: memory that host and device both see, a place to wait, and one question
// whether all went well.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "kernels/common/device.h"

namespace tensorlint::kernels::testing {

#if defined(__CUDACC__)

enum class Access { kReadOnly, kReadWrite, kWriteFirst };
enum class Order { kInOrder, kRandom, kPriority };

/// Managed memory between two red zones.
class DeviceMemory {
 public:
  DeviceMemory(std::size_t bytes, std::size_t, Access, const char* name, std::size_t shift)
      : bytes_(bytes), shift_(shift), name_(name) {
    void* memory = nullptr;
    if (cudaMallocManaged(&memory, total()) != cudaSuccess) {
      std::fprintf(stderr, "cudaMallocManaged of %zu bytes failed\n", total());
      std::abort();
    }
    memory_ = static_cast<unsigned char*>(memory);
    std::memset(memory_, kRed, total());
  }
  ~DeviceMemory() {
    cudaDeviceSynchronize();
    for (std::size_t i = 0; i < total(); ++i) {
      const bool inside = i >= kZone + shift_ && i < kZone + shift_ + bytes_;
      if (inside || memory_[i] == kRed) continue;
      ADD_FAILURE() << "a kernel wrote outside " << name_ << ", at byte "
                    << static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(kZone + shift_) << " of " << bytes_;
      break;
    }
    cudaFree(memory_);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  void* data() { return memory_ + kZone + shift_; }

 private:
  static constexpr std::size_t kZone = 256;
  static constexpr unsigned char kRed = 0xa7;
  std::size_t total() const { return bytes_ + shift_ + 2 * kZone; }
  std::size_t bytes_;
  std::size_t shift_;
  const char* name_;
  unsigned char* memory_ = nullptr;
};

struct Schedule {
  Order order = Order::kInOrder;
  std::uint64_t seed = 1;
};
inline void use(const Schedule&) {}
/// Waits for the device. What its calls returned is the caller's to check.
inline ::testing::AssertionResult clean() {
  const cudaError_t error = cudaDeviceSynchronize();
  if (error == cudaSuccess) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << cudaGetErrorString(error) << " ";
}

#else

using emulator::Access;
using emulator::Order;

/// Host memory registered with the emulator.
class DeviceMemory {
 public:
  DeviceMemory(std::size_t bytes, std::size_t granule, Access access, const char* name, std::size_t shift)
      : storage_(bytes + shift + 16) {
    auto base = reinterpret_cast<std::uintptr_t>(storage_.data());
    data_ = reinterpret_cast<void*>((base + 15) / 16 * 16 + shift);
    emulator::register_buffer(data_, bytes, granule, access, name);
  }
  ~DeviceMemory() { emulator::unregister_buffer(data_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  void* data() { return data_; }

 private:
  std::vector<unsigned char> storage_;
  void* data_ = nullptr;
};

struct Schedule {
  Order order = Order::kInOrder;
  std::uint64_t seed = 1;
};
inline void use(const Schedule& schedule) {
  emulator::options().order = schedule.order;
  emulator::options().seed = schedule.seed;
  emulator::clear_report();
}
/// Nothing to complain about since `use`.
inline ::testing::AssertionResult clean() {
  if (emulator::report().clean()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << emulator::report().first << " ";
}

#endif

/// `count` elements for kernels; ends exactly after the last, begins `shift` elements past a 16-byte boundary. What a
/// kernel wrote may be read once `clean` has been asked. `granule`: what the emulator tracks as one cell.
template <typename T>
class Buffer {
 public:
  explicit Buffer(std::size_t count, Access access, const char* name, std::size_t shift = 0,
                  std::size_t granule = sizeof(T))
      : memory_(count * sizeof(T), granule, access, name, shift * sizeof(T)), count_(count) {}

  T* data() { return static_cast<T*>(memory_.data()); }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) { return data()[i]; }

 private:
  DeviceMemory memory_;
  std::size_t count_;
};

}  // namespace tensorlint::kernels::testing
