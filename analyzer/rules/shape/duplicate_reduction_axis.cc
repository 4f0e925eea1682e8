#include "analyzer/rules/rule.h"

namespace tensorlint {
namespace {

class DuplicateReductionAxis : public Rule {
 public:
  DuplicateReductionAxis()
      : Rule({"TL-S202", "duplicate-reduction-axis", "shape", Severity::kError,
              "a reduction over the same axis twice"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ConstraintKind::kDuplicateAxis && failure.has(OpTrait::kReduction) ? kForOperator : 0;
  }
};

const RegisterRule<DuplicateReductionAxis> kRegister;

}  // namespace
}  // namespace tensorlint
