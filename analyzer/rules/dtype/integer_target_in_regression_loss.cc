#include <fmt/format.h>

#include "analyzer/rules/casts.h"

namespace tensorlint::rules {
namespace {

class IntegerTargetInRegressionLoss : public Rule {
 public:
  IntegerTargetInRegressionLoss()
      : Rule({"TL-D101", "integer-target-in-regression-loss", "dtype", findings::Severity::kError,
              "a loss that compares element by element gets integers as its target"}) {}

  int claim(const FailureCase& failure) const override {
    return target_cast(failure) || lone_target(failure) ? kForLoss + 1 : 0;
  }

  void report(const FailureCase& failure, Reporter& out) const override {
    if (const auto target = lone_target(failure)) {
      word(failure,
           fmt::format("{} takes floating-point values, its target {} is {}", ops::to_text(*failure.loss_kind()),
                       target->name(), target->fact().dtypes.to_text()),
           out)
          .fix(fmt::format("cast {} to float32", target->name()), findings::Applicability::kUnsafe,
               insert_cast(failure.model(), failure.at.node, target->value(), DType::kFloat32));
      return;
    }
    const CastFix fix = *target_cast(failure);
    FindingBuilder finding =
        word(failure,
             fmt::format("{} compares {} values with the {} target {}", ops::to_text(*failure.loss_kind()),
                         to_text(fix.to), fix.operand.fact().dtypes.to_text(), fix.operand.name()),
             out);
    propose_cast(finding, failure, fix);
  }

 private:
  /// The integer target of the loss, where the failing node takes nothing else: its logarithm or exponential.
  static std::optional<Operand> lone_target(const FailureCase& failure) {
    if (failure.kind() != ops::ConstraintKind::kTypeConstraint || failure.loss == nullptr ||
        !ops::is_regression(failure.loss->kind) || failure.call().operand_count() != 1)
      return std::nullopt;
    const Operand operand = failure.call().operand(0);
    const bool is_integer = operand.present() && operand.fact().kind == ValueKind::kTensor &&
                            operand.fact().dtypes.proves(DTypeSet::integers() | DType::kBool);
    if (!is_integer || failure.loss->target_source == ValueId::kAbsent) return std::nullopt;
    const auto source = [&](ValueId value) {
      return dataflow::origin_of(failure.analysis, value, Aspect::kDtype).value;
    };
    return source(operand.value()) == source(failure.loss->target_source) ? std::optional(operand) : std::nullopt;
  }

  /// The integer that meets a float in a regression loss, unless it is known to be the prediction.
  static std::optional<CastFix> target_cast(const FailureCase& failure) {
    const bool types =
        failure.kind() == ops::ConstraintKind::kMixedDtypes || failure.kind() == ops::ConstraintKind::kTypeConstraint;
    const auto loss = types ? failure.loss_kind() : std::nullopt;
    if (!loss || !ops::is_regression(*loss)) return std::nullopt;
    const auto fix = cast_to_float(failure);
    if (!fix || (failure.loss != nullptr && failure.loss->prediction == fix->operand.value())) return std::nullopt;
    return fix;
  }
};

const RegisterRule<IntegerTargetInRegressionLoss> kRegister;

}  // namespace
}  // namespace tensorlint::rules
