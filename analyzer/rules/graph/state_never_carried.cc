#include <fmt/format.h>

#include <optional>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class StateNeverCarried : public Rule {
 public:
  StateNeverCarried()
      : Rule({"TL-G641", "state-never-carried", "graph", findings::Severity::kWarning,
              "the steps of an unrolled recurrent cell, each of which begins with the same state"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kConcat},
              [&](const Expressions& expressions, const NodeCall& call) { check_steps(expressions, call, out); });
  }

 private:
  static constexpr std::size_t kFewestSteps = 3;

  /// A step of a recurrent cell: the state that it begins with, and what tells it from other steps.
  struct Step {
    NodeId node = NodeId::kNone;
    ValueId state = ValueId::kAbsent;
    ValueId input = ValueId::kAbsent;  ///< the sequence that its input is a piece of
  };

  static void check_steps(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    if (call.operand_count() < kFewestSteps) return;
    std::optional<Step> first;
    for (const ValueId operand : call.operands()) {
      if (operand == ValueId::kAbsent) return;
      const auto step = step_of(expressions, before_stretch(expressions, operand));
      if (!step || step->state == ValueId::kAbsent) return;
      if (first && (step->state != first->state || step->input != first->input || step->node == first->node)) return;
      if (!first) first = step;
    }
    const dataflow::Analysis& analysis = call.analysis();
    if (!first) return;
    out.report(first->node, fmt::format("each of the {} steps begins with {}: none gets the state of the one before",
                                        call.operand_count(), Operand(analysis, first->state).name()))
        .note_at(call.id(), "the states of the steps are joined here")
        .fix("hand the state of each step to the next one");
  }

  static std::optional<Step> step_of(const Expressions& expressions, ValueId state) {
    if (auto step = gated(expressions, state)) return step;
    return layer(expressions, state);
  }

  /// A recurrent layer of one step; without a state it begins with zeros.
  static std::optional<Step> layer(const Expressions& expressions, ValueId state) {
    const NodeId node = expressions.producer(state);
    if (expressions.op(node) != Opcode::kRecurrence) return std::nullopt;
    const ValueId input = piece_of(expressions, expressions.operand(node, 0));
    const ValueId initial = expressions.operand(node, 5);
    // The weights stand for a state of zeros: they are the same for all steps.
    const ValueId begin =
        initial == ValueId::kAbsent ? expressions.operand(node, 2) : before_stretch(expressions, initial);
    return input == ValueId::kAbsent ? std::nullopt : std::optional(Step{node, begin, input});
  }

  /// z * h + (1 - z) * n, or n + z * (h - n): a GRU; o * tanh(f * c + i * g): an LSTM. Gates are sigmoids.
  static std::optional<Step> gated(const Expressions& expressions, ValueId state) {
    NodeId node = expressions.producer(state);
    if (expressions.op(node) == Opcode::kMul) {  // o * tanh(c)
      const std::size_t gate = expressions.op_of(expressions.operand(node, 0)) == Opcode::kSigmoid ? 0 : 1;
      if (expressions.op_of(expressions.operand(node, gate)) != Opcode::kSigmoid) return std::nullopt;
      const NodeId squashed = expressions.producer(expressions.operand(node, 1 - gate));
      if (expressions.op(squashed) != Opcode::kOther) return std::nullopt;
      node = expressions.producer(expressions.operand(squashed, 0));
    }
    if (expressions.op(node) != Opcode::kAdd) return std::nullopt;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const NodeId product = expressions.producer(expressions.operand(node, side));
      if (expressions.op(product) != Opcode::kMul) continue;
      for (const std::size_t gate : {std::size_t{0}, std::size_t{1}}) {
        const ValueId sigmoid = expressions.operand(product, gate);
        if (expressions.op_of(sigmoid) != Opcode::kSigmoid) continue;
        ValueId before = expressions.operand(product, 1 - gate);
        // n + z * (h - n)
        if (const NodeId difference = expressions.producer(before);
            expressions.op(difference) == Opcode::kSub &&
            expressions.operand(difference, 1) == expressions.operand(node, 1 - side))
          before = expressions.operand(difference, 0);
        if (before == ValueId::kAbsent || !is_given(expressions, before)) continue;
        const ValueId input = input_of(expressions, sigmoid);
        if (input != ValueId::kAbsent) return Step{node, before_stretch(expressions, before), input};
      }
    }
    return std::nullopt;
  }

  /// A state that is there before any step: an input, a weight, zeros.
  static bool is_given(const Expressions& expressions, ValueId value) {
    value = before_stretch(expressions, value);
    const NodeId node = expressions.producer(value);
    return node == NodeId::kNone || expressions.op(node) == Opcode::kFill || expressions.op(node) == Opcode::kConstant;
  }

  /// The sequence of which a piece goes into a gate, through a product with weights.
  static ValueId input_of(const Expressions& expressions, ValueId gate) {
    constexpr std::size_t kMaxValues = 24;
    std::vector<ValueId> pending{gate};
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i) {
      const NodeId node = expressions.producer(pending[i]);
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kMatMul) {
        if (const ValueId input = piece_of(expressions, expressions.operand(node, 0)); input != ValueId::kAbsent)
          return input;
      } else if (opcode == Opcode::kSigmoid || opcode == Opcode::kAdd || opcode == Opcode::kSplit ||
                 opcode == Opcode::kSlice || ops::repeats_elements(opcode)) {
        for (const std::size_t operand : {std::size_t{0}, std::size_t{1}})
          if (const ValueId before = expressions.operand(node, operand); before != ValueId::kAbsent)
            pending.push_back(before);
      }
    }
    return ValueId::kAbsent;
  }

  /// What a value is picked from; kAbsent where it is not a piece of anything.
  static ValueId piece_of(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return value;
    const ValueId piece = before_stretch(expressions, value);
    const NodeId node = expressions.producer(piece);
    const Opcode opcode = expressions.op(node);
    if (opcode != Opcode::kSlice && opcode != Opcode::kSplit && opcode != Opcode::kGather) return ValueId::kAbsent;
    return expressions.operand(node, 0);
  }
};

const RegisterRule<StateNeverCarried> kRegisterStateNeverCarried;

}  // namespace
}  // namespace tensorlint::rules
