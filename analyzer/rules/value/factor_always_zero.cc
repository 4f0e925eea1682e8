#include <fmt/format.h>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/parameters.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class FactorAlwaysZero : public Rule {
 public:
  FactorAlwaysZero()
      : Rule({"TL-V515", "factor-always-zero", "value", findings::Severity::kWarning,
              "integers that are all 0 multiply what a model computes"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    losses::Parameters& parameters = out.shared<losses::Parameters>();
    each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
      if (!call.is(Opcode::kMul)) return;
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
        check_factor(expressions, call, call.operand(side), call.operand(1 - side), parameters, out);
    });
  }

 private:
  /// A number of 0 switches a term off on purpose, and so does a table of zeros; integers that are written into a table
  /// one by one are meant to differ.
  static void check_factor(const Expressions& expressions, const NodeCall& call, const Operand& factor,
                           const Operand& other, losses::Parameters& parameters, Reporter& out) {
    if (!factor.present() || !other.present() || factor.taint().has(Aspect::kValue)) return;
    const Range& range = factor.fact().range;
    if (range.lo != 0 || range.hi != 0 || range.nan || !parameters.reach(other.value())) return;
    const ValueId integers = before_stretch(expressions, factor.value());
    const NodeId maker = expressions.producer(integers);
    if (maker == NodeId::kNone || !expressions.makes_integers(maker)) return;
    const NodeCall made(call.analysis(), maker);
    const OpSchema* schema = made.op().schema;
    if (schema == nullptr || schema->input_index("updates") < 0 || !made.operand(1).present() ||
        !is_input(call.analysis(), before_moves(expressions, made.operand(1).value())))
      return;
    out.report(maker, fmt::format("{} are integers and all 0, and so is what they multiply",
                                  Operand(call.analysis(), integers).name()))
        .note_at(call.id(), fmt::format("{} is multiplied by them here", other.name()))
        .fix("make the table in a floating-point dtype, such as with dtype=torch.float32: 0.9 is 0 as an integer");
  }
};

const RegisterRule<FactorAlwaysZero> kRegisterFactorAlwaysZero;

}  // namespace
}  // namespace tensorlint::rules
