#pragma once

// How a device is reached: one table of functions, which a plug-in gives by the name `tensorlint_device_v1`. So CUDA is
// loaded where it is wanted and linked nowhere, and the emulated device runs the same code.
//
// Requests are those of kernels/: a plug-in and the program that loads it are built of one tree, and `request_bytes`
// holds them to that. Pointers inside of requests are the device's. Calls return 0, or a number other than 0 and then
// `error` says why. All calls of a device come from one thread, in an order in which each sees what those before it
// did.

#include <cstddef>
#include <cstdint>

#include "kernels/loss/loss.h"
#include "kernels/reduction/reduction.h"

extern "C" {

/// An open device; what it is, its plug-in knows.
struct tensorlint_device;

/// What a device did since it was opened.
struct tensorlint_device_counts {
  std::uint64_t calls;  ///< that can fail
  std::uint64_t copies_in, bytes_in, copies_out, bytes_out;
  std::uint64_t launches;
  std::uint64_t live_blocks, live_bytes, peak_bytes;  ///< of allocate
};

struct tensorlint_device_table_v1 {
  std::uint32_t version;        ///< 1
  std::uint32_t request_bytes;  ///< tensorlint_request_bytes()
  const char* kind;             ///< "cuda", "emulated"

  /// Null where there is no such device; `error` then gets why, at most `error_bytes` with the zero at its end.
  /// `memory_limit`: bytes that allocate gives at most at one time.
  tensorlint_device* (*open)(int index, std::uint64_t memory_limit, char* error, std::size_t error_bytes);
  /// Blocks that are still held end with it.
  void (*close)(tensorlint_device* device);

  /// Aligned for every kernel; null: refused. Content means nothing until it is written.
  void* (*allocate)(tensorlint_device* device, std::size_t bytes);
  void (*release)(tensorlint_device* device, void* block);
  int (*copy_in)(tensorlint_device* device, void* to, const void* from, std::size_t bytes);
  int (*copy_out)(tensorlint_device* device, void* to, const void* from, std::size_t bytes);
  int (*fill)(tensorlint_device* device, void* to, unsigned char byte, std::size_t bytes);
  int (*synchronize)(tensorlint_device* device);

  int (*reduce)(tensorlint_device* device, const tensorlint::kernels::Reduction* request, const void* input,
                void* result);
  int (*pointwise_loss)(tensorlint_device* device, const tensorlint::kernels::PointwiseLoss* request);
  int (*class_loss)(tensorlint_device* device, const tensorlint::kernels::ClassLoss* request);
  int (*softmax)(tensorlint_device* device, const tensorlint::kernels::Softmax* request);

  /// Why the last call failed.
  const char* (*error)(tensorlint_device* device);
  tensorlint_device_counts (*counts)(tensorlint_device* device);
  /// Lets the `call`-th call from now on fail (1: the next one; 0: none). Null where a device cannot.
  void (*fail_at)(tensorlint_device* device, std::uint64_t call);
};

using tensorlint_device_v1_function = const tensorlint_device_table_v1*();

}  // extern "C"

/// Differs where two builds do not have the same requests.
constexpr std::uint32_t tensorlint_request_bytes() {
  return static_cast<std::uint32_t>(
      sizeof(tensorlint::kernels::Reduction) + 512 * sizeof(tensorlint::kernels::PointwiseLoss) +
      512 * 512 * (sizeof(tensorlint::kernels::ClassLoss) + sizeof(tensorlint::kernels::Softmax)));
}
