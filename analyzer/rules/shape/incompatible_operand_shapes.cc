#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class IncompatibleOperandShapes : public Rule {
 public:
  IncompatibleOperandShapes()
      : Rule({"TL-S204", "incompatible-operand-shapes", "shape", findings::Severity::kError,
              "operands whose shapes do not fit each other or the operator"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kRank || violation.kind() == ops::ConstraintKind::kShapes
               ? Specificity::kGeneric
               : Specificity::kNone;
  }
};

const RegisterRule<IncompatibleOperandShapes> kRegisterIncompatibleOperandShapes;

}  // namespace
}  // namespace tensorlint::rules
