#pragma once

// Reductions of a contiguous tensor over any of its axes, on a CUDA stream.
//
// Determinism: the result is a function of shape, dtype and input bits only; not of the device (sm_80 on), the
// schedule, the address or the run. There is no floating-point atomic. Asynchronous: nothing is allocated, nothing
// waits; captures into CUDA graphs.

#include <cstddef>
#include <cstdint>

#include "kernels/common/scalar.h"
#include "kernels/common/status.h"

namespace tensorlint::kernels {

/// Sources: ONNX Reduce* and ArgMax/ArgMin, opset 18; all of nothing: 0 for sums, 1 for the product, -inf (lowest) for
/// max, +inf (largest) for min, -inf for logarithms, NaN for the mean.
enum class ReductionKind : int {
  kSum,
  kMean,
  kMax,  // NaN where any element is NaN, as in PyTorch and NumPy
  kMin,
  kProduct,
  kL1,
  kL2,
  kSumOfSquares,
  kLogSum,
  kLogSumExp,
  kArgMax,  // NaN counts as largest; index within the reduced axes flattened in order
  kArgMin,  // NaN counts as smallest
  kAny,
  kAll,
};

struct Reduction {
  ReductionKind kind = ReductionKind::kSum;
  Dtype dtype = Dtype::kFloat32;  // of the input; kBool bytes are 0 or 1
  Dtype result_dtype =
      Dtype::kFloat32;  // any but float8; kInt64 or kInt32 for arg. Integer sums and products wrap in it
  const std::int64_t* extents = nullptr;
  int rank = 0;
  const int* axes = nullptr;  // each in [-rank, rank); none: every element is reduced on its own
  int axis_count = 0;
  bool last_of_equals = false;  // arg: ONNX select_last_index
};

/// Bytes of workspace, 16-byte aligned; 0 for most shapes. Errors: kBadShape, kTooManyAxisGroups, kUnsupportedDtype.
Status reduction_workspace(const Reduction& reduction, std::size_t* bytes);

/// Zeroes the part of a workspace that calls expect to be zero and leave zero again. Once before its first use, and
/// again after a launch that was aborted. Calls of any shapes, of losses too, may share a workspace as long as they
/// follow each other on one stream; give it the largest size that any of them asks for.
Status initialize_reduction_workspace(void* workspace, std::size_t bytes, Stream stream);

/// Accumulates float8, float16, bfloat16 and float32 in float32 (squares of the last two, and products, in float64),
/// float64 in float64, integers modulo 2^64. Keeping reduced axes with extent 1 changes no data and is the caller's
/// choice. Errors: those of the query, kNullPointer, kMisaligned, kOverlap (of the result with
/// anything), kEmptyArgument, kWorkspaceTooSmall, kLaunchFailed.
Status reduce(const Reduction& reduction, const void* input, void* result, void* workspace, std::size_t workspace_bytes,
              Stream stream);

}  // namespace tensorlint::kernels
