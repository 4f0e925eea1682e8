#pragma once

// Sliding windows on a CUDA stream: convolutions and pools over one or two spatial axes.
//
// Determinism: each element of a result is one sum (or maximum) over its window in ascending order: channel by channel,
// row by row. Sums are in float32 (float64 for float64), of fused multiply-adds for convolutions; their error is at
// most n u sum |terms| for n terms and unit roundoff u; the bias, the division by a count and the result's own dtype
// cost one rounding each. Asynchronous: nothing is allocated, nothing waits.

#include <cstdint>

#include "kernels/common/scalar.h"
#include "kernels/common/status.h"

namespace tensorlint::kernels {

/// Windows along one axis: element `i` of window `o` lies at o * stride - begin + i * dilation. What lies outside of
/// the data is padding.
struct WindowAxis {
  std::int64_t in = 1;
  std::int64_t out = 1;     // windows
  std::int64_t kernel = 1;  // elements of a window
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t begin = 0;  // padding before the data
  std::int64_t end = 0;    // and after it
};

/// Extents, strides and the like of an axis are below this: positions fit 32 bits.
constexpr std::int64_t kWindowLimit = std::int64_t{1} << 29;

constexpr bool is_within_limit(const WindowAxis& axis) {
  return axis.in < kWindowLimit && axis.begin < kWindowLimit && axis.end < kWindowLimit && axis.stride < kWindowLimit &&
         axis.dilation < kWindowLimit && axis.kernel < kWindowLimit / axis.dilation &&
         axis.out - 1 < kWindowLimit / axis.stride;
}

constexpr int kWindowAxes = 2;

/// Data [batch, channels, in...], filters [filters, channels / groups, kernel...], bias [filters], result [batch,
/// filters, out...]; padding counts as zeros. Source: ONNX Conv, opset 22.
struct Convolution {
  Dtype dtype = Dtype::kFloat32;
  std::int64_t batch = 0;
  std::int64_t channels = 0;
  std::int64_t filters = 0;
  std::int64_t groups = 1;       // divides channels and filters
  WindowAxis axes[kWindowAxes];  // rows and columns; of one spatial axis: columns
  const void* data = nullptr;
  const void* weight = nullptr;
  const void* bias = nullptr;  // optional
  void* result = nullptr;
};

/// Errors: kUnsupportedDtype, kBadShape (2^62 elements and more, 2^31 elements of a filter, an axis past kWindowLimit),
/// kBadParameter (a stride or dilation below 1, a pad below 0, groups that do not divide), kNullPointer, kMisaligned,
/// kOverlap, kLaunchFailed.
Status convolution(const Convolution& request, Stream stream);

enum class PoolingKind : int {
  kMax,                 // NaN counts as nothing; -infinity for a window of padding alone
  kAverage,             // over the elements of a window that are no padding; over none NaN
  kAverageWithPadding,  // padding counts as zeros; what lies after it does not count
};

/// Data [images, in...], result [images, out...]. Source: ONNX MaxPool, AveragePool, opset 22.
struct Pooling {
  PoolingKind kind = PoolingKind::kMax;
  Dtype dtype = Dtype::kFloat32;
  std::int64_t images = 0;
  WindowAxis axes[kWindowAxes];
  const void* data = nullptr;
  void* result = nullptr;
};

/// Errors: as above.
Status pooling(const Pooling& request, Stream stream);

}  // namespace tensorlint::kernels
