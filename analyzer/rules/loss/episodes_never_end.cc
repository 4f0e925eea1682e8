#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "base/escape.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class EpisodesNeverEnd : public Rule {
 public:
  EpisodesNeverEnd()
      : Rule({"TL-L348", "episodes-never-end", "loss", findings::Severity::kWarning,
              "a target that counts the value of the next state after the end of an episode, too, or only there"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const dataflow::Analysis& analysis = view.analysis();
    if (one_float_outputs(analysis).empty()) return;
    check_kept_at_end(view, out);
    ValueId flag = ValueId::kAbsent;
    for (const ValueId input : analysis.inputs(GraphId::kMain))
      if (input != ValueId::kAbsent && is_named_end(telling_name(analysis, input)) && analysis.users(input).empty())
        flag = input;
    if (flag == ValueId::kAbsent ||
        std::ranges::any_of(analysis.outputs(GraphId::kMain), [&](ValueId output) { return output == flag; }))
      return;
    each_node(view, out, {Opcode::kAdd}, [&](const Expressions& expressions, const NodeCall& call) {
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        const NodeId product = expressions.producer(call.operand(1 - side).value());
        const auto discounted = with_number(expressions, product);
        if (!is_input(analysis, before_stretch(expressions, call.operand(side).value())) ||
            expressions.op(product) != Opcode::kMul || !discounted || discounted->number <= 0.5 ||
            discounted->number >= 1 || !comes_from_layer(expressions, discounted->value) || !out.first("target"))
          continue;
        out.report(call.id(),
                   fmt::format(
                       "the value of the next state is added whether or not the episode has ended: nothing reads {}",
                       Operand(analysis, flag).name()))
            .note_at(product, "discounted here")
            .fix(fmt::format("leave it out at the end: r + gamma * (1 - {}) * value",
                             escape_for_display(view.model().name_of(flag))));
      }
    });
  }

 private:
  /// gamma * value * done, which leaves nothing but what comes after the end.
  static void check_kept_at_end(const ModelView& view, Reporter& out) {
    const dataflow::Analysis& analysis = view.analysis();
    for (const ValueId flag : analysis.inputs(GraphId::kMain)) {
      if (flag == ValueId::kAbsent || !is_named_end(telling_name(analysis, flag))) continue;
      const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
      std::vector<NodeId> products;
      std::vector<ValueId> same{flag};
      for (std::size_t i = 0; i < same.size() && same.size() < kMaxValues; ++i)
        for (const NodeId user : expressions.users(same[i])) {
          const Opcode opcode = expressions.op(user);
          const ValueId result = expressions.result(user);
          if (result == ValueId::kAbsent) continue;
          const bool is_chosen = opcode == Opcode::kWhere && expressions.operand(user, 0) == same[i] &&
                                 is_zero(expressions, expressions.operand(user, 2));
          if (opcode == Opcode::kMul || is_chosen) products.push_back(user);
          if (opcode == Opcode::kCast || ops::moves_elements(opcode)) same.push_back(result);
        }
      for (const NodeId product : products)
        if (is_discounted_value(expressions, product, flag)) {
          out.report(product, fmt::format("the value of the next state counts only where {} is true: after the end of "
                                          "an episode, and nowhere else",
                                          Operand(analysis, flag).name()))
              .fix(
                  fmt::format("leave it out at the end: r + gamma * (1 - {0}) * value; if {0} is 0 at the end, call it "
                              "not_done",
                              escape_for_display(view.model().name_of(flag))));
          return;
        }
    }
  }

  static constexpr std::size_t kMaxValues = 12;

  /// A product of the flag, a number close to 1 and what a layer gives, which is added to an input.
  static bool is_discounted_value(const Expressions& expressions, NodeId product, ValueId flag) {
    const dataflow::Analysis& analysis = expressions.analysis();
    ValueId whole = expressions.result(product);
    bool has_discount = false, has_value = false;
    const auto read = [&](ValueId top) {
      // What is chosen where the flag is true is a product with it.
      if (expressions.op_of(top) == Opcode::kWhere) top = expressions.operand(expressions.producer(top), 1);
      if (top == ValueId::kAbsent) return;
      for (const ValueId factor : expressions.factors(top)) {
        if (const auto number = expressions.number(factor))
          has_discount = has_discount || (*number > 0.8 && *number < 1);
        const ValueId from = before_moves(expressions, factor);
        if (expressions.op_of(from) == Opcode::kMul || from == flag) continue;
        has_value = has_value || comes_from_layer(expressions, from);
      }
    };
    for (int step = 0; step < 3 && whole != ValueId::kAbsent; ++step) {
      ValueId next = ValueId::kAbsent;
      for (const NodeId user : expressions.users(whole)) {
        const Opcode opcode = expressions.op(user);
        if (opcode == Opcode::kAdd) {
          const ValueId reward = expressions.beside(user, whole);
          read(whole);
          if (reward != ValueId::kAbsent &&
              is_input(analysis, before_scale(expressions, before_moves(expressions, reward))))
            return has_discount && has_value;
        }
        if (opcode == Opcode::kMul || ops::keeps_elements(opcode)) next = expressions.result(user);
      }
      whole = next;
    }
    return false;
  }

  /// The number, or a constant that is filled with it.
  static bool is_zero(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return false;
    const Range& range = expressions.analysis().fact(value).range;
    return expressions.is_number(value, 0) || (range.lo == 0 && range.hi == 0 && !range.nan);
  }

  static bool is_named_end(std::string_view name) {
    for (const std::string_view known :
         {"done", "dones", "is_done", "terminal", "terminals", "is_terminal", "terminated"})
      if (name == known) return true;
    return false;
  }
};

const RegisterRule<EpisodesNeverEnd> kRegisterEpisodesNeverEnd;

}  // namespace
}  // namespace tensorlint::rules
