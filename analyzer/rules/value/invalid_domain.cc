#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class InvalidDomain : public Rule {
 public:
  InvalidDomain()
      : Rule({"TL-V504", "invalid-domain", "value", findings::Severity::kError,
              "a value for which the operator is not defined"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kDomain ? Specificity::kGeneric : Specificity::kNone;
  }
};

const RegisterRule<InvalidDomain> kRegister;

}  // namespace
}  // namespace tensorlint::rules
