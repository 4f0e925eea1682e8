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
    const Node& node = failure.call().node();
    const RegionOp region = region_op(failure.model(), node);
    for (std::size_t r = 0; r < node.result_count; ++r) {
      const ValueId first = body_output(failure.model(), region, 0, r),
                    second = body_output(failure.model(), region, 1, r);
      if (!have_other_types(failure.analysis, first, second)) continue;
      note_body_output(finding, failure.analysis, region, 0, first);
      note_body_output(finding, failure.analysis, region, 1, second);
    }
  }
};

const RegisterRule<BranchTypesDiffer> kRegister;

}  // namespace
}  // namespace tensorlint::rules
