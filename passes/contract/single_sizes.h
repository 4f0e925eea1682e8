#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "passes/contract/open_extent.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::contract {

/// An open extent with which the model runs at one size only, or at the few next to each other that a division rounds
/// to the same, or only where a formula of it and others is a number.
struct SingleSize {
  OpenExtent extent;
  std::int64_t least = 0, most = 0;  ///< the sizes that run
  std::optional<Dim> formula{};      ///< of the analysis: is `value`, whatever the sizes are that make it so
  std::int64_t value = 0;
  std::int64_t tried = 0;  ///< one that does not
  /// Solved with that one, and what fails first.
  std::shared_ptr<const dataflow::Analysis> solved;
  std::size_t violation = 0;

  const dataflow::NodeViolation& failure() const { return solved->violations()[violation]; }
};

struct SingleSizes {
  std::vector<SingleSize> found;
  bool left_out = false;  ///< the model is too large to be solved again
};

/// Open extents that are not: the size that the model was traced with is in a table, a shape, a state, a mask. All
/// other extents may have whatever size fits. Models that leave each open extent as it is are not solved again.
SingleSizes find_single_sizes(const dataflow::Analysis& analysis, const dataflow::AnalysisOptions& options);

}  // namespace tensorlint::contract
