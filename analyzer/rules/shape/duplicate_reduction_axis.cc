#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class DuplicateReductionAxis : public Rule {
 public:
  DuplicateReductionAxis()
      : Rule({"TL-S202", "duplicate-reduction-axis", "shape", findings::Severity::kError,
              "a reduction over the same axis twice"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ops::ConstraintKind::kDuplicateAxis && failure.has(ops::OpTrait::kReduction) ? kForOperator
                                                                                                          : 0;
  }
};

const RegisterRule<DuplicateReductionAxis> kRegister;

}  // namespace
}  // namespace tensorlint::rules
