#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class ErrorWithoutNextValue : public Rule {
 public:
  ErrorWithoutNextValue()
      : Rule({"TL-L379", "error-without-next-value", "loss", findings::Severity::kWarning,
              "a temporal difference that discounts the value that it subtracts, and not that of the next state"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (one_float_outputs(view.analysis()).empty()) return;
    each_node(view, out, {Opcode::kSub},
              [&](const Expressions& expressions, const NodeCall& call) { check_difference(expressions, call, out); });
  }

 private:
  /// Of a critic that is asked twice.
  static constexpr int kMaxLayers = 12;

  /// What a product with a discount is of.
  struct Discounted {
    ValueId value = ValueId::kAbsent;
    bool ends = false;  ///< 1 - done is a factor
  };

  /// r + gamma * (1 - done) * v - v.
  static void check_difference(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const std::vector<Summand> parts = summands(expressions, call.result(), Numbers::kApart);
    if (parts.size() != 3) return;
    std::array<std::size_t, 3> order{0, 1, 2};
    do {
      const Summand &reward = parts[order[0]], &next = parts[order[1]], &now = parts[order[2]];
      if (reward.factor != 1 || now.factor != -1 || !is_input(analysis, before_moves(expressions, reward.value)))
        continue;
      const auto discounted = discounted_value(expressions, next);
      if (discounted.value == ValueId::kAbsent) continue;
      const ValueId value = before_stretch(expressions, now.value), later = discounted.value;
      if ((value != later && !are_computed_alike(expressions, value, later, kMaxLayers)) ||
          is_single_step(expressions, value))
        continue;
      // Without the end of an episode the formula is that of other things, too.
      if (!discounted.ends && (!is_reward(analysis, before_moves(expressions, reward.value)) ||
                               is_input(analysis, before_moves(expressions, value))))
        continue;
      out.report(call.id(), fmt::format("{} is both the value of the state and that of the next one: the difference "
                                        "knows nothing of where a step leads",
                                        Operand(analysis, now.value).name()))
          .note_at(expressions.producer(next.value), "discounted here")
          .fix("take the values of the next states: r + gamma * (1 - done) * v[:, 1:] - v[:, :-1]");
      return;
    } while (std::ranges::next_permutation(order).found);
  }

  /// v of gamma * (1 - done) * v, with the factors in any order; gamma is between 0.8 and 1.
  static Discounted discounted_value(const Expressions& expressions, const Summand& summand) {
    constexpr double kLeast = 0.8;
    constexpr std::size_t kMaxFactors = 8;
    double scale = summand.factor;
    Discounted found;
    std::vector<ValueId> pending{summand.value};
    for (std::size_t i = 0; i < pending.size(); ++i) {
      if (pending.size() > kMaxFactors) return {};
      const ValueId factor = before_stretch(expressions, pending[i]);
      const NodeId node = expressions.producer(factor);
      if (const auto scaled = with_number(expressions, node); scaled && expressions.op(node) == Opcode::kMul) {
        scale *= scaled->number;
        pending.push_back(scaled->value);
      } else if (expressions.op(node) == Opcode::kMul) {
        pending.push_back(expressions.operand(node, 0));
        pending.push_back(expressions.operand(node, 1));
      } else if (is_not_ended(expressions, factor) && !found.ends) {
        found.ends = true;
      } else if (found.value == ValueId::kAbsent) {
        found.value = factor;
      } else {
        return {};
      }
    }
    return scale > kLeast && scale < 1 ? found : Discounted{};
  }

  /// The rest of an input, or the negation of one.
  static bool is_not_ended(const Expressions& expressions, ValueId factor) {
    const ValueId rest = rest_of(expressions, factor);
    if (rest != ValueId::kAbsent) return is_input(expressions.analysis(), before_moves(expressions, rest));
    const NodeId node = expressions.producer(factor);
    const ValueId flag = expressions.op(node) == Opcode::kNot ? expressions.operand(node, 0) : ValueId::kAbsent;
    return flag != ValueId::kAbsent && is_input(expressions.analysis(), before_moves(expressions, flag));
  }

  /// Where no next state is known, that of the last step itself is taken.
  static bool is_single_step(const Expressions& expressions, ValueId value) {
    const NodeId node = expressions.producer(value);
    return expressions.op(node) == Opcode::kGather && expressions.number(expressions.operand(node, 1)).has_value();
  }

  static bool is_reward(const dataflow::Analysis& analysis, ValueId input) {
    const std::string_view name = telling_name(analysis, input);
    return has_ending(name, "reward") || has_ending(name, "rewards") || has_ending(name, "rew");
  }
};

const RegisterRule<ErrorWithoutNextValue> kRegisterErrorWithoutNextValue;

}  // namespace
}  // namespace tensorlint::rules
