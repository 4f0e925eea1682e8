#include "analyzer/rules/loss/prediction.h"

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

  /// Of class probabilities float-class-index says what is wrong.
  void report(const ViolationCase& violation, Reporter& out) const override {
    if (!has_class_probabilities(violation)) report_violation(violation, out);
  }
};

const RegisterRule<LossShapeMismatch> kRegisterLossShapeMismatch;

}  // namespace
}  // namespace tensorlint::rules
