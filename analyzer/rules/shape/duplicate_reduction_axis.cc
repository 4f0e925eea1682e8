#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class DuplicateReductionAxis : public Rule {
 public:
  DuplicateReductionAxis()
      : Rule({"TL-S202", "duplicate-reduction-axis", "shape", findings::Severity::kError,
              "a reduction over the same axis twice"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kDuplicateAxis && violation.has(ops::OpTrait::kReduction)
               ? Specificity::kForOperator
               : Specificity::kNone;
  }
};

const RegisterRule<DuplicateReductionAxis> kRegisterDuplicateReductionAxis;

}  // namespace
}  // namespace tensorlint::rules
