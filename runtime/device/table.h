#pragma once

// How a device is reached: one table of functions, which a plug-in gives by the name `tensorlint_device_v1`. So CUDA is
// loaded where it is wanted and linked nowhere, and the emulated device runs the same code.
//
// Requests are those of kernels/: a plug-in and the program that loads it are built of one tree, and `request_bytes`
// holds them to that. Pointers inside of requests are the device's. Calls return 0, or a number other than 0 and then
// `error` says why. All calls of a device come from one thread.
//
// Work is put into streams and done later: work of one stream in the order of the calls, work of two streams in any
// order that events leave open. Copies to the device are made in one stream, kernels in another one, copies
// from the device in a third. An error of such work shows in a later call, at the latest in one that waits for it.

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "kernels/attention/attention.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/loss/loss.h"
#include "kernels/movement/movement.h"
#include "kernels/normalization/normalization.h"
#include "kernels/product/product.h"
#include "kernels/reduction/reduction.h"
#include "kernels/window/window.h"

extern "C" {

/// An open device, whose type the plug-in defines.
struct tensorlint_device;

/// What a device did since it was opened.
struct tensorlint_device_counts {
  std::uint64_t calls;  ///< that can fail
  std::uint64_t copies_in, bytes_in, copies_out, bytes_out;
  std::uint64_t launches;
  std::uint64_t waits;                                ///< of streams and of the host, for events
  std::uint64_t live_blocks, live_bytes, peak_bytes;  ///< of allocate
  std::uint64_t live_values;
};

/// What a device does side by side.
enum tensorlint_stream : unsigned { kTensorlintCopiesIn, kTensorlintKernels, kTensorlintCopiesOut };

/// Not work of a step.
constexpr std::uint64_t kTensorlintNoStep = UINT64_MAX;
/// Work of an earlier call, of which one the device does not know.
constexpr std::uint64_t kTensorlintUnknownStep = UINT64_MAX - 1;

struct tensorlint_device_table_v1 {
  std::uint32_t version;        ///< 1
  std::uint32_t request_bytes;  ///< tensorlint_request_bytes()

  /// Null where there is no such device; `error` then gets why, at most `error_bytes` with the zero at its end.
  /// `memory_limit`: bytes that allocate gives at most at one time.
  tensorlint_device* (*open)(int index, std::uint64_t memory_limit, char* error, std::size_t error_bytes);
  /// Blocks that are still held end with it.
  void (*close)(tensorlint_device* device);

  /// Aligned for every kernel; null: refused.
  void* (*allocate)(tensorlint_device* device, std::size_t bytes);
  /// The host has waited for all work on its values.
  void (*release)(tensorlint_device* device, void* block);
  /// Where a value of `bytes` at `offset` of a block, a multiple of 16, is reached. Content means nothing until it is
  /// written. Values that live at one time do not overlap. Null: refused.
  void* (*begin_value)(tensorlint_device* device, void* block, std::uint64_t offset, std::size_t bytes);
  /// No later call reads or writes the value; work of earlier ones may still do so, and who uses its memory again waits
  /// for that work.
  void (*end_value)(tensorlint_device* device, void* value);

  // `to` and `from` on the device begin a value. The host may change `from` when the call returns.
  int (*copy_in)(tensorlint_device* device, void* to, const void* from, std::size_t bytes);
  /// The host reads `to`, and gives it up, after it has waited.
  int (*copy_out)(tensorlint_device* device, void* to, const void* from, std::size_t bytes);
  /// Waits for all work; after an error too, then nothing is under way.
  int (*synchronize)(tensorlint_device* device);

  /// Makes the events 0 to `count` - 1 usable.
  int (*make_events)(tensorlint_device* device, std::uint32_t count);
  /// The event occurs when the work that is in the stream now is done.
  int (*record)(tensorlint_device* device, tensorlint_stream stream, std::uint32_t event);
  /// Work that is put into the stream later waits for the event as it was recorded last.
  int (*wait)(tensorlint_device* device, tensorlint_stream stream, std::uint32_t event);
  int (*host_wait)(tensorlint_device* device, std::uint32_t event);

  int (*reduce)(tensorlint_device* device, const tensorlint::kernels::Reduction* request, const void* input,
                void* result);
  int (*pointwise_loss)(tensorlint_device* device, const tensorlint::kernels::PointwiseLoss* request);
  int (*class_loss)(tensorlint_device* device, const tensorlint::kernels::ClassLoss* request);
  int (*softmax)(tensorlint_device* device, const tensorlint::kernels::Softmax* request);
  int (*matrix_product)(tensorlint_device* device, const tensorlint::kernels::MatrixProduct* request);
  int (*attention)(tensorlint_device* device, const tensorlint::kernels::Attention* request);
  int (*elementwise)(tensorlint_device* device, const tensorlint::kernels::Elementwise* request);
  int (*convolution)(tensorlint_device* device, const tensorlint::kernels::Convolution* request);
  int (*pooling)(tensorlint_device* device, const tensorlint::kernels::Pooling* request);
  int (*normalization)(tensorlint_device* device, const tensorlint::kernels::Normalization* request);
  int (*move)(tensorlint_device* device, const tensorlint::kernels::Movement* request);

  // cublasLt beside our kernels.

  /// Loads the library: `file`, or where that is empty the one that the system finds. `uses_tf32`: products of float32
  /// round their operands to it.
  int (*load_cublaslt)(tensorlint_device* device, const char* file, int uses_tf32);
  /// Why cublasLt does not take such a product, pointers aside; null: it does.
  const char* (*why_not_cublaslt)(const tensorlint::kernels::MatrixProduct* request, int has_addend);
  /// After load_cublaslt. All that lies on the device is aligned to 16 bytes.
  int (*cublaslt_product)(tensorlint_device* device, const tensorlint::kernels::MatrixProduct* request);

  /// Most bytes of shared memory that a block of a kernel has; 0: the device does not say.
  std::uint64_t (*shared_bytes)(tensorlint_device* device);
  /// Why the last call failed.
  const char* (*error)(tensorlint_device* device);
  /// Work of later calls belongs to this step of the caller's.
  void (*set_step)(tensorlint_device* device, std::uint64_t step);
  /// The step of the work that failed in the last call; kTensorlintNoStep: the call itself failed.
  std::uint64_t (*failed_step)(tensorlint_device* device);
  tensorlint_device_counts (*counts)(tensorlint_device* device);

  // For tests, null where a device cannot.
  /// Lets the `call`-th call from now on fail (1: the next one; 0: none), `late`: its work, if it has some. Without a
  /// device: `call`-th device that is opened.
  void (*fail_at)(tensorlint_device* device, std::uint64_t call, bool late);
  /// The `wait`-th wait from now on does not wait (0: all do).
  void (*skip_wait)(tensorlint_device* device, std::uint64_t wait);
  /// Steps of work that fails are unknown, as they are to CUDA.
  void (*hide_steps)(tensorlint_device* device, bool hidden);
  /// Chooses the order in which work of several streams is done.
  void (*use_seed)(tensorlint_device* device, std::uint64_t seed);
};

using tensorlint_device_v1_function = const tensorlint_device_table_v1*();

}  // extern "C"

/// Differs where two builds do not have the same requests.
constexpr std::uint32_t tensorlint_request_bytes() {
  std::uint32_t sum = 0;
  for (const std::size_t bytes : {sizeof(tensorlint::kernels::Reduction), sizeof(tensorlint::kernels::PointwiseLoss),
                                  sizeof(tensorlint::kernels::ClassLoss), sizeof(tensorlint::kernels::Softmax),
                                  sizeof(tensorlint::kernels::Normalization), sizeof(tensorlint::kernels::Attention),
                                  sizeof(tensorlint::kernels::MatrixProduct), sizeof(tensorlint::kernels::Convolution),
                                  sizeof(tensorlint::kernels::Pooling), sizeof(tensorlint::kernels::Elementwise),
                                  sizeof(tensorlint::kernels::Movement), sizeof(tensorlint_device_table_v1)})
    sum = sum * 31 + static_cast<std::uint32_t>(bytes);
  return sum;
}
