#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "passes/losses/expressions.h"

namespace tensorlint::losses {

/// What a node does with one axis of one of its operands.
enum class AxisFate : std::uint8_t {
  kKept,      ///< it is an axis of result 0
  kSummed,    ///< added up, or reduced in another way
  kSelected,  ///< some of its elements are chosen by indices
  kUnknown,
};

struct AxisStep {
  AxisFate fate = AxisFate::kUnknown;
  std::size_t axis = 0;  ///< of result 0, where it is kept
};

/// Follows axes from operands to results: the way forward, where AxisOrigins is the way back.
class AxisWay {
 public:
  explicit AxisWay(const Expressions& expressions)
      : expressions_(expressions), analysis_(expressions.analysis()), pool_(analysis_.facts().dims()) {}

  AxisStep follow(NodeId node, std::size_t operand, std::size_t axis) const;
  /// The axes of an operand that the node adds up: of a reduction, a product of matrices, an Einsum.
  std::vector<std::size_t> summed(NodeId node, std::size_t operand) const;
  /// Empty where the shape is not known, or only assumed.
  std::span<const Dim> dims(ValueId value) const { return expressions_.dims(value); }

 private:
  AxisStep through_view(ValueId from, ValueId to, std::size_t axis) const;
  AxisStep through_reduction(NodeId node, std::size_t axis) const;
  AxisStep through_product(NodeId node, std::size_t operand, std::size_t axis) const;
  AxisStep through_einsum(NodeId node, std::size_t operand, std::size_t axis) const;

  const Expressions& expressions_;
  const Analysis& analysis_;
  DimPool& pool_;
};

}  // namespace tensorlint::losses
