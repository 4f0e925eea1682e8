#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class DuplicateAxis : public Rule {
 public:
  DuplicateAxis()
      : Rule({"TL-S209", "duplicate-axis", "shape", findings::Severity::kError,
              "the same axis given twice where each may occur once"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kDuplicateAxis ? Specificity::kGeneric : Specificity::kNone;
  }
};

const RegisterRule<DuplicateAxis> kRegisterDuplicateAxis;

}  // namespace
}  // namespace tensorlint::rules
