#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_way.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class LastStepIsPadding : public Rule {
 public:
  LastStepIsPadding()
      : Rule({"TL-L380", "last-step-is-padding", "loss", findings::Severity::kWarning,
              "the last step of sequences of different lengths, which is padding for everything except the longest"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (!has_node(out, {Opcode::kGather, Opcode::kSlice})) return;
    each_node(view, out, {Opcode::kCompare}, [&](const Expressions& expressions, const NodeCall& call) {
      const auto mask = step_mask(expressions, call.id());
      if (!mask || !mask->is_strict) return;
      if (const auto axis = step_axis(expressions, call.result(), mask->steps))
        check_mask(expressions, {call.result(), *axis, false}, mask->lengths, out);
    });
    each_node(view, out, {Opcode::kRecurrence}, [&](const Expressions& expressions, const NodeCall& call) {
      const Attribute* layout = call.attribute("layout");
      const ValueId lengths = call.operand(4).value();
      if (lengths == ValueId::kAbsent || (layout != nullptr && layout->i != 0)) return;
      const ValueId given = before_moves(expressions, lengths);
      if (is_input(call.analysis(), given)) check_states(expressions, {call.result(), 0, false}, call.id(), given, out);
    });
  }

 private:
  static constexpr std::size_t kMaxValues = 16;

  struct Along {
    ValueId value;
    std::size_t axis;
    bool is_inverted;  ///< true where there is padding
  };

  /// Of the mask, the axis along which the steps are counted.
  static std::optional<std::size_t> step_axis(const Expressions& expressions, ValueId mask, ValueId steps) {
    const auto own = expressions.dims(steps), all = expressions.dims(mask);
    const DimPool& pool = expressions.analysis().facts().dims();
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (pool.is_constant(own[i], 1)) continue;
      if (found || own.size() > all.size()) return std::nullopt;
      found = i + all.size() - own.size();
    }
    return found;
  }

  /// Forward to where it makes padding of states 0.
  static void check_mask(const Expressions& expressions, const Along& mask, ValueId lengths, Reporter& out) {
    const losses::AxisWay way(expressions);
    std::vector<Along> pending{mask};
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i) {
      const Along at = pending[i];
      for (const NodeId user : expressions.users(at.value)) {
        const Opcode opcode = expressions.op(user);
        const ValueId result = expressions.result(user);
        if (result == ValueId::kAbsent) continue;
        const std::size_t operand = expressions.operand(user, 0) == at.value ? 0 : 1;
        const auto step = way.follow(user, operand, at.axis);
        if (step.fate != losses::AxisFate::kKept) continue;
        if (ops::repeats_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kNot) {
          pending.push_back({result, step.axis, at.is_inverted != (opcode == Opcode::kNot)});
          continue;
        }
        const bool is_chosen = opcode == Opcode::kWhere && operand == 0 &&
                               expressions.is_number(expressions.operand(user, at.is_inverted ? 1 : 2), 0);
        if (is_chosen || (opcode == Opcode::kMul && !at.is_inverted))
          check_states(expressions, {result, step.axis, false}, user, lengths, out);
      }
    }
  }

  /// Forward from states of which padding is 0 to where their last step is taken.
  static void check_states(const Expressions& expressions, const Along& states, NodeId zeroed, ValueId lengths,
                           Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const losses::AxisWay way(expressions);
    // A number of each step may be a value, which is 0 after the end of an episode.
    if (expressions.dims(states.value).size() < 3) return;
    std::vector<Along> pending{states};
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i) {
      const Along at = pending[i];
      for (const NodeId user : expressions.users(at.value)) {
        const Opcode opcode = expressions.op(user);
        const ValueId result = expressions.result(user);
        if (result == ValueId::kAbsent || expressions.operand(user, 0) != at.value) continue;
        if (takes_last(expressions, user, at.axis) && is_read_by_layer(expressions, result)) {
          out.report(user,
                     fmt::format("the last step of {} is padding for each sequence that is not the longest: what is "
                                 "read there is 0",
                                 Operand(analysis, at.value).name()))
              .note_at(zeroed, fmt::format("the steps from {} on are 0 here", Operand(analysis, lengths).name()))
              .fix("take the last step of each sequence: gather at lengths - 1");
          return;
        }
        const auto step = way.follow(user, 0, at.axis);
        if (step.fate == losses::AxisFate::kKept &&
            (ops::repeats_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kDropout))
          pending.push_back({result, step.axis, false});
      }
    }
  }

  /// x[:, -1], x[:, -1:] or the same with the number of the last step.
  static bool takes_last(const Expressions& expressions, NodeId node, std::size_t axis) {
    const Opcode opcode = expressions.op(node);
    const dataflow::Analysis& analysis = expressions.analysis();
    const auto dims = expressions.dims(expressions.operand(node, 0));
    if ((opcode != Opcode::kGather && opcode != Opcode::kSlice) || axis >= dims.size()) return false;
    const auto first = expressions.number(expressions.operand(node, 1));
    const auto extent = analysis.facts().dims().as_constant(dims[axis]);
    if (!first || (*first != -1 && (!extent || *first != static_cast<double>(*extent - 1)))) return false;
    double along = 0;
    if (opcode == Opcode::kGather) {
      const Attribute* given = analysis.attribute(node, "axis");
      along = given == nullptr ? 0 : static_cast<double>(given->i);
    } else {
      const auto given = expressions.number(expressions.operand(node, 3));
      const auto step = expressions.operand(node, 4);
      if (!given || (step != ValueId::kAbsent && !expressions.is_number(step, 1))) return false;
      along = *given;
    }
    return (along < 0 ? along + static_cast<double>(dims.size()) : along) == static_cast<double>(axis);
  }
};

const RegisterRule<LastStepIsPadding> kRegisterLastStepIsPadding;

}  // namespace
}  // namespace tensorlint::rules
