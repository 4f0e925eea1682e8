#include "analyzer/rules/graph/body_notes.h"

namespace tensorlint::rules {
namespace {

class BranchTypesDiffer : public Rule {
 public:
  BranchTypesDiffer()
      : Rule({"TL-G609", "branch-types-differ", "graph", findings::Severity::kError,
              "branches of an If whose results cannot be of one type"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ops::ConstraintKind::kBranchTypes ? kGeneric : 0;
  }

  void report(const FailureCase& failure, Reporter& out) const override {
    FindingBuilder finding = word(failure, failure.message(), out);
    const NodeCall call = failure.call();
    for (std::size_t i = 0; i < call.node().result_count; ++i) {
      const ValueId from_then = body_output(call, "then_branch", i), from_else = body_output(call, "else_branch", i);
      if (!have_other_types(failure.analysis, from_then, from_else)) continue;
      note_body_output(finding, failure.analysis, "then_branch", from_then);
      note_body_output(finding, failure.analysis, "else_branch", from_else);
    }
  }
};

const RegisterRule<BranchTypesDiffer> kRegister;

}  // namespace
}  // namespace tensorlint::rules
