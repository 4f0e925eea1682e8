#include <fmt/format.h>

#include <array>
#include <string_view>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"
#include "base/escape.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class StepAfterLast : public Rule {
 public:
  StepAfterLast()
      : Rule({"TL-V543", "step-after-last", "value", findings::Severity::kWarning,
              "the step of a sequence at its length: the one after its last"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kGather, Opcode::kGatherElements, Opcode::kGatherND},
              [&](const Expressions& expressions, const NodeCall& call) { check_lookup(expressions, call, out); });
  }

 private:
  static void check_lookup(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const Operand data = call.operand(0), index = call.operand(1);
    if (!data.present() || !index.present() || !data.fact().dtypes.proves(DTypeSet::floats())) return;
    // Of a table of weights a row for each length may be meant.
    const ValueId source = before_stretch(expressions, data.value());
    if (analysis.model().value(source).initializer != nullptr || expressions.dims(data.value()).size() < 2) return;
    // Many rows of one table, too; one row of it is a step.
    if (call.is(Opcode::kGather) && !expressions.dims(index.value()).empty()) return;
    const ValueId lengths = length_in(expressions, call, index.value());
    if (lengths == ValueId::kAbsent) return;
    out.report(call.id(), fmt::format("the step of {} at {} is the one after the last: steps count from 0", data.name(),
                                      Operand(analysis, lengths).name()))
        .fix(fmt::format("take the step at {} - 1", escape_for_display(analysis.model().name_of(lengths))));
  }

  /// The input that counts steps, as it is; of indices of several axes the last one.
  static ValueId length_in(const Expressions& expressions, const NodeCall& call, ValueId index) {
    ValueId value = before_stretch(expressions, index);
    if (call.is(Opcode::kGatherND) && expressions.op_of(value) == Opcode::kConcat) {
      const NodeId joined = expressions.producer(value);
      const std::size_t count = NodeCall(call.analysis(), joined).operand_count();
      value = before_stretch(expressions, expressions.operand(joined, count - 1));
    }
    const dataflow::Analysis& analysis = call.analysis();
    if (!is_input(analysis, value) || !analysis.fact(value).dtypes.proves(DTypeSet::integers()))
      return ValueId::kAbsent;
    return is_named_length(telling_name(analysis, value)) || counts_steps(expressions, value) ? value
                                                                                              : ValueId::kAbsent;
  }

  static bool is_named_length(std::string_view name) {
    constexpr std::array<std::string_view, 6> kNames{"length", "lengths", "lens", "seq_len", "seqlen", "num_steps"};
    for (const std::string_view known : kNames)
      if (has_ending(name, known)) return true;
    return false;
  }
};

const RegisterRule<StepAfterLast> kRegisterStepAfterLast;

}  // namespace
}  // namespace tensorlint::rules
