#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class ReshapeChangesElementCount : public Rule {
 public:
  ReshapeChangesElementCount()
      : Rule({"TL-S205", "reshape-changes-element-count", "shape", findings::Severity::kError,
              "a Reshape into a shape with another number of elements"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ops::ConstraintKind::kElementCount ? kGeneric : 0;
  }
};

const RegisterRule<ReshapeChangesElementCount> kRegister;

}  // namespace
}  // namespace tensorlint::rules
