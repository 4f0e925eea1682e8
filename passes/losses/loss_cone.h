#pragma once

#include <optional>
#include <span>
#include <vector>

#include "passes/losses/axis_origins.h"
#include "passes/losses/axis_way.h"

namespace tensorlint::losses {

/// The nodes that some numbers are computed from, and what passes ask of values there. Private to this folder.
class LossCone {
 public:
  LossCone(const Expressions& expressions, AxisOrigins& origins, std::span<const ValueId> outputs);

  const std::vector<NodeId>& nodes() const { return nodes_; }  ///< in their order in the model
  bool has(NodeId node) const { return node != NodeId::kNone && inside_[node]; }

  const Expressions& expressions() const { return expressions_; }
  const Analysis& analysis() const { return expressions_.analysis(); }
  const AxisWay& way() const { return way_; }
  AxisOrigins& origins() const { return origins_; }
  DimPool& pool() const { return analysis().facts().dims(); }
  std::span<const Dim> dims(ValueId value) const { return way_.dims(value); }
  SpanWalk<ValueId> operands(NodeId node) const { return analysis().operands(node); }
  /// Which operand of the node the value is first; their number where it is none.
  std::size_t operand_index(NodeId node, ValueId value) const;

  bool is_long(ValueId value, std::size_t axis) const;
  /// The axis is the batch, another one is long, and none of them is the batch again, as of all pairs of it.
  bool is_batch_alone(ValueId value, std::size_t axis) const;
  bool has_batch(ValueId value) const;
  bool is_one_number(ValueId value) const;
  /// Before views that keep the order of the elements, and copies.
  ValueId before_views(ValueId value) const;
  /// One is computed from the other, in a bounded number of nodes.
  bool depends(ValueId value, ValueId on) const;
  /// Less a mean of its own: norms of it are standard deviations.
  bool is_centred(ValueId value) const;
  /// What the value is a norm of, or the sum of the squares or magnitudes of, before roots and bounds; the node that
  /// sums in `node`.
  ValueId norm_of(ValueId value, NodeId& node) const;
  /// An initializer, perhaps behind views.
  bool is_constant(ValueId value) const;
  /// Nothing but signs and scales comes before a sum or mean makes one number of it.
  bool is_averaged_whole(ValueId value) const;
  /// The numbers of a constant, behind views; nullopt where they are many.
  std::optional<std::vector<double>> numbers(ValueId value) const;
  /// An input of the main graph that is not a weight, behind views and casts.
  bool is_input(ValueId value) const;

 private:
  const Expressions& expressions_;
  AxisOrigins& origins_;
  AxisWay way_;
  IdVector<NodeId, bool> inside_;
  std::vector<NodeId> nodes_;
};

}  // namespace tensorlint::losses
