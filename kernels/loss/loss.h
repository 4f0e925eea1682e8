#pragma once

// Losses on a CUDA stream: forward, backward, or both in one pass, by which outputs are given.
//
// In place: the gradient may lie exactly over an operand of the same size that is read element by element: input,
// target and an upstream gradient for each element of the pointwise losses, logits and probabilities, input and
// upstream of softmax, either row of the cosine loss, and the log-probabilities of the negative log likelihood where no
// loss is asked for. Every other overlap of an output with an operand, an output or the workspace is refused
// (kOverlap).
//
// Determinism: results are a function of shape, dtype and input bits (and, for class rows above 64 KiB, of whether the
// device has clusters); there is no floating-point atomic. Asynchronous: nothing is allocated, nothing waits; captures
// into CUDA graphs. float16, bfloat16 and float32 compute in float32, float64 in float64; sums over elements end in
// float64.

#include <cstddef>
#include <cstdint>

#include "kernels/common/scalar.h"
#include "kernels/common/status.h"

namespace tensorlint::kernels {

enum class Averaging : int {
  kNone,  // one loss an element (position)
  kSum,
  kMean,      // over elements; over the weights of counted labels for class indices, as in PyTorch
  kBatchMean  // pointwise only: the sum over `batch`
};

enum class PointwiseKind : int {
  kSquared,          // (x - t)^2
  kAbsolute,         // |x - t|
  kHuber,            // delta: x^2 / 2 up to delta, then delta (|x| - delta / 2)
  kSmoothL1,         // delta is beta: Huber over beta; beta 0 is the absolute loss
  kBinary,           // x a probability; NaN outside [0, 1]
  kBinaryLogits,     // x a logit; positive_weight multiplies the positive part
  kKlDivergence,     // x a log-probability, t a probability
  kKlDivergenceLog,  // both log-probabilities
};

/// All tensors are contiguous and of `dtype` (float64, float32, float16, bfloat16).
struct PointwiseLoss {
  PointwiseKind kind = PointwiseKind::kSquared;
  Dtype dtype = Dtype::kFloat32;
  Averaging averaging = Averaging::kMean;
  std::int64_t elements = 0;
  std::int64_t batch = 1;  // kBatchMean
  double delta = 1.0;      // kHuber (> 0), kSmoothL1 (>= 0)
  const void* input = nullptr;
  const void* target = nullptr;
  const void* weight = nullptr;           // optional factor; element i uses weight[i % weight_period]
  const void* positive_weight = nullptr;  // kBinaryLogits, optional, likewise
  std::int64_t weight_period = 1;
  std::int64_t positive_period = 1;
  const void* upstream = nullptr;  // optional gradient of the result: `elements` values for kNone, else one
  void* losses = nullptr;          // kNone: `elements` values
  void* total = nullptr;           // else: one value
  void* gradient = nullptr;        // by the input, `elements` values
};

Status pointwise_loss_workspace(const PointwiseLoss& loss, std::size_t* bytes);
/// The mean over no elements is NaN. Errors: kUnsupportedDtype, kBadShape, kBadParameter, kNullPointer, kMisaligned,
/// kOverlap, kWorkspaceTooSmall, kLaunchFailed.
Status pointwise_loss(const PointwiseLoss& loss, void* workspace, std::size_t workspace_bytes, Stream stream);

enum class ClassLossKind : int {
  kCrossEntropy,               // logits and class indices
  kCrossEntropyProbabilities,  // logits and class probabilities
  kNegativeLogLikelihood,      // log-probabilities and class indices
};

/// Logits [rows, classes, inner] (PyTorch's [N, C, d1, ...] with inner = d1 ...), labels [rows, inner], row-major.
/// Sources: ONNX SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss, opset 13; PyTorch for smoothing and
/// probabilities.
struct ClassLoss {
  ClassLossKind kind = ClassLossKind::kCrossEntropy;
  Dtype dtype = Dtype::kFloat32;
  Averaging averaging = Averaging::kMean;
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  std::int64_t inner = 1;
  const void* logits = nullptr;
  const void* labels = nullptr;  // indices
  bool wide_labels = true;       // int64, else int32
  const void* probabilities = nullptr;
  const void* weight = nullptr;  // optional, one a class
  double smoothing = 0.0;        // in [0, 1]; cross entropy only
  std::int64_t ignore_index = -100;
  const void* upstream = nullptr;  // optional: rows x inner values for kNone, else one
  void* losses = nullptr;          // kNone: rows x inner values
  void* total = nullptr;           // else: one value
  void* gradient = nullptr;        // of the logits' shape
  /// Optional, two values: how many labels lie outside [0, classes) without being ignore_index, and the first such
  /// position (-1). Their losses and gradients are NaN, so they show in the total too; nothing is read or written out
  /// of bounds.
  std::int64_t* bad_labels = nullptr;
  int capability = 0;  // 10 major + minor of the device that runs it; 0: the current device is asked
};

Status class_loss_workspace(const ClassLoss& loss, std::size_t* bytes);
/// All labels ignored: a mean of NaN and a zero gradient. Errors: as above.
Status class_loss(const ClassLoss& loss, void* workspace, std::size_t workspace_bytes, Stream stream);

/// Softmax or log-softmax over the middle axis of [rows, classes, inner]; with `upstream`, its gradient from the
/// forward result.
struct Softmax {
  Dtype dtype = Dtype::kFloat32;
  bool logarithmic = false;
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  std::int64_t inner = 1;
  const void* input = nullptr;     // logits; for the gradient the forward result
  const void* upstream = nullptr;  // null: forward
  void* output = nullptr;
  int capability = 0;  // as above
};

/// Needs no workspace. Errors: as above.
Status softmax(const Softmax& request, Stream stream);

/// Cosine embedding loss of rows of `length`: 1 - cos for target 1, max(0, cos - margin) for target -1.
struct CosineLoss {
  Dtype dtype = Dtype::kFloat32;
  Averaging averaging = Averaging::kMean;
  std::int64_t rows = 0;
  std::int64_t length = 0;
  double margin = 0.0;
  const void* first = nullptr;
  const void* second = nullptr;
  const void* target = nullptr;  // of `dtype`, one a row
  const void* upstream = nullptr;
  void* losses = nullptr;
  void* total = nullptr;
  void* first_gradient = nullptr;
  void* second_gradient = nullptr;
};

Status cosine_loss_workspace(const CosineLoss& loss, std::size_t* bytes);
Status cosine_loss(const CosineLoss& loss, void* workspace, std::size_t workspace_bytes, Stream stream);

/// Zeroes what calls expect to be zero at the start of a workspace and leave zero. Once before its first use, and again
/// after an aborted launch. Calls of any shapes, reductions too, may share a workspace as long as they follow each
/// other on one stream; the same memory as initialize_reduction_workspace zeroes.
Status initialize_loss_workspace(void* workspace, std::size_t bytes, Stream stream);

}  // namespace tensorlint::kernels
