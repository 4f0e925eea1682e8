#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "passes/losses/axis_way.h"
#include "passes/losses/expressions.h"

namespace tensorlint::losses {

/// An axis of an input, of an initializer, or of a value whose own axes nobody follows.
struct AxisSource {
  ValueId value = ValueId::kAbsent;
  std::uint32_t axis = 0;
  friend auto operator<=>(const AxisSource&, const AxisSource&) = default;
};

/// Where the axes of values come from: through products, transpositions, reshapes that keep an axis whole, gathers,
/// concatenations, broadcasting and reductions. Computed only of what is asked for, and of what that is computed from.
/// What is not followed is a source of its own: two axes without a common source may still be the same.
/// Each question charges what it looks at, known or not: who asks for all axes, or all pairs of them, need not. Where
/// the meter is spent the answer is no.
class AxisOrigins {
 public:
  explicit AxisOrigins(const Expressions& expressions)
      : expressions_(expressions),
        analysis_(expressions.analysis()),
        way_(expressions),
        memory_(expressions.analysis().meter()) {}

  using Sources = std::vector<AxisSource>;  ///< sorted; empty: a stretched axis or one of extent 1
  /// One entry per axis; none for a value without a known rank.
  std::span<const Sources> of(ValueId value);

  /// The axes have one extent and count the same things: they come from one axis, or both from the first axis of an
  /// input of the model.
  bool are_same(ValueId a, std::size_t axis_of_a, ValueId b, std::size_t axis_of_b);
  /// It comes from the first axis of an input of the model that is not a weight.
  bool is_batch(ValueId value, std::size_t axis);
  /// Some source is one of both axes.
  bool have_common(const Sources& a, const Sources& b) const;

 private:
  /// Of the meter: to find a value in a map of many, and to compare or look up one source.
  static constexpr std::uint64_t kStepsOfLookup = 8, kStepsOfSource = 4;
  using Axes = std::vector<Sources>;
  std::span<const Sources> known(ValueId value);
  bool has_batch(const Sources& sources) const;
  void merge(Sources& into, const Sources& from) const;
  Axes compute(ValueId value);
  Axes own(ValueId value) const;
  Axes broadcast(NodeId node, std::span<const Dim> result);
  Axes product(NodeId node, std::span<const Dim> result);
  Axes transposed(NodeId node);
  Axes reshaped(ValueId from, ValueId to);
  Axes reduced(NodeId node, std::size_t rank);
  Axes marked(NodeId node, ValueId value);
  Axes gathered(NodeId node);
  Axes gathered_elements(NodeId node);
  Axes gathered_at_tuples(NodeId node);
  Axes einsum(NodeId node, std::size_t rank);
  Axes split(NodeId node, ValueId part);
  Axes recurrence(NodeId node, ValueId value) const;
  Axes stretched(ValueId from, std::span<const Dim> result);
  Axes like(NodeId node, ValueId value);
  std::span<const Dim> dims_of(ValueId value) const;
  bool is_data(ValueId input) const;
  bool is_data_input(ValueId input) const;
  std::int64_t integer(NodeId node, std::string_view attribute, std::int64_t fallback) const;

  const Expressions& expressions_;
  const Analysis& analysis_;
  AxisWay way_;
  std::map<ValueId, Axes> known_;
  mutable std::map<ValueId, bool> is_data_;
  std::size_t bytes_ = 0;  // of known_
  KeptMemory memory_;
};

/// Both, for who keeps them.
struct LossAxes {
  explicit LossAxes(const Analysis& analysis) : expressions(analysis), origins(expressions) {}
  LossAxes(const LossAxes&) = delete;
  LossAxes& operator=(const LossAxes&) = delete;

  Expressions expressions;
  AxisOrigins origins;
};

}  // namespace tensorlint::losses
