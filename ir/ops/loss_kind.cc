#include "ir/ops/loss_kind.h"

namespace tensorlint::ops {

std::string_view to_text(LossKind kind) {
  switch (kind) {
    case LossKind::kMse:
      return "mean squared error";
    case LossKind::kL1:
      return "L1 loss";
    case LossKind::kHuber:
      return "Huber loss";
    case LossKind::kLogCosh:
      return "log-cosh loss";
    case LossKind::kQuantile:
      return "quantile loss";
    case LossKind::kPoisson:
      return "Poisson loss";
    case LossKind::kHinge:
      return "hinge loss";
    case LossKind::kRelativeError:
      return "relative error";
    case LossKind::kBinaryFocal:
      return "binary focal loss";
    case LossKind::kBinaryCrossEntropy:
      return "binary cross-entropy";
    case LossKind::kBinaryCrossEntropyWithLogits:
      return "binary cross-entropy with logits";
    case LossKind::kKlDivergence:
      return "KL divergence";
    case LossKind::kNegativeLogLikelihood:
      return "negative log-likelihood";
    case LossKind::kCrossEntropy:
      return "cross-entropy";
    case LossKind::kFocal:
      return "focal loss";
  }
  return {};
}

}  // namespace tensorlint::ops
