#include <fmt/format.h>

#include <cmath>
#include <optional>
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

class RewardsSoFar : public Rule {
 public:
  RewardsSoFar()
      : Rule({"TL-L346", "rewards-so-far", "loss", findings::Severity::kWarning,
              "actions that are weighed by the rewards before them"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kCumSum}, [&](const Expressions& expressions, const NodeCall& call) {
      const Attribute* reverse = call.attribute("reverse");
      if (call.operand(0).present() && (reverse == nullptr || reverse->i == 0))
        check_sum(expressions, call, discounted(expressions, call.operand(0).value()), out);
    });
    if (has_no_loss_output(view.analysis())) return;
    each_node(view, out, {Opcode::kMatMul}, [&](const Expressions& expressions, const NodeCall& call) {
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
        if (sums_the_past(expressions, call, side))
          check_sum(expressions, call, discounted(expressions, call.operand(side).value()), out);
    });
  }

 private:
  struct Discounted {
    ValueId rewards = ValueId::kAbsent;
    ValueId powers = ValueId::kAbsent;  ///< what they are multiplied with, if anything
  };

  /// Rewards, perhaps masked or multiplied with powers of a discount.
  static Discounted discounted(const Expressions& expressions, ValueId value) {
    constexpr int kMaxFactors = 4;
    Discounted found;
    for (int step = 0; step < kMaxFactors; ++step) {
      value = before_scale(expressions, value);
      const NodeId product = expressions.producer(value);
      if (expressions.op(product) != Opcode::kMul) break;
      const ValueId first = expressions.operand(product, 0), second = expressions.operand(product, 1);
      if (is_mask(expressions, second) || is_mask(expressions, first)) {
        value = is_mask(expressions, second) ? first : second;
        continue;
      }
      const bool is_table_first = is_made_of_steps(expressions, first);
      if (found.powers != ValueId::kAbsent || (!is_table_first && !is_made_of_steps(expressions, second))) return {};
      found.powers = is_table_first ? first : second;
      value = is_table_first ? second : first;
    }
    found.rewards = value;
    return found;
  }

  /// A table, or a power of the numbers of the steps.
  static bool is_made_of_steps(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return false;
    value = before_stretch(expressions, value);
    const NodeId node = expressions.producer(value);
    return is_constant(expressions, value) ||
           (expressions.op(node) == Opcode::kPow && expressions.number(expressions.operand(node, 0)));
  }

  /// 1, g, g^2, ... with g below 1.
  static bool falls_as_powers(const Expressions& expressions, ValueId value) {
    constexpr double kRounding = 1e-4;
    if (value == ValueId::kAbsent) return false;
    value = before_stretch(expressions, value);
    const NodeId node = expressions.producer(value);
    if (expressions.op(node) == Opcode::kPow) {
      const auto base = expressions.number(expressions.operand(node, 0));
      const ValueId exponents = expressions.operand(node, 1);
      return base && *base > 0 && *base < 1 && exponents != ValueId::kAbsent &&
             expressions.op_of(before_stretch(expressions, exponents)) == Opcode::kRange;
    }
    const auto numbers = constant_numbers(expressions, value);
    if (!numbers || numbers->size() < 3) return false;
    const double share = (*numbers)[1] / (*numbers)[0];
    if (!(share > 0.3) || !(share < 1)) return false;
    for (std::size_t i = 1; i < numbers->size(); ++i)
      if (!(std::abs((*numbers)[i] / (*numbers)[i - 1] - share) < kRounding)) return false;
    return true;
  }

  /// A product with powers of a discount on one side of the diagonal alone: of those before each step.
  static bool sums_the_past(const Expressions& expressions, const NodeCall& call, std::size_t side) {
    const ValueId table = call.operand(1 - side).value(), rewards = call.operand(side).value();
    if (table == ValueId::kAbsent || rewards == ValueId::kAbsent || call.attribute("transA") != nullptr ||
        call.attribute("transB") != nullptr || expressions.dims(rewards).size() < 2)
      return false;
    const auto dims = expressions.dims(table);
    const DimPool& pool = call.facts().dims();
    const ValueId input = discounted(expressions, rewards).rewards;
    if (dims.size() < 2 || !pool.equal(dims.back(), dims[dims.size() - 2]) || input == ValueId::kAbsent ||
        !is_input(call.analysis(), input) || !is_named_reward(telling_name(call.analysis(), input)))
      return false;
    const auto extent = pool.as_constant(dims.back()).value_or(5);
    MatrixElements elements(expressions);
    const auto before = side_of_diagonal(
        [&](std::int64_t row, std::int64_t column) -> std::optional<bool> {
          const auto element = elements.at(table, row, column);
          return element ? std::optional(*element != 0) : std::nullopt;
        },
        extent);
    // Rewards are rows in front of the table, and columns after it.
    return extent >= 3 && before && *before == (side == 1);
  }

  static void check_sum(const Expressions& expressions, const NodeCall& call, const Discounted& summed, Reporter& out) {
    const ValueId rewards = summed.rewards;
    if (rewards == ValueId::kAbsent || !is_input(call.analysis(), rewards)) return;
    bool is_reward = is_named_reward(telling_name(call.analysis(), rewards));
    const bool has_powers = falls_as_powers(expressions, summed.powers);
    if (!is_reward && !has_powers) return;
    // Centred and scaled on the way to the logarithms of the probabilities.
    std::vector<ValueId> pending{call.result()};
    for (std::size_t i = 0; i < pending.size() && pending.size() < 16; ++i)
      for (const NodeId user : expressions.users(pending[i])) {
        const Opcode opcode = expressions.op(user);
        const ValueId beside = expressions.beside(user, pending[i]);
        if (is_reward && opcode == Opcode::kMul && is_picked_logarithm(expressions, beside)) {
          out.report(call.id(), fmt::format("each action is weighed by the rewards up to it, not by those after it: "
                                            "{} is summed from the first step on",
                                            Operand(call.analysis(), rewards).name()))
              .note_at(user, "the logarithms of the actions' probabilities are weighed here")
              .fix("sum from the last step back: flip, cumsum, flip");
          return;
        }
        // Divided by the powers again: what lies before a step counts the more the longer ago it was.
        is_reward =
            is_reward || (has_powers && opcode == Opcode::kDiv && expressions.operand(user, 0) == pending[i] &&
                          are_computed_alike(expressions, before_stretch(expressions, expressions.operand(user, 1)),
                                             before_stretch(expressions, summed.powers)));
        const bool goes_on =
            ops::repeats_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kNeg ||
            ((opcode == Opcode::kSub || opcode == Opcode::kDiv) && expressions.operand(user, 0) == pending[i]) ||
            (opcode == Opcode::kMul && (with_number(expressions, user) || is_mask(expressions, beside)));
        if (goes_on) pending.push_back(expressions.result(user));
      }
  }

  static bool is_named_reward(std::string_view name) {
    for (const std::string_view known : {"rew", "rews", "reward", "rewards"})
      if (name == known) return true;
    return false;
  }

  static bool is_picked_logarithm(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return false;
    NodeId node = expressions.producer(before_stretch(expressions, value));
    if (expressions.op(node) == Opcode::kNeg)
      node = expressions.producer(before_stretch(expressions, expressions.operand(node, 0)));
    if (expressions.op(node) != Opcode::kGatherElements) return false;
    const auto softmax = expressions.normalised(before_stretch(expressions, expressions.operand(node, 0)));
    return softmax && softmax->logarithm;
  }
};

const RegisterRule<RewardsSoFar> kRegisterRewardsSoFar;

}  // namespace
}  // namespace tensorlint::rules
