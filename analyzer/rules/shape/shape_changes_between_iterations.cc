#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class ShapeChangesBetweenIterations : public Rule {
 public:
  ShapeChangesBetweenIterations()
      : Rule({"TL-S219", "shape-changes-between-iterations", "shape", findings::Severity::kError,
              "a state of a Scan, or what a loop stacks, whose shape changes from iteration to iteration"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kIterationShapes ? Specificity::kGeneric : Specificity::kNone;
  }
};

const RegisterRule<ShapeChangesBetweenIterations> kRegisterShapeChangesBetweenIterations;

}  // namespace
}  // namespace tensorlint::rules
