#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class TypeConstraintViolated : public Rule {
 public:
  TypeConstraintViolated()
      : Rule({"TL-G605", "type-constraint-violated", "graph", findings::Severity::kError,
              "an operand of a type that the operator does not take"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ops::ConstraintKind::kTypeConstraint ? kGeneric : 0;
  }
};

const RegisterRule<TypeConstraintViolated> kRegister;

}  // namespace
}  // namespace tensorlint::rules
