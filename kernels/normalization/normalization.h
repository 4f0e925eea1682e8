#pragma once

// Normalizations on a CUDA stream: of rows by their own statistics, or by statistics that are given.
//
// Statistics are those of the population, in float32 (float64 for float64), in one pass: each thread merges the count,
// sum and squared deviations of 4 vectors at a time with what it has (Chan, Golub and LeVeque 1983), then lanes
// and warps are merged in a fixed tree. So a large mean beside a small variance costs the rounding of the mean, not of
// its square. With d merges between an element and the result, unit roundoff u and A the mean of |x|, the mean is
// within d u A and the variance within d u (variance + 2 A sqrt(variance)). Results are a function of shape and bits
// alone; nothing is allocated, nothing waits.

#include <cstdint>

#include "kernels/common/scalar.h"
#include "kernels/common/status.h"

namespace tensorlint::kernels {

enum class NormalizationKind : int {
  kCentred,         // (x - mean) / sqrt(variance + epsilon)
  kRootMeanSquare,  // x / sqrt(mean of x^2 + epsilon)
  kGiven,           // (x - mean[p]) / sqrt(variance[p] + epsilon)
};

/// Rows of `length`, times scale[p] plus bias[p]. The parameters of element i of row r are p = (r % groups) * each + i
/// / (length / each): `each` of them a row, of `groups` kinds of rows.
///   over the last axes   groups 1, each = length (or 1: one for all)
///   over an instance     groups = channels, each 1
///   over a group         groups = number of groups, each = channels of one
///   given, by channel    groups = channels, each 1
/// Source: ONNX LayerNormalization 17, RMSNormalization 23, InstanceNormalization 22, GroupNormalization 21,
/// BatchNormalization 15.
struct Normalization {
  NormalizationKind kind = NormalizationKind::kCentred;
  Dtype dtype = Dtype::kFloat32;  // of all tensors
  std::int64_t rows = 0;
  std::int64_t length = 0;
  std::int64_t groups = 1;  // divides rows
  std::int64_t each = 1;    // divides length
  double epsilon = 1e-5;
  const void* data = nullptr;
  const void* scale = nullptr;     // optional; groups * each elements, as all parameters
  const void* bias = nullptr;      // optional
  const void* mean = nullptr;      // kGiven
  const void* variance = nullptr;  // kGiven
  void* result = nullptr;          // may be the data
};

/// Errors: kUnsupportedDtype, kBadShape, kBadParameter (groups or each that do not divide), kNullPointer, kMisaligned,
/// kOverlap, kLaunchFailed.
Status normalization(const Normalization& request, Stream stream);

}  // namespace tensorlint::kernels
