#include <fmt/format.h>

#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/formula.h"
#include "passes/losses/score_values.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using losses::Formula;
using ops::Opcode;

class LossAsProbability : public Rule {
 public:
  LossAsProbability()
      : Rule({"TL-L382", "loss-as-probability", "loss", findings::Severity::kWarning,
              "exp(loss) used as a probability, where exp(-loss) is meant"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (one_float_outputs(view.analysis()).empty()) return;
    each_node(view, out, {Opcode::kExp}, [&](const Expressions& expressions, const NodeCall& call) {
      const ValueId loss = call.operand(0).value();
      if (loss == ValueId::kAbsent || call.operand(0).taint().has(Aspect::kValue)) return;
      const NodeId rest = rest_in(expressions, call.result());
      if (rest == NodeId::kNone || !weighs(expressions, expressions.result(rest), loss) ||
          !is_never_negative_for_labels(expressions, loss))
        return;
      out.report(call.id(),
                 fmt::format("{} is at least 0 and its exponential at least 1, which is not a probability: 1 minus "
                             "that weighs the worst samples without bound",
                             Operand(call.analysis(), loss).name()))
          .note_at(rest, "taken for the rest of a probability here")
          .fix("the probability is exp(-loss)");
    });
  }

 private:
  static constexpr std::size_t kMaxValues = 10;

  /// Where 1 - e or e - 1 is computed of a value.
  static NodeId rest_in(const Expressions& expressions, ValueId value) {
    std::vector<ValueId> same{value};
    for (std::size_t i = 0; i < same.size() && same.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(same[i])) {
        const ValueId result = expressions.result(user);
        if (result == ValueId::kAbsent) continue;
        if (expressions.op(user) == Opcode::kSub && expressions.operand(user, 1) == same[i] &&
            expressions.is_number(expressions.operand(user, 0), 1))
          return user;
        if (ops::keeps_elements(expressions.op(user)) || expressions.op(user) == Opcode::kCast) same.push_back(result);
      }
    return NodeId::kNone;
  }

  /// The value, or a power of it, is multiplied with the loss.
  static bool weighs(const Expressions& expressions, ValueId value, ValueId loss) {
    std::vector<ValueId> pending{value};
    const ValueId from = before_stretch(expressions, loss);
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(pending[i])) {
        const Opcode opcode = expressions.op(user);
        const ValueId result = expressions.result(user);
        if (result == ValueId::kAbsent) continue;
        if (opcode == Opcode::kMul) {
          const ValueId other = expressions.beside(user, pending[i]);
          if (other != ValueId::kAbsent && before_stretch(expressions, other) == from) return true;
        }
        const bool is_power = opcode == Opcode::kPow && expressions.operand(user, 0) == pending[i];
        if (is_power || opcode == Opcode::kMul || ops::keeps_elements(opcode) || opcode == Opcode::kCast)
          pending.push_back(result);
      }
    return false;
  }

  /// By what it is computed from, or as a function of scores of layers and of labels of 0 and 1.
  static bool is_never_negative_for_labels(const Expressions& expressions, ValueId loss) {
    if (!expressions.number(loss) && is_never_negative(expressions, loss)) return true;
    const Formula formula(expressions, loss);
    if (!formula.is_complete()) return false;
    const losses::ScoreValues scores(expressions);
    std::vector<std::size_t> labels, free;
    const auto parts = formula.parts();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kind != Formula::PartKind::kLeaf) continue;
      if (parts[i].value == ValueId::kAbsent) return false;
      const ValueId from = before_stretch(expressions, parts[i].value);
      (scores.layer_of(from) != NodeId::kNone ? free : labels).push_back(i);
    }
    if (free.size() != 1 || labels.size() != 1) return false;
    for (const double label : {0.0, 1.0})
      for (const double score : {-6.0, -2.0, -0.5, 0.0, 0.5, 2.0, 6.0}) {
        const Formula::Assignment given[] = {{labels[0], label}, {free[0], score}};
        if (!(formula.evaluate(given, 0) > 0)) return false;
      }
    return true;
  }
};

const RegisterRule<LossAsProbability> kRegisterLossAsProbability;

}  // namespace
}  // namespace tensorlint::rules
