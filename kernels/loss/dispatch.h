#pragma once

#include "kernels/loss/class_columns.h"
#include "kernels/loss/class_rows.h"
#include "kernels/loss/cosine_embedding.h"
#include "kernels/loss/label_scan.h"
#include "kernels/loss/loss.h"
#include "kernels/loss/negative_log_likelihood.h"
#include "kernels/loss/pointwise_kernel.h"
#include "kernels/loss/softmax_gradient.h"

namespace tensorlint::kernels {

// One instance file for each element type defines these.
template <typename T>
Status launch_pointwise(PointwiseKind kind, const PointwiseParameters<T>& p, Stream stream);
template <typename T>
Status launch_classes(ClassTask task, const ClassParameters<T>& p, Stream stream);
template <typename T>
Status launch_labels(const LabelParameters<T>& p, Stream stream);
template <typename T>
Status launch_likelihood(const ClassParameters<T>& p, Stream stream);
template <typename T>
Status launch_softmax_gradient(const ClassParameters<T>& p, Stream stream);
template <typename T>
Status launch_cosine(const CosineParameters<T>& p, unsigned blocks, Stream stream);

#if defined(TL_LOSS_INSTANCES)
template <typename T>
Status launch_pointwise(PointwiseKind kind, const PointwiseParameters<T>& p, Stream stream) {
  const Geometry geometry = {p.blocks, kThreads, 1, 0};
  switch (kind) {
    case PointwiseKind::kSquared:
      return launch(&pointwise_loss<SquaredOp, T>, geometry, stream, p);
    case PointwiseKind::kAbsolute:
      return launch(&pointwise_loss<AbsoluteOp, T>, geometry, stream, p);
    case PointwiseKind::kHuber:
    case PointwiseKind::kSmoothL1:
      return launch(&pointwise_loss<HuberOp, T>, geometry, stream, p);
    case PointwiseKind::kBinary:
      return launch(&pointwise_loss<BinaryOp, T>, geometry, stream, p);
    case PointwiseKind::kBinaryLogits:
      return launch(&pointwise_loss<BinaryLogitsOp, T>, geometry, stream, p);
    case PointwiseKind::kKlDivergence:
      return launch(&pointwise_loss<KlDivergenceOp, T>, geometry, stream, p);
    case PointwiseKind::kKlDivergenceLog:
      return launch(&pointwise_loss<KlDivergenceLogOp, T>, geometry, stream, p);
  }
  return Status::kBadParameter;
}

template <typename T>
Status launch_classes(ClassTask task, const ClassParameters<T>& p, Stream stream) {
  const Geometry geometry = {p.plan.blocks, kThreads, p.plan.cluster, p.plan.shared_bytes};
  const bool rows = p.inner == 1;
  switch (task) {
    case ClassTask::kIndices:
      return launch(rows ? &class_rows<ClassTask::kIndices, T> : &class_columns<ClassTask::kIndices, T>, geometry,
                    stream, p);
    case ClassTask::kProbabilities:
      return launch(rows ? &class_rows<ClassTask::kProbabilities, T> : &class_columns<ClassTask::kProbabilities, T>,
                    geometry, stream, p);
    case ClassTask::kSoftmax:
      return launch(rows ? &class_rows<ClassTask::kSoftmax, T> : &class_columns<ClassTask::kSoftmax, T>, geometry,
                    stream, p);
  }
  return Status::kBadParameter;
}

template <typename T>
Status launch_labels(const LabelParameters<T>& p, Stream stream) {
  return launch(&scan_labels<T>, {p.blocks, kThreads, 1, 0}, stream, p);
}

template <typename T>
Status launch_likelihood(const ClassParameters<T>& p, Stream stream) {
  return launch(&negative_log_likelihood<T>, {p.plan.blocks, kThreads, 1, 0}, stream, p);
}

template <typename T>
Status launch_softmax_gradient(const ClassParameters<T>& p, Stream stream) {
  return launch(&softmax_gradient<T>, {p.plan.blocks, kThreads, 1, 0}, stream, p);
}

template <typename T>
Status launch_cosine(const CosineParameters<T>& p, unsigned blocks, Stream stream) {
  return launch(&cosine_embedding<T>, {blocks, kThreads, 1, 0}, stream, p);
}

#define TL_LOSS_INSTANCE(T)                                                                  \
  template Status launch_pointwise<T>(PointwiseKind, const PointwiseParameters<T>&, Stream); \
  template Status launch_classes<T>(ClassTask, const ClassParameters<T>&, Stream);           \
  template Status launch_labels<T>(const LabelParameters<T>&, Stream);                       \
  template Status launch_likelihood<T>(const ClassParameters<T>&, Stream);                   \
  template Status launch_softmax_gradient<T>(const ClassParameters<T>&, Stream);             \
  template Status launch_cosine<T>(const CosineParameters<T>&, unsigned, Stream);
#endif

}  // namespace tensorlint::kernels
