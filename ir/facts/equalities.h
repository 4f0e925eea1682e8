#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ir/facts/dim.h"

namespace tensorlint {

/// The equality of two expressions as (symbol, what it equals). Fresh symbols are solved for before named ones and
/// young ones before old ones. nullopt where the two are known to be equal, where no symbol can be had alone, and where
/// a named symbol would become a number: exporters give one name to extents that are not equal.
std::optional<std::pair<Dim, Dim>> solve(DimPool& pool, Dim a, Dim b);

/// Equalities of extents that hold wherever a run gets through a scope.
class Equalities {
 public:
  bool empty() const { return known_.empty(); }
  /// True where this was news. Ignored past kMaxEqualities.
  bool learn(DimPool& pool, Dim a, Dim b);
  /// The dim in terms of symbols that nothing is known to equal; the dim itself where that would pass a cap.
  Dim apply(DimPool& pool, Dim dim) const;

 private:
  std::vector<std::pair<Dim, Dim>> known_;  // no symbol on the left stands in anything on the right
};

/// Each is looked at for each symbol of an operand.
inline constexpr std::size_t kMaxEqualities = 64;

}  // namespace tensorlint
