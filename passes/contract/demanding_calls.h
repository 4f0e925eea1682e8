#pragma once

#include <vector>

#include "passes/contract/probing.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::contract {

/// Calls that may ask for a size: all that do not hand each open extent of their operands on to a result. Of calls that
/// are alike the first; none in branches and bodies, which need not run.
std::vector<NodeId> find_demanding_calls(const dataflow::Analysis& analysis);

/// The call fails for certain with these sizes. Less than a probe shows, which knows all values with these sizes, and
/// at the cost of one inference.
bool fails_alone(const Prober& prober, NodeId node, const Sizes& sizes);

}  // namespace tensorlint::contract
