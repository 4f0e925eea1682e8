#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/score_values.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class MultipliedMask : public Rule {
 public:
  MultipliedMask()
      : Rule({"TL-L311", "multiplied-mask", "loss", findings::Severity::kWarning,
              "a mask that multiplies what an extreme or a softmax compares, where 0 is not the least"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
      const Opcode opcode = opcode_of(call.entry());
      if (opcode == Opcode::kReduceMin || opcode == Opcode::kReduceMax || opcode == Opcode::kSoftmax ||
          opcode == Opcode::kLogSoftmax || opcode == Opcode::kReduceLogSumExp)
        check_compared(expressions, call, opcode, out);
    });
  }

 private:
  static void check_compared(const Expressions& expressions, const NodeCall& call, Opcode opcode, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const NodeId product = expressions.producer(before_stretch(expressions, call.operand(0).value()));
    if (expressions.op(product) != Opcode::kMul) return;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId mask = expressions.operand(product, side), values = expressions.operand(product, 1 - side);
      if (!is_mask(expressions, mask) || is_mask(expressions, values)) continue;
      const Operand compared(analysis, values);
      if (!compared.present() || compared.taint().has(Aspect::kValue)) return;
      const Range& range = compared.fact().range;
      if (range.lo > range.hi) return;
      const bool least = opcode == Opcode::kReduceMin, greatest = opcode == Opcode::kReduceMax;
      const losses::ScoreValues::Reach reach =
          least || greatest ? losses::ScoreValues(expressions).of(values) : losses::ScoreValues::Reach();
      const bool never_negative = (reach.never_negative && reach.positive) || is_never_negative(expressions, values);
      if (least      ? !never_negative
          : greatest ? range.hi > 0 && !is_never_positive(expressions, values)
                     : range.lo >= 0 || is_masked_again(expressions, call.result()))
        return;
      const std::string what = least      ? fmt::format("the least of {}, which are never negative", compared.name())
                               : greatest ? fmt::format("the greatest of {}, which are never positive", compared.name())
                                          : fmt::format("the exponentials of {}", compared.name());
      out.report(call.id(), fmt::format("a mask multiplies {}: what it hides is {}", compared.name(),
                                        least || greatest ? "0, and that is " + what : "0, whose exponential is 1"))
          .note_at(product, "the mask is multiplied here")
          .fix(least      ? "put a large number where the mask hides, such as masked_fill(mask, inf)"
               : greatest ? "put -inf where the mask hides: masked_fill(mask, -inf)"
                          : "put -inf where the mask hides before the softmax: masked_fill(mask, -inf)");
      return;
    }
  }

  static bool is_never_positive(const Expressions& expressions, ValueId value) {
    const NodeId node = expressions.producer(before_stretch(expressions, value));
    return expressions.op(node) == Opcode::kLogSoftmax ||
           (expressions.op(node) == Opcode::kNeg && is_never_negative(expressions, expressions.operand(node, 0)));
  }

  /// Weights that a mask multiplies once more, or of which a Where chooses.
  static bool is_masked_again(const Expressions& expressions, ValueId value) {
    std::vector<ValueId> pending{value};
    constexpr std::size_t kMaxValues = 16;
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(pending[i])) {
        const Opcode opcode = expressions.op(user);
        if (opcode == Opcode::kWhere) return true;
        if (opcode == Opcode::kMul && is_mask(expressions, expressions.beside(user, pending[i]))) return true;
        if (ops::moves_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kDropout ||
            opcode == Opcode::kExp || opcode == Opcode::kMul)
          pending.push_back(expressions.result(user));
      }
    return false;
  }
};

const RegisterRule<MultipliedMask> kRegisterMultipliedMask;

}  // namespace
}  // namespace tensorlint::rules
