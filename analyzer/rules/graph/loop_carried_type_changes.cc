#include "analyzer/rules/graph/body_notes.h"

namespace tensorlint::rules {
namespace {

class LoopCarriedTypeChanges : public Rule {
 public:
  LoopCarriedTypeChanges()
      : Rule({"TL-G610", "loop-carried-type-changes", "graph", findings::Severity::kError,
              "a carried value of a Loop or Scan that changes its type"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kLoopCarriedType ? Specificity::kGeneric : Specificity::kNone;
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    FindingBuilder finding = report_violation(violation, out);
    const NodeCall call = violation.call();
    const RegionOp region = region_op(violation.model(), call.node());
    for (std::size_t i = 0; i < region.carried; ++i) {
      const Operand first = call.operand(region.carried_operand(i));
      const ValueId next = body_output(violation.model(), region, 0, i);
      if (!first.present() || !have_other_types(violation.analysis, first.value(), next)) continue;
      finding.origin(first, Aspect::kDtype);
      note_body_output(finding, violation.analysis, region, 0, next);
    }
  }
};

const RegisterRule<LoopCarriedTypeChanges> kRegisterLoopCarriedTypeChanges;

}  // namespace
}  // namespace tensorlint::rules
