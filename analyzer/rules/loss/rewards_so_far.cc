#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "analyzer/rules/rule.h"
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
      const ValueId rewards = call.operand(0).value();
      const Attribute* reverse = call.attribute("reverse");
      if (rewards == ValueId::kAbsent || (reverse != nullptr && reverse->i != 0) ||
          !is_input(call.analysis(), rewards) || !is_named_reward(call.model().name_of(rewards)))
        return;
      // Centred and scaled on the way to the logarithms of the probabilities.
      std::vector<ValueId> pending{call.result()};
      for (std::size_t i = 0; i < pending.size() && pending.size() < 16; ++i)
        for (const NodeId user : expressions.users(pending[i])) {
          const Opcode opcode = expressions.op(user);
          if (opcode == Opcode::kMul && is_picked_logarithm(expressions, expressions.beside(user, pending[i]))) {
            out.report(call.id(), fmt::format("each action is weighed by the rewards up to it, not by those after it: "
                                              "{} is summed from the first step on",
                                              Operand(call.analysis(), rewards).name()))
                .note_at(user, "the logarithms of the actions' probabilities are weighed here")
                .fix("sum from the last step back: flip, cumsum, flip");
            return;
          }
          const bool goes_on =
              ops::repeats_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kNeg ||
              ((opcode == Opcode::kSub || opcode == Opcode::kDiv) && expressions.operand(user, 0) == pending[i]) ||
              (opcode == Opcode::kMul && with_number(expressions, user));
          if (goes_on) pending.push_back(expressions.result(user));
        }
    });
  }

 private:
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
