#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class TypeConstraintViolated : public Rule {
 public:
  TypeConstraintViolated()
      : Rule({"TL-G605", "type-constraint-violated", "graph", findings::Severity::kError,
              "an operand of a type that the operator does not take"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kTypeConstraint ? Specificity::kGeneric : Specificity::kNone;
  }
};

const RegisterRule<TypeConstraintViolated> kRegisterTypeConstraintViolated;

}  // namespace
}  // namespace tensorlint::rules
