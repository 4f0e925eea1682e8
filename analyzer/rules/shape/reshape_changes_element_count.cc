#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class ReshapeChangesElementCount : public Rule {
 public:
  ReshapeChangesElementCount()
      : Rule({"TL-S205", "reshape-changes-element-count", "shape", findings::Severity::kError,
              "a Reshape into a shape with another number of elements"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kElementCount ? Specificity::kGeneric : Specificity::kNone;
  }
};

const RegisterRule<ReshapeChangesElementCount> kRegisterReshapeChangesElementCount;

}  // namespace
}  // namespace tensorlint::rules
