#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph/model.h"
#include "ir/ops/opcode.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::losses {

using dataflow::Analysis;
using ops::Opcode;

/// The logarithm of a probability: of `argument`, of 1 - `argument`, or of sigmoid(`logit`).
struct LogTerm {
  ValueId argument = ValueId::kAbsent;  ///< kAbsent: the sigmoid has no value of its own
  ValueId logit = ValueId::kAbsent;     ///< kAbsent: not known to be a sigmoid
  bool complement = false;
};

/// Probabilities, or their logarithms, of scores: Softmax and LogSoftmax, or written out with Exp and a sum.
struct Normalised {
  NodeId node = NodeId::kNone;
  ValueId scores = ValueId::kAbsent;
  bool logarithm = false;
  /// The axes that are summed over, counted from the front; none where they are not known.
  std::vector<std::size_t> axes;
};

/// A reduction along axes, or the places of extremes along them.
bool reduces_axes(Opcode opcode);

/// Reads a graph as formulas. Looks at operators and constants only, so that it sees the same formula where facts are
/// missing because a node of it fails. Every question costs a bounded number of steps, and each is charged.
class Expressions {
 public:
  /// Whether what inputs have as a default is a constant: taken for one by rules, while a run may bring something else.
  enum class Defaults : std::uint8_t { kConstant, kReplaceable };
  explicit Expressions(const dataflow::Analysis& analysis, Defaults defaults = Defaults::kConstant);

  const Analysis& analysis() const { return analysis_; }
  /// Of the input's work: what asks many questions charges them, and ends where it is spent.
  void charge(std::uint64_t steps) const { analysis_.meter().charge(steps); }
  bool is_spent() const { return analysis_.meter().is_spent(); }
  /// kOther where attributes are those of a function's call.
  Opcode op(NodeId node) const {
    return node == NodeId::kNone || analysis_.refers_to_call(node) ? Opcode::kOther : ops_[model_.node(node).op];
  }
  /// The node that computes a value; kNone for inputs, initializers and kAbsent.
  NodeId producer(ValueId value) const {
    return value == ValueId::kAbsent ? NodeId::kNone : model_.value(value).producer;
  }
  /// Of the producer.
  Opcode op_of(ValueId value) const { return value == ValueId::kAbsent ? Opcode::kOther : made_by_[value]; }
  /// Null for kNone and for operators without one.
  const ops::OpEntry* entry(NodeId node) const {
    return node == NodeId::kNone ? nullptr : analysis_.entry(model_.node(node));
  }
  /// The body of the function that a node calls; null where it calls none.
  const Graph* called_function(NodeId node) const;
  /// Result 0 is certainly integer or bool.
  bool makes_integers(NodeId node) const;
  /// kAbsent where the node has fewer, and where the meter is spent: what goes back from operand to operand ends there.
  ValueId operand(NodeId node, std::size_t index) const;
  ValueId result(NodeId node) const;  ///< kAbsent of no node
  /// Of a node of two operands the one that is not `value`.
  ValueId beside(NodeId node, ValueId value) const { return operand(node, operand(node, 0) == value ? 1 : 0); }
  /// Empty where the shape is not known, or only assumed.
  std::span<const Dim> dims(ValueId value) const;
  /// Some of the nodes that use a value: enough for what programs make of a loss's parts.
  SpanWalk<NodeId> users(ValueId value) const;

  /// The value behind nodes that copy, cast or stretch it.
  ValueId source(ValueId value) const;
  /// The one number that a constant holds.
  std::optional<double> number(ValueId value) const;
  bool is_number(ValueId value, double expected) const { return number(value) == expected; }
  /// A constant of shape [1], as exporters write numbers of their own; a program's numbers are scalars.
  bool is_constant_of_rank_one(ValueId value) const;

  /// t for 1 - t, t - 1 and -t + 1; kAbsent for anything else.
  ValueId complement(ValueId value) const;
  std::optional<LogTerm> log_term(ValueId value) const;
  /// t for t * log(t), with or without selections for zeros and NaN.
  ValueId times_own_log(ValueId value) const;

  std::optional<Normalised> normalised(ValueId value) const;
  /// The axes that a reduction, softmax or search for an extreme works along, counted from the front; nullopt where
  /// they are not known, or the rank is not.
  std::optional<std::vector<std::size_t>> axes_of(NodeId node) const;

  /// d for d * d or d ** 2; kAbsent for anything else.
  ValueId square_base(ValueId value) const;
  /// What a product is made of: itself, its factors, their factors, ... Signs do not matter.
  std::vector<ValueId> factors(ValueId product) const;

 private:
  void note_makers();
  Opcode classify_function(GraphId function) const;
  const Tensor* constant(ValueId value) const;
  std::optional<double> filled_with(NodeId node) const;
  std::optional<Normalised> written_out(NodeId node) const;
  ValueId summed_exponentials(ValueId value, NodeId& sum) const;

  const dataflow::Analysis& analysis_;
  const Model& model_;
  Defaults defaults_;
  IdVector<OperatorId, Opcode> ops_;
  /// Values and nodes lie apart in memory, and what looks for a formula turns away at most of them.
  IdVector<ValueId, Opcode> made_by_;
};

}  // namespace tensorlint::losses
