#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

/// Of distances, the largest one of the same kind is to be less than the smallest one of another kind; of similarities
/// it is the largest one of another kind that is to be less than the smallest one of the same. Either way it is a
/// largest less a smallest that costs.
class HardestPairsExchanged : public Rule {
 public:
  HardestPairsExchanged()
      : Rule({"TL-L410", "hardest-pairs-exchanged", "loss", findings::Severity::kWarning,
              "a margin between hardest pairs that costs the smallest one less the largest one"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (!has_node(out, {Opcode::kReduceMax}) || !has_node(out, {Opcode::kReduceMin})) return;
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    if (outputs.size() != 1) return;
    each_node(view, out, {Opcode::kSub}, [&](const Expressions& expressions, const NodeCall& call) {
      const auto first = extreme_of(expressions, call.operand(0).value()),
                 second = extreme_of(expressions, call.operand(1).value());
      if (!first || !second || first->is_largest == second->is_largest || !have_one_source(*first, *second)) return;
      const LossWay way = loss_way(expressions, call.result(), outputs[0]);
      const bool smallest_costs = first->is_largest ? way == LossWay::kFalls : way == LossWay::kRises;
      if (!smallest_costs || !is_bounded_below(expressions, call.result())) return;
      const Extreme &largest = first->is_largest ? *first : *second, &smallest = first->is_largest ? *second : *first;
      out.report(call.id(),
                 "the loss falls as the smallest one falls and the largest one grows: pairs of one kind are "
                 "driven apart, and those of different kinds together")
          .note_at(smallest.node, "the smallest one of the pairs that one mask leaves")
          .note_at(largest.node, "the largest one of those that the other mask leaves")
          .fix("exchange the two sides of the difference: relu(largest - smallest + margin)");
    });
  }

 private:
  struct Extreme {
    NodeId node = NodeId::kNone;
    bool is_largest = false;
    std::vector<ValueId> sources{};  ///< what may have been masked
  };

  /// The largest or smallest one along one axis of numbers of which a mask leaves some.
  static std::optional<Extreme> extreme_of(const Expressions& expressions, ValueId value) {
    constexpr std::size_t kMaxSources = 6;
    if (value == ValueId::kAbsent) return std::nullopt;
    const NodeId node = expressions.producer(before_stretch(expressions, before_margin(expressions, value)));
    const Opcode opcode = expressions.op(node);
    const auto axes = expressions.axes_of(node);
    if ((opcode != Opcode::kReduceMax && opcode != Opcode::kReduceMin) || !axes || axes->size() != 1)
      return std::nullopt;
    Extreme found{node, opcode == Opcode::kReduceMax};
    found.sources.push_back(expressions.operand(node, 0));
    for (std::size_t i = 0; i < found.sources.size() && found.sources.size() < kMaxSources; ++i) {
      const NodeId mask = expressions.producer(found.sources[i]);
      const Opcode hides = expressions.op(mask);
      if (hides != Opcode::kWhere && hides != Opcode::kMul && hides != Opcode::kAdd && !ops::keeps_elements(hides))
        continue;
      for (const ValueId operand : expressions.analysis().operands(mask))
        if (operand != ValueId::kAbsent && found.sources.size() < kMaxSources) found.sources.push_back(operand);
    }
    return found.sources.size() > 1 ? std::optional(found) : std::nullopt;
  }

  static bool have_one_source(const Extreme& a, const Extreme& b) {
    return a.sources[0] != b.sources[0] && std::ranges::any_of(a.sources, [&](ValueId source) {
             return std::ranges::find(b.sources, source) != b.sources.end();
           });
  }

  /// By a rectifier or a softplus, perhaps after a margin was added: a loss, and not the spread of the numbers.
  static bool is_bounded_below(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 4;
    for (int step = 0; step < kMaxSteps; ++step) {
      const auto users = expressions.users(value);
      if (users.empty()) return false;
      const Opcode opcode = expressions.op(users[0]);
      if (is_rectifier(expressions, users[0]) || opcode == Opcode::kSoftplus || opcode == Opcode::kLogSigmoid ||
          opcode == Opcode::kExp)
        return true;
      if (!with_number(expressions, users[0]) && opcode != Opcode::kNeg && !ops::keeps_elements(opcode)) return false;
      value = expressions.result(users[0]);
    }
    return false;
  }
};

const RegisterRule<HardestPairsExchanged> kRegisterHardestPairsExchanged;

}  // namespace
}  // namespace tensorlint::rules
