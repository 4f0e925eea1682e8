#include <fmt/format.h>

#include "analyzer/rules/casts.h"

namespace tensorlint {
namespace {

class IntegerTargetInRegressionLoss : public Rule {
 public:
  IntegerTargetInRegressionLoss()
      : Rule({"TL-D101", "integer-target-in-regression-loss", "dtype", Severity::kError,
              "a loss that compares element by element gets integers as its target"}) {}

  int claim(const FailureCase& failure) const override { return target_cast(failure) ? kForLoss + 1 : 0; }

  void report(const FailureCase& failure, Reporter& out) const override {
    const CastFix fix = *target_cast(failure);
    FindingBuilder finding =
        word(failure,
             fmt::format("{} compares {} values with the {} target {}", to_text(*failure.loss_kind()), to_text(fix.to),
                         fix.operand.fact().dtypes.to_text(), fix.operand.name()),
             out);
    propose_cast(finding, failure, fix);
  }

 private:
  /// The integer that meets a float in a regression loss, unless it is known to be the prediction.
  static std::optional<CastFix> target_cast(const FailureCase& failure) {
    const bool types =
        failure.kind() == ConstraintKind::kMixedDtypes || failure.kind() == ConstraintKind::kTypeConstraint;
    const auto loss = types ? failure.loss_kind() : std::nullopt;
    if (!loss || !is_regression(*loss)) return std::nullopt;
    const auto fix = cast_to_float(failure);
    if (!fix || (failure.loss != nullptr && failure.loss->prediction == fix->operand.value())) return std::nullopt;
    return fix;
  }
};

const RegisterRule<IntegerTargetInRegressionLoss> kRegister;

}  // namespace
}  // namespace tensorlint
