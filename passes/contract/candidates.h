#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "passes/contract/probing.h"

namespace tensorlint::contract {

/// Sizes with which a node that fails for `sizes` may run, the likeliest first: what it compares open extents with, in
/// its operands' shapes and elements and in its attributes. To be tried, not to be believed.
std::vector<Sizes> candidates(const Prober& prober, NodeId node, const Sizes& sizes);

/// Two extents or numbers of elements that a node may compare.
struct Comparison {
  Dim left, right;
  friend bool operator==(const Comparison&, const Comparison&) = default;
};

/// What a node may compare, that agrees for the sizes `before` and not for the sizes `after`: plain extents first.
std::vector<Comparison> disagreements(const Prober& prober, NodeId node, const Sizes& before, const Sizes& after);

/// The sizes with another one of `extent`, so that `dim` is `value`; nullopt where there is none. For dims that grow
/// with the extent, as those of results do.
std::optional<Sizes> fitted(const Prober& prober, Dim dim, std::int64_t value, std::size_t extent, const Sizes& sizes);

/// A number of elements, and what has to divide it so that an extent of -1 can be filled.
struct Division {
  Dim count;
  std::int64_t divisor = 1;
};

std::vector<Division> divisions(const Prober& prober, NodeId node);

/// Sizes with another extent than `changed` made to fit, so that both sides agree, and that extent.
struct Restored {
  Sizes sizes;
  std::size_t extent = 0;
};

/// nullopt where both sides agree, or no extent can make them.
std::optional<Restored> restored(const Prober& prober, const Comparison& comparison, std::size_t changed,
                                 const Sizes& sizes);

/// A formula of the extent and others (left) that has to be a number (right) at a node that fails for other sizes of
/// the extent than the working one: the other extents in it can make up for this one.
std::optional<Comparison> joint_number(Prober& prober, NodeId node, std::size_t extent, const Sizes& working);

/// The open extents that a dim depends on.
std::vector<std::size_t> extents_of(const Prober& prober, Dim dim);

/// The extents, elements and numbers that a node reads, each once.
std::vector<Dim> extents_read(const Prober& prober, NodeId node);

/// The open extents that a node's operands depend on.
std::vector<std::size_t> extents_at(const Prober& prober, NodeId node);

}  // namespace tensorlint::contract
