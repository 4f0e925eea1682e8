#include <fmt/format.h>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class TemperatureBeforeNorm : public Rule {
 public:
  TemperatureBeforeNorm()
      : Rule({"TL-L375", "temperature-before-norm", "loss", findings::Severity::kWarning,
              "vectors that are scaled and then divided by their norms"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
      if (!call.is(Opcode::kDiv) || !call.operand(0).present()) return;
      const NodeId scaling = expressions.producer(before_stretch(expressions, call.operand(0).value()));
      if (!is_temperature(expressions, scaling) || !is_of_unit_length(expressions, call.result())) return;
      out.report(scaling, "the scale has no effect: the vectors are divided by their norms afterwards")
          .note_at(call.id(), "the vectors have the norm 1 from here on")
          .fix("divide the products of the vectors by the temperature, after the norm");
    });
  }

 private:
  /// A number that makes vectors longer, as a temperature does, or one that is learned. Shorter ones are a unit.
  static bool is_temperature(const Expressions& expressions, NodeId node) {
    const Opcode opcode = expressions.op(node);
    if (opcode != Opcode::kMul && opcode != Opcode::kDiv) return false;
    if (const auto scaled = with_number(expressions, node))
      return opcode == Opcode::kMul ? scaled->number > 1
                                    : !scaled->is_first && scaled->number > 0 && scaled->number < 1;
    return is_exponential_of_number(expressions, expressions.operand(node, 1)) ||
           (opcode == Opcode::kMul && is_exponential_of_number(expressions, expressions.operand(node, 0)));
  }

  /// A learned scale as CLIP has it.
  static bool is_exponential_of_number(const Expressions& expressions, ValueId value) {
    const NodeId node = expressions.producer(before_stretch(expressions, value));
    return expressions.op(node) == Opcode::kExp && expressions.number(expressions.operand(node, 0));
  }
};

const RegisterRule<TemperatureBeforeNorm> kRegisterTemperatureBeforeNorm;

}  // namespace
}  // namespace tensorlint::rules
