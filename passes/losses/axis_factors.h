#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "passes/losses/axis_origins.h"
#include "passes/losses/axis_way.h"

namespace tensorlint::losses {

/// One of the axes that an axis has been made of.
struct AxisFactor {
  Dim extent;
  bool is_copied = false;  ///< the same elements again and again
  bool is_batch = false;   ///< it comes from the first axis of an input
  AxisOrigins::Sources sources{};
};

/// The axes that an axis has been made of, the outermost first: of what is viewed as one axis, joined along it or
/// repeated along it. An axis that is none of these is one factor, one of a single element has none.
class AxisFactors {
 public:
  AxisFactors(const Expressions& expressions, AxisOrigins& origins)
      : expressions_(expressions), origins_(origins), way_(expressions), memory_(expressions.analysis().meter()) {}

  using Factors = std::vector<AxisFactor>;
  /// By axis; empty for a value without a known shape.
  std::span<const Factors> of(ValueId value);

 private:
  using Axes = std::vector<Factors>;
  Axes compute(ValueId value);
  AxisFactor own(ValueId value, std::size_t axis);
  void regroup(ValueId from, std::span<const Dim> after, Axes& axes);
  void join(NodeId node, std::span<const Dim> after, Axes& axes);
  void repeat(NodeId node, std::span<const Dim> after, Axes& axes);
  void pick(NodeId node, Axes& axes);
  void keep(NodeId node, Axes& axes);

  const Expressions& expressions_;
  AxisOrigins& origins_;
  AxisWay way_;
  std::map<ValueId, Axes> known_;
  std::size_t bytes_ = 0;  // of known_
  KeptMemory memory_;
};

}  // namespace tensorlint::losses
