#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class LossShapeMismatch : public Rule {
 public:
  LossShapeMismatch()
      : Rule({"TL-L301", "loss-shape-mismatch", "loss", findings::Severity::kError,
              "prediction and target of a loss whose shapes do not fit"}) {}

  Specificity match(const ViolationCase& violation) const override {
    const bool is_about_shapes =
        violation.kind() == ops::ConstraintKind::kRank || violation.kind() == ops::ConstraintKind::kShapes;
    return is_about_shapes && violation.loss_kind() ? Specificity::kForLoss : Specificity::kNone;
  }
};

const RegisterRule<LossShapeMismatch> kRegister;

}  // namespace
}  // namespace tensorlint::rules
