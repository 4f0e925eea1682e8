#include <fmt/format.h>

#include "analyzer/rules/casts.h"

namespace tensorlint::rules {
namespace {

class IntegerTargetInRegressionLoss : public Rule {
 public:
  IntegerTargetInRegressionLoss()
      : Rule({"TL-D101", "integer-target-in-regression-loss", "dtype", findings::Severity::kError,
              "a loss that compares element by element gets integers as its target"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return target_cast(violation) || lone_target(violation) ? Specificity::kMostSpecific : Specificity::kNone;
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    if (const auto target = lone_target(violation)) {
      report_violation(
          violation,
          fmt::format("{} takes floating-point values, its target {} is {}", ops::to_text(*violation.loss_kind()),
                      target->name(), target->fact().dtypes.to_text()),
          out)
          .fix(fmt::format("cast {} to float32", target->name()), findings::Applicability::kUnsafe,
               insert_cast(violation.model(), violation.at.node, target->value(), DType::kFloat32));
      return;
    }
    const CastFix fix = *target_cast(violation);
    FindingBuilder finding = report_violation(
        violation,
        fmt::format("{} compares {} values with the {} target {}", ops::to_text(*violation.loss_kind()),
                    to_text(fix.to), fix.operand.fact().dtypes.to_text(), fix.operand.name()),
        out);
    propose_cast(finding, violation, fix);
  }

 private:
  /// The integer target of the loss, where the failing node takes nothing else: its logarithm or exponential.
  static std::optional<Operand> lone_target(const ViolationCase& violation) {
    if (violation.kind() != ops::ConstraintKind::kTypeConstraint || violation.loss == nullptr ||
        !ops::is_regression(violation.loss->kind) || violation.call().operand_count() != 1)
      return std::nullopt;
    const Operand operand = violation.call().operand(0);
    const bool is_integer = operand.present() && operand.fact().kind == ValueKind::kTensor &&
                            operand.fact().dtypes.proves(DTypeSet::integers() | DType::kBool);
    if (!is_integer || violation.loss->target_source == ValueId::kAbsent) return std::nullopt;
    const auto source = [&](ValueId value) {
      return dataflow::origin_of(violation.analysis, value, Aspect::kDtype).value;
    };
    return source(operand.value()) == source(violation.loss->target_source) ? std::optional(operand) : std::nullopt;
  }

  /// The integer that meets a float in a regression loss, unless it is known to be the prediction.
  static std::optional<CastFix> target_cast(const ViolationCase& violation) {
    const bool types = violation.kind() == ops::ConstraintKind::kMixedDtypes ||
                       violation.kind() == ops::ConstraintKind::kTypeConstraint;
    const auto loss = types ? violation.loss_kind() : std::nullopt;
    if (!loss || !ops::is_regression(*loss)) return std::nullopt;
    const auto fix = cast_to_float(violation);
    if (!fix || (violation.loss != nullptr && violation.loss->prediction == fix->operand.value())) return std::nullopt;
    return fix;
  }
};

const RegisterRule<IntegerTargetInRegressionLoss> kRegister;

}  // namespace
}  // namespace tensorlint::rules
