#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/graph/edit.h"
#include "passes/dataflow/analysis.h"
#include "passes/placement/sources.h"

namespace tensorlint::placement {

/// A model split between the cpu and one accelerator: every copy as a Transfer node, so that `--placement explicit`
/// holds.
struct TransferPlan {
  std::string accelerator;                     ///< "cuda:0"
  std::size_t on_accelerator = 0, on_cpu = 0;  ///< nodes that compute something
  std::size_t transfers = 0;
  std::vector<GraphEdit> edits;  ///< what makes the model so
};

/// An extent that is not known counts as this many, and so does a trip count.
inline constexpr std::int64_t kNominalExtent = 64;
/// Bytes that cross in the time that a copy takes however small it is: 10 microseconds at 12 GB/s.
inline constexpr std::int64_t kCopyOverhead = 128 * 1024;

/// Chooses the side of each node by a minimum cut over bytes: those that are copied, and those that nodes on the cpu
/// read and write, since both go at about the speed of the host's memory, with a byte for each 8 multiplications of
/// MatMul, Gemm and Conv there; an iteration's count as often as it is run. A node without a kernel of the provider is
/// on the cpu, one that only the provider can run on the accelerator, what sources place is where they say. A tensor is
/// copied once, before the outermost loop that does not change it. `options.providers` has the one provider. Errors,
/// for people: other than one provider, devices besides the cpu and the provider's, a model that does not pass `check`,
/// SequenceMap, a graph whose cut takes more work than its size allows.
Result<TransferPlan> make_transfers_explicit(const dataflow::Analysis& analysis, const PlacementOptions& options);

}  // namespace tensorlint::placement
