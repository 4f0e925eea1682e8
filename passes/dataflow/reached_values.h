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

/// An index of the value outside [lowest, extent): an element of a constant that is too long to be followed element by
/// element, or one that the program itself makes: the bound of a Clip or Mod, a sign, the number of a class that ArgMax
/// gives, the last of positions that are counted, what Where or Pad puts in, and what arithmetic makes of these. Found
/// by evaluating one element at sample points, so that a `may` is a number that comes up for some input. What an input
/// holds without anything of the kind is trusted. `ignored` is allowed.
std::optional<ReachedIndex> index_outside(const Analysis& analysis, ValueId value, std::int64_t lowest,
                                          std::int64_t extent, std::optional<std::int64_t> ignored = std::nullopt);

}  // namespace tensorlint::dataflow
