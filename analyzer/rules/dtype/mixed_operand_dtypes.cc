#include <fmt/format.h>

#include <optional>

#include "analyzer/rules/casts.h"

namespace tensorlint::rules {
namespace {

class MixedOperandDtypes : public Rule {
 public:
  MixedOperandDtypes()
      : Rule({"TL-D103", "mixed-operand-dtypes", "dtype", findings::Severity::kError,
              "operands that need one dtype have different ones"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kMixedDtypes ? Specificity::kGeneric : Specificity::kNone;
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    FindingBuilder finding = report_violation(violation, out);
    const auto fix = cast_to_float(violation);
    const bool is_state = fix && updates_state(violation.analysis, violation.at.node, fix->operand.value());
    if (violation.analysis.meter().is_partial()) return;  // what is not known any more may decide between fixes
    if (is_state) {
      keep_state(finding, violation, *fix);
    } else if (fix) {
      propose_cast(finding, violation, *fix);
    } else {
      finding.fix("cast one of the operands, so that both have one dtype");
    }
  }

 private:
  /// A state that is cast to float32 would become float32 in the next iteration. Numbers that were integers may become
  /// integers again; of others nobody knows whether their fractions are meant.
  static void keep_state(FindingBuilder& finding, const ViolationCase& violation, const CastFix& fix) {
    const dataflow::Analysis& analysis = violation.analysis;
    const Operand& state = fix.operand;
    std::optional<Operand> other;
    for (const Operand& operand : violation.operands())
      if (operand.value() != state.value() && operand.fact().dtypes == DTypeSet(fix.to)) other = operand;
    const auto dtype = state.fact().dtypes.single();
    if (!other || !dtype) {
      finding.fix(fmt::format("start {} as {} before the loop", state.name(), to_text(fix.to)));
    } else if (is_cast_of_integers(analysis, other->value())) {
      finding.fix(fmt::format("cast {} to {}", other->name(), to_text(*dtype)), findings::Applicability::kUnsafe,
                  insert_cast(analysis, violation.at.node, other->value(), *dtype));
    } else {
      finding.fix(fmt::format("start {} as {} before the loop, or cast {} to {}", state.name(), to_text(fix.to),
                              other->name(), to_text(*dtype)));
    }
  }

  static bool is_cast_of_integers(const dataflow::Analysis& analysis, ValueId value) {
    const NodeId node = analysis.model().value(value).producer;
    if (node == NodeId::kNone || !NodeCall(analysis, node).is(ops::Opcode::kCast)) return false;
    const Operand before = NodeCall(analysis, node).operand(0);
    return before.present() && before.fact().dtypes.proves(DTypeSet::integers() | DType::kBool);
  }
};

const RegisterRule<MixedOperandDtypes> kRegisterMixedOperandDtypes;

}  // namespace
}  // namespace tensorlint::rules
