#pragma once

#include <cstdint>
#include <string_view>

namespace tensorlint::ops {

/// What a loss computes, whether it is one operator or written out.
enum class LossKind : std::uint8_t {
  kMse,
  kL1,
  kHuber,  ///< SmoothL1 too
  kLogCosh,
  kQuantile,  ///< the pinball loss
  kPoisson,   ///< of a logarithmic rate
  kHinge,     ///< squared and soft margins too
  kRelativeError,
  kBinaryCrossEntropy,
  kBinaryCrossEntropyWithLogits,
  kBinaryFocal,
  kKlDivergence,
  kNegativeLogLikelihood,
  kCrossEntropy,
  kFocal,  ///< cross-entropy that counts what is already right less
};

std::string_view to_text(LossKind kind);

/// Takes class indices as its target.
constexpr bool takes_class_indices(LossKind kind) {
  return kind == LossKind::kNegativeLogLikelihood || kind == LossKind::kCrossEntropy || kind == LossKind::kFocal;
}

/// Compares a prediction with a target element by element.
constexpr bool is_regression(LossKind kind) { return !takes_class_indices(kind); }

}  // namespace tensorlint::ops
