#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class InvalidDomain : public Rule {
 public:
  InvalidDomain()
      : Rule({"TL-V504", "invalid-domain", "value", findings::Severity::kError,
              "a value for which the operator is not defined"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ops::ConstraintKind::kDomain ? kGeneric : 0;
  }
};

const RegisterRule<InvalidDomain> kRegister;

}  // namespace
}  // namespace tensorlint::rules
