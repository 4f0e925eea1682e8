#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class IncompatibleOperandShapes : public Rule {
 public:
  IncompatibleOperandShapes()
      : Rule({"TL-S204", "incompatible-operand-shapes", "shape", findings::Severity::kError,
              "operands whose shapes do not fit each other or the operator"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ops::ConstraintKind::kShapes ? kGeneric : 0;
  }
};

const RegisterRule<IncompatibleOperandShapes> kRegister;

}  // namespace
}  // namespace tensorlint::rules
