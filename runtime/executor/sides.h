#pragma once

#include <map>
#include <set>

#include "passes/dataflow/analysis.h"
#include "runtime/executor/kernel_call.h"
#include "runtime/executor/readers.h"

namespace tensorlint::runtime {

/// Which calls run on the device.
enum class Sides : std::uint8_t {
  kKernels,  ///< all that there are
  kCost,     ///< those that are worth their copies
};

/// The calls that cost more on the device than in the interpreter, by the node that makes their result: graph by graph
/// a minimum cut between the two, with the costs by which `tensorlint place` splits a model. Here all values begin and
/// end on the host, weights too. Where a cut takes more work than the graph's size allows, all calls stay on the
/// device.
std::set<NodeId> calls_not_worth_copies(const dataflow::Analysis& analysis, const Readers& readers,
                                        const std::map<NodeId, KernelCall>& calls);

}  // namespace tensorlint::runtime
