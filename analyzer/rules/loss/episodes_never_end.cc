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
              "a target that counts the value of the next state after the end of an episode, too, with a flag that "
              "nothing reads"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const dataflow::Analysis& analysis = view.analysis();
    if (one_float_outputs(analysis).empty()) return;
    ValueId flag = ValueId::kAbsent;
    for (const ValueId input : analysis.inputs(GraphId::kMain))
      if (input != ValueId::kAbsent && is_named_end(view.model().name_of(input)) && analysis.users(input).empty())
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
            discounted->number >= 1 ||
            expressions.op_of(before_stretch(expressions, discounted->value)) != Opcode::kReduceMax ||
            !out.first("target"))
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
  static bool is_named_end(std::string_view name) {
    for (const std::string_view known : {"done", "dones", "terminal", "terminals", "terminated"})
      if (name == known) return true;
    return false;
  }
};

const RegisterRule<EpisodesNeverEnd> kRegisterEpisodesNeverEnd;

}  // namespace
}  // namespace tensorlint::rules
