#include <fmt/format.h>

#include "analyzer/rules/casts.h"

namespace tensorlint {
namespace {

class IntegerOperandsInLoss : public Rule {
 public:
  IntegerOperandsInLoss()
      : Rule({"TL-D102", "integer-operands-in-loss", "dtype", Severity::kError,
              "a loss gets integers where it needs floating-point predictions or weights"}) {}

  int claim(const FailureCase& failure) const override {
    const bool types =
        failure.kind() == ConstraintKind::kMixedDtypes || failure.kind() == ConstraintKind::kTypeConstraint;
    return types && failure.loss_kind() && integer_operand(failure) ? kForLoss : 0;
  }

  void report(const FailureCase& failure, Reporter& out) const override {
    const Operand operand = *integer_operand(failure);
    FindingBuilder finding =
        word(failure,
             fmt::format("{} gets {} of dtype {}, it needs floating-point operands", to_text(*failure.loss_kind()),
                         operand.name(), operand.fact().dtypes.to_text()),
             out);
    if (const auto fix = cast_to_float(failure)) {
      propose_cast(finding, failure, *fix);
    } else {
      finding.fix(fmt::format("cast {} to float32", operand.name()), Applicability::kUnsafe,
                  insert_cast(failure.model(), failure.at.node, operand.value(), DType::kFloat32));
    }
  }

 private:
  static std::optional<Operand> integer_operand(const FailureCase& failure) {
    for (const Operand& operand : failure.operands())
      if (operand.fact().kind == ValueKind::kTensor &&
          operand.fact().dtypes.proves(DTypeSet::integers() | DType::kBool))
        return operand;
    return std::nullopt;
  }
};

const RegisterRule<IntegerOperandsInLoss> kRegister;

}  // namespace
}  // namespace tensorlint
