#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class ConcatShapeMismatch : public Rule {
 public:
  ConcatShapeMismatch()
      : Rule({"TL-S206", "concat-shape-mismatch", "shape", findings::Severity::kError,
              "concatenated operands that differ in another axis"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kConcatRanks ||
                   violation.kind() == ops::ConstraintKind::kConcatShapes
               ? Specificity::kGeneric
               : Specificity::kNone;
  }
};

const RegisterRule<ConcatShapeMismatch> kRegisterConcatShapeMismatch;

}  // namespace
}  // namespace tensorlint::rules
