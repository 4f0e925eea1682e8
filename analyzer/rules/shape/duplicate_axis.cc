#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class DuplicateAxis : public Rule {
 public:
  DuplicateAxis()
      : Rule({"TL-S209", "duplicate-axis", "shape", findings::Severity::kError,
              "the same axis given twice where each may occur once"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ops::ConstraintKind::kDuplicateAxis ? kGeneric : 0;
  }
};

const RegisterRule<DuplicateAxis> kRegister;

}  // namespace
}  // namespace tensorlint::rules
