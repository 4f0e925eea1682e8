#include "analyzer/rules/graph/body_notes.h"

namespace tensorlint::rules {
namespace {

class BranchTypesDiffer : public Rule {
 public:
  BranchTypesDiffer()
      : Rule({"TL-G609", "branch-types-differ", "graph", findings::Severity::kError,
              "branches of an If whose results cannot be of one type"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kBranchTypes ? Specificity::kGeneric : Specificity::kNone;
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    FindingBuilder finding = report_violation(violation, out);
    const Node& node = violation.call().node();
    const RegionOp region = region_op(violation.model(), node);
    for (std::size_t r = 0; r < node.result_count; ++r) {
      const ValueId first = body_output(violation.model(), region, 0, r),
                    second = body_output(violation.model(), region, 1, r);
      if (!have_other_types(violation.analysis, first, second)) continue;
      note_body_output(finding, violation.analysis, region, 0, first);
      note_body_output(finding, violation.analysis, region, 1, second);
    }
  }
};

const RegisterRule<BranchTypesDiffer> kRegisterBranchTypesDiffer;

}  // namespace
}  // namespace tensorlint::rules
