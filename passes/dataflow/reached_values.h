#pragma once

#include <cstdint>
#include <optional>

#include "passes/dataflow/analysis.h"

namespace tensorlint::dataflow {

/// An index that some execution passes to a node, or all do.
struct ReachedIndex {
  std::int64_t index = 0;
  ops::Certainty certainty = ops::Certainty::kMay;
};

/// The largest integer that the value is known to reach: what a Clip, Min or Mod lets through of an input that may be
/// anything, and the end of a range that the user declared for an input. nullopt where nothing of the kind is known:
/// the upper end of an inferred range need not be reached.
std::optional<std::int64_t> reached_maximum(const Analysis& analysis, ValueId value);

/// An index of the value outside [lowest, extent): an element of a constant that is too long to be followed element by
/// element, or what reached_maximum gives. `ignored` is allowed.
std::optional<ReachedIndex> index_outside(const Analysis& analysis, ValueId value, std::int64_t lowest,
                                          std::int64_t extent, std::optional<std::int64_t> ignored = std::nullopt);

}  // namespace tensorlint::dataflow
