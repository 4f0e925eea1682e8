#include "analyzer/rules/graph/body_notes.h"

namespace tensorlint::rules {
namespace {

class LoopCarriedTypeChanges : public Rule {
 public:
  LoopCarriedTypeChanges()
      : Rule({"TL-G610", "loop-carried-type-changes", "graph", findings::Severity::kError,
              "a carried value of a Loop or Scan that changes its type"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ops::ConstraintKind::kLoopCarriedType ? kGeneric : 0;
  }

  void report(const FailureCase& failure, Reporter& out) const override {
    FindingBuilder finding = word(failure, failure.message(), out);
    const NodeCall call = failure.call();
    const RegionOp region = region_op(failure.model(), call.node());
    for (std::size_t i = 0; i < region.carried; ++i) {
      const Operand first = call.operand(region.carried_operand(i));
      const ValueId next = body_output(failure.model(), region, 0, i);
      if (!first.present() || !have_other_types(failure.analysis, first.value(), next)) continue;
      finding.origin(first, Aspect::kDtype);
      note_body_output(finding, failure.analysis, region, 0, next);
    }
  }
};

const RegisterRule<LoopCarriedTypeChanges> kRegister;

}  // namespace
}  // namespace tensorlint::rules
