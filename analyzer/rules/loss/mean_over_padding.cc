#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class MeanOverPadding : public Rule {
 public:
  MeanOverPadding()
      : Rule({"TL-L336", "mean-over-padding", "loss", findings::Severity::kWarning,
              "a mean over steps that a padding mask has made 0: they count in its divisor"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kReduceMean},
              [&](const Expressions& expressions, const NodeCall& call) { check_mean(expressions, call, out); });
  }

 private:
  /// What is 1 for the steps of a sequence and 0 for what fills it up.
  struct Padding {
    ValueId lengths = ValueId::kAbsent;  ///< or the tokens, or labels, of which one number stands for none
    ValueId mask = ValueId::kAbsent;     ///< of bool
  };

  static void check_mean(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const NodeId product = expressions.producer(before_stretch(expressions, call.operand(0).value()));
    const Opcode opcode = expressions.op(product);
    std::optional<Padding> padding;
    ValueId factor = ValueId::kAbsent;
    if (opcode == Opcode::kMul) {
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
        if (const auto found = padding_of(expressions, expressions.operand(product, side)); found && !padding) {
          padding = found;
          factor = expressions.operand(product, side);
        }
    } else if (opcode == Opcode::kWhere && expressions.is_number(expressions.operand(product, 2), 0)) {
      padding = padding_of(expressions, expressions.operand(product, 0));
      factor = expressions.operand(product, 0);
    }
    if (!padding || !reduces_steps(expressions, call.id(), factor) ||
        is_scaled_back(expressions, call.result(), *padding))
      return;
    const dataflow::Analysis& analysis = call.analysis();
    out.report(call.id(), fmt::format("the mean counts the steps that {} has made 0: the longer the padding, the "
                                      "smaller it is",
                                      Operand(analysis, factor).name()))
        .note_at(expressions.producer(padding->mask),
                 fmt::format("{} says which steps count", Operand(analysis, padding->lengths).name()))
        .fix("divide the sum by the number of steps that count");
  }

  static std::optional<Padding> padding_of(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return std::nullopt;
    const ValueId mask = before_stretch(expressions, value);
    const NodeId node = expressions.producer(mask);
    if (const auto steps = step_mask(expressions, node)) return Padding{steps->lengths, mask};
    const NodeId equal =
        expressions.op(node) == Opcode::kNot ? expressions.producer(expressions.operand(node, 0)) : NodeId::kNone;
    const auto compared = with_number(expressions, equal);
    if (expressions.op(equal) != Opcode::kEqual || !compared) return std::nullopt;
    const ValueId tokens = before_stretch(expressions, compared->value);
    const bool is_padded = is_input(expressions.analysis(), tokens) &&
                           expressions.analysis().fact(tokens).dtypes.proves(DTypeSet::integers()) &&
                           (compared->number < 0 || is_looked_up(expressions, tokens));
    return is_padded ? std::optional(Padding{tokens, mask}) : std::nullopt;
  }

  /// They are rows of a table of floats: words, of which one stands for none.
  static bool is_looked_up(const Expressions& expressions, ValueId tokens) {
    for (const NodeId user : expressions.users(tokens))
      if (expressions.op(user) == Opcode::kGather && expressions.operand(user, 1) == tokens &&
          expressions.analysis().fact(expressions.operand(user, 0)).dtypes.proves(DTypeSet::floats()))
        return true;
    return false;
  }

  /// Along an axis along which the mask is not stretched, and not the batch alone.
  static bool reduces_steps(const Expressions& expressions, NodeId mean, ValueId mask) {
    const auto axes = expressions.axes_of(mean);
    const auto all = expressions.dims(expressions.operand(mean, 0)), own = expressions.dims(mask);
    const DimPool& pool = expressions.analysis().facts().dims();
    if (!axes || own.empty() || own.size() > all.size()) return false;
    return std::ranges::any_of(*axes, [&](std::size_t axis) {
      const std::size_t ahead = all.size() - own.size();
      return axis >= ahead && axis >= 1 && !pool.is_constant(own[axis - ahead], 1);
    });
  }

  /// Something of the mask or of the lengths meets the mean later: it is made one of the steps that count.
  static bool is_scaled_back(const Expressions& expressions, ValueId mean, const Padding& padding) {
    constexpr std::size_t kMaxValues = 16;
    std::vector<ValueId> pending{mean};
    bool found = false;
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues && !found; ++i)
      for (const NodeId user : expressions.users(pending[i])) {
        const Opcode opcode = expressions.op(user);
        const bool scales = opcode == Opcode::kMul || opcode == Opcode::kDiv;
        if (scales) {
          const ValueId other = expressions.beside(user, pending[i]);
          if (other == ValueId::kAbsent) return true;
          if (other == padding.lengths) return true;
          walk_back(expressions, other, [&](ValueId value, NodeId node) {
            found |= value == padding.mask;
            for (const ValueId operand : expressions.analysis().operands(node)) found |= operand == padding.lengths;
            return !found;
          });
        }
        const ValueId result = expressions.result(user);
        if (result != ValueId::kAbsent && (scales || is_reduction_or_elementwise(expressions, user)))
          pending.push_back(result);
      }
    return found;
  }
};

const RegisterRule<MeanOverPadding> kRegister;

}  // namespace
}  // namespace tensorlint::rules
