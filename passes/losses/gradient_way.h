#pragma once

#include "passes/losses/terms.h"

namespace tensorlint::losses {

/// What gradients of a value come to, going back over all operands; without metadata, weights are known by their use:
/// an initializer that a product, a convolution or a lookup takes.
struct GradientWay {
  bool reaches_weight = false;
  bool reaches_input = false;   ///< a floating input of the graph, or something that is not followed
  NodeId stop = NodeId::kNone;  ///< the first node that lets no gradient through, with weights before it
};
GradientWay gradient_way(const Terms& terms, ValueId value);
/// The same where `value` is the loss itself: inputs of the main graph are data, and its weights are initializers.
GradientWay gradient_way_of_loss(const Terms& terms, ValueId value);

}  // namespace tensorlint::losses
