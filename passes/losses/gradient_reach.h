#pragma once

#include <vector>

#include "passes/dataflow/analysis.h"

namespace tensorlint::losses {

/// Inputs and initializers of the main graph that `tensorlint.requires_grad` says are trained. Costs one look at the
/// file where there are none.
std::vector<ValueId> trained_parameters(const Model& model);

/// The trained parameters of a model, and which values gradients reach them from.
struct GradientReach {
  std::vector<ValueId> parameters;
  /// By value, empty without parameters: it depends on a parameter by way of floating-point values. What happens in a
  /// body counts for its node and for all of its body's inputs, so that too much is reached rather than too little.
  IdVector<ValueId, bool> reached;

  bool reaches(ValueId value) const { return !reached.empty() && reached[value]; }
};

GradientReach find_gradient_reach(const dataflow::Analysis& analysis);

/// False for values that are certainly integer or bool.
bool carries_gradients(const dataflow::Analysis& analysis, ValueId value);

/// Going back from a value along first operands, the node that makes integers or bools of floating-point numbers; kNone
/// where there is none near.
NodeId where_gradients_stop(const dataflow::Analysis& analysis, ValueId value);

}  // namespace tensorlint::losses
