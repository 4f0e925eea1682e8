#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class LossShapeMismatch : public Rule {
 public:
  LossShapeMismatch()
      : Rule({"TL-L301", "loss-shape-mismatch", "loss", findings::Severity::kError,
              "prediction and target of a loss whose shapes do not fit"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ops::ConstraintKind::kShapes && failure.loss_kind() ? kForLoss : 0;
  }
};

const RegisterRule<LossShapeMismatch> kRegister;

}  // namespace
}  // namespace tensorlint::rules
