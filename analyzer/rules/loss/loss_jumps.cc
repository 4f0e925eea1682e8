#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/formula.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using losses::Formula;
using ops::Opcode;

class LossJumps : public Rule {
 public:
  LossJumps()
      : Rule({"TL-L337", "loss-jumps", "loss", findings::Severity::kWarning,
              "a loss of two pieces that do not meet where one ends and the other begins"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (one_float_outputs(view.analysis()).empty()) return;
    each_node(view, out, {Opcode::kWhere},
              [&](const Expressions& expressions, const NodeCall& call) { check_pieces(expressions, call, out); });
  }

 private:
  static void check_pieces(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const NodeId compare = expressions.producer(call.operand(0).value());
    const auto limit = with_number(expressions, compare);
    if (expressions.op(compare) != Opcode::kCompare || !limit || !(std::abs(limit->number) > 1e-3)) return;
    ValueId error = limit->value;
    if (expressions.op_of(error) == Opcode::kAbs) error = expressions.operand(expressions.producer(error), 0);
    if (error == ValueId::kAbsent || expressions.op_of(error) != Opcode::kSub) return;
    const Formula formula(expressions, call.result());
    if (!formula.is_complete()) return;
    const auto parts = formula.parts();
    std::optional<std::size_t> at_error;
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (parts[i].value == error) at_error = i;
    if (!at_error) return;
    expressions.charge(16 * parts.size());
    // Where only the error counts, other numbers for all else change nothing.
    const auto at = [&](double number) {
      const Formula::Assignment given[] = {{*at_error, number}};
      const double one = formula.evaluate(given, 0), other = formula.evaluate(given, 1);
      return std::abs(one - other) <= 1e-9 * (1 + std::abs(one)) ? one : std::nan("");
    };
    const double c = limit->number, below = at(c * (1 - 1e-7)), above = at(c * (1 + 1e-7));
    // A piece that is the same everywhere leaves errors out, as of outliers.
    const bool varies = std::abs(at(0.7 * c) - at(0.4 * c)) > 1e-6 && std::abs(at(2 * c) - at(3 * c)) > 1e-6;
    if (!varies || !(std::abs(above - below) > 1e-3 * std::max(std::abs(above), std::abs(below)))) return;
    out.report(call.id(), fmt::format("the loss jumps from {:.4g} to {:.4g} where {} passes {:.4g}", below, above,
                                      Operand(analysis, error).name(), c))
        .note_at(compare, "the pieces are chosen here")
        .fix("let the pieces meet: with a limit d, 0.5 * e^2 up to it and d * (|e| - 0.5 * d) beyond");
  }
};

const RegisterRule<LossJumps> kRegisterLossJumps;

}  // namespace
}  // namespace tensorlint::rules
