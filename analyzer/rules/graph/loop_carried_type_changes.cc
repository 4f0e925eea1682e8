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
    // Loop has trip count and condition before the carried operands and the condition before the outputs; Scan of opset
    // 8 the lengths of its sequences before the operands.
    const std::size_t operands_before = call.is("Loop") ? 2 : call.op().opset < 9 ? 1 : 0;
    const std::size_t outputs_before = call.is("Loop") ? 1 : 0;
    for (std::size_t i = 0; i < call.node().result_count; ++i) {
      const Operand first = call.operand(operands_before + i);
      const ValueId next = body_output(call, "body", outputs_before + i);
      if (!first.present() || !have_other_types(failure.analysis, first.value(), next)) continue;
      finding.origin(first, Aspect::kDtype);
      note_body_output(finding, failure.analysis, "body", next);
    }
  }
};

const RegisterRule<LoopCarriedTypeChanges> kRegister;

}  // namespace
}  // namespace tensorlint::rules
