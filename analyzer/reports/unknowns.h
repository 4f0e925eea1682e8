#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "passes/dataflow/analysis.h"

namespace tensorlint::reports {

/// Elements of contents that fit on a line; larger contents are not shown.
constexpr std::size_t kShownElements = 8;

/// Names for extents that have neither number nor name, for one report: `?1`, `?2`, ... in the order in which they are
/// met.
class ExtentNames {
 public:
  explicit ExtentNames(FactStore& facts) : facts_(facts) {}
  Dim name(Dim dim);
  /// The fact with its extents, contents and elements named.
  FactId name(FactId fact);
  /// The symbols named so far; `?1` is the first.
  const std::vector<Dim>& symbols() const { return symbols_; }

 private:
  Dim name_symbols(Dim dim);

  FactStore& facts_;
  std::vector<Dim> symbols_;
  std::unordered_map<std::uint32_t, std::size_t> numbers_;  // of symbols, by id; from 1
  std::unordered_map<FactId, FactId> named_;
  std::unordered_map<std::uint32_t, Dim> named_dims_;  // by id
};

/// True where a dim of the value's shape, an element of its contents, or one of what it holds is of that kind.
bool has_dim(const dataflow::Analysis& analysis, ValueId value, const std::function<bool(Dim)>& is_meant);

/// Where something that a value has came from: `has` of it, but of nothing that its producer (or the body of that)
/// reads. `value` itself where that holds for it already.
ValueId first_with(const dataflow::Analysis& analysis, ValueId value, const std::function<bool(ValueId)>& has);

/// Symbol `symbol` is in a dim.
bool is_in(const DimPool& dims, Dim symbol, Dim dim);

}  // namespace tensorlint::reports
