#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/id_vector.h"
#include "passes/losses/expressions.h"

namespace tensorlint::losses {

/// What gradients of a value come to, going back over all operands; without metadata, weights are known by their use:
/// an initializer that a product, a convolution or a lookup takes.
struct GradientWay {
  bool reaches_weight = false;
  bool reaches_input = false;  ///< a floating input of the graph, or something that is not followed
  /// The nodes that let no gradient through, with weights before them: where floats become something else, not what is
  /// computed of that. In the order of the graph, each once, at most 8.
  std::vector<NodeId> stops;
};

/// The ways of one model's gradients.
class GradientWays {
 public:
  explicit GradientWays(const Analysis& analysis);

  GradientWay of(ValueId value) { return follow(value, false); }
  /// The same where `value` is the loss itself: inputs of the main graph are data, and its weights are initializers.
  GradientWay of_loss(ValueId value) { return follow(value, true); }
  /// The first node that lets no gradient through and has weights before it, where `value` is computed from `input` by
  /// way of such nodes alone; kNone where a gradient comes through, or not everything is followed.
  NodeId bypassed(ValueId value, ValueId input);
  /// The values that gradients of `from` come to; nullopt where not everything is followed.
  std::optional<std::set<ValueId>> reached(const std::vector<ValueId>& from);
  const Expressions& expressions() const { return expressions_; }

 private:
  GradientWay follow(ValueId value, bool inputs_are_data);
  /// Of a value that no gradient passes: weights are among what it is computed from.
  bool has_weights_before(ValueId value);
  /// Of a node that lets no gradient through, the node before it where the gradients' way ends.
  NodeId cut_before(NodeId node);
  bool comes_from(ValueId value, ValueId input) const;

  Expressions expressions_;
  IdVector<ValueId, std::uint32_t> seen_;  // the last walk that came there
  std::uint32_t walks_ = 0;
  IdVector<ValueId, bool> behind_weights_;  // made on first use
};

}  // namespace tensorlint::losses
