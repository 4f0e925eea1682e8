#include <fmt/format.h>

#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class EntropyLowered : public Rule {
 public:
  EntropyLowered()
      : Rule({"TL-L391", "entropy-lowered", "loss", findings::Severity::kWarning,
              "a policy whose entropy the loss lowers, beside the gradient of that policy"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    if (outputs.size() != 1) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    const std::vector<LossTerm> terms = loss_terms(expressions, outputs[0]).terms;
    for (const LossTerm& entropy : terms) {
      // The sum of p * log(p) is minus the entropy.
      const ValueId scores = entropy.factor < 0 ? scores_of_entropy(expressions, entropy.value) : ValueId::kAbsent;
      if (scores == ValueId::kAbsent) continue;
      for (const LossTerm& gain : terms) {
        if (gain.factor >= 0) continue;
        const NodeId weighed = weighed_choice(expressions, gain.value, scores);
        if (weighed == NodeId::kNone) continue;
        out.report(expressions.producer(entropy.value),
                   fmt::format("the loss rises with the entropy of {}: the policy is drawn to one action",
                               Operand(view.analysis(), scores).name()))
            .note_at(weighed, "the gradient of the policy is taken here")
            .fix("subtract the entropy from the loss: loss - c * entropy");
        return;
      }
    }
  }

 private:
  /// What probabilities, or their logarithms, are normalised from, however often.
  static ValueId scores_of(const Expressions& expressions, ValueId value, bool logarithms) {
    constexpr int kMaxTimes = 3;
    if (value == ValueId::kAbsent) return value;
    value = expressions.source(value);
    const NodeId node = expressions.producer(value);
    bool turned = false;
    if (const Opcode opcode = expressions.op(node);
        opcode == (logarithms ? Opcode::kLog : Opcode::kExp) && !expressions.normalised(value)) {
      const ValueId inner = expressions.operand(node, 0);
      value = logarithms ? before_guard(expressions, inner) : expressions.source(inner);
      turned = true;
    }
    auto softmax = expressions.normalised(value);
    if (!softmax || softmax->logarithm != (logarithms != turned)) return ValueId::kAbsent;
    ValueId scores = softmax->scores;
    for (int time = 0; time < kMaxTimes; ++time) {
      softmax = expressions.normalised(expressions.source(scores));
      if (!softmax || !softmax->logarithm) break;
      scores = softmax->scores;
    }
    return scores;
  }

  /// p * log(p) of one softmax.
  static ValueId scores_of_entropy(const Expressions& expressions, ValueId value) {
    const NodeId node = expressions.producer(value);
    if (expressions.op(node) != Opcode::kMul) return ValueId::kAbsent;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId shares = scores_of(expressions, expressions.operand(node, side), false);
      if (shares != ValueId::kAbsent && shares == scores_of(expressions, expressions.operand(node, 1 - side), true))
        return shares;
    }
    return ValueId::kAbsent;
  }

  /// The product of the logarithm of the probability of what was chosen, or of a ratio that is computed of it, with
  /// numbers that are neither a mask nor the program's own.
  static NodeId weighed_choice(const Expressions& expressions, ValueId value, ValueId scores) {
    NodeId found = NodeId::kNone;
    walk_back(expressions, value, [&](ValueId, NodeId node) {
      const Opcode opcode = expressions.op(node);
      if (found == NodeId::kNone && opcode == Opcode::kMul && !with_number(expressions, node))
        for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
          const ValueId other = expressions.operand(node, 1 - side);
          if (other != ValueId::kAbsent && !is_mask(expressions, other) && !is_constant(expressions, other) &&
              is_choice(expressions, expressions.operand(node, side), scores))
            found = node;
        }
      return found == NodeId::kNone && (opcode == Opcode::kMul || is_reduction_or_elementwise(expressions, node));
    });
    return found;
  }

  static bool is_choice(const Expressions& expressions, ValueId value, ValueId scores) {
    constexpr int kMaxSteps = 10;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kGatherElements)
        return scores_of(expressions, expressions.operand(node, 0), true) == scores;
      const bool is_followed = ops::keeps_elements(opcode) || opcode == Opcode::kSlice || opcode == Opcode::kGather ||
                               opcode == Opcode::kCast || opcode == Opcode::kNeg || opcode == Opcode::kExp ||
                               opcode == Opcode::kSub || opcode == Opcode::kClip;
      if (!is_followed) return false;
      value = expressions.operand(node, 0);
    }
    return false;
  }
};

const RegisterRule<EntropyLowered> kRegisterEntropyLowered;

}  // namespace
}  // namespace tensorlint::rules
