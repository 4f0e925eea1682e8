#pragma once

#include <vector>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {

/// Inputs and initializers of the main graph that `tensorlint.requires_grad` says are trained. Costs one look at the
/// file where there are none.
std::vector<ValueId> trained_parameters(const Model& model);

}  // namespace tensorlint::rules
