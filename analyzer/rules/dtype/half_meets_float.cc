#include <fmt/format.h>

#include "analyzer/rules/casts.h"

namespace tensorlint::rules {
namespace {

/// What mixed precision leaves behind where one side of a model was converted and the other was not.
class HalfMeetsFloat : public Rule {
 public:
  HalfMeetsFloat()
      : Rule({"TL-D107", "half-meets-float", "dtype", findings::Severity::kError,
              "operands of half and of full precision where one dtype is needed"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return half_of(violation) ? Specificity::kForOperator : Specificity::kNone;
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    const CastFix fix = *half_of(violation);
    report_violation(violation, out)
        .fix(fmt::format("cast {} to {}", fix.operand.name(), to_text(fix.to)), findings::Applicability::kUnsafe,
             insert_cast(violation.analysis, violation.at.node, fix.operand.value(), fix.to));
  }

 private:
  static std::optional<DType> float_of(const Operand& operand) {
    if (!operand.present() || operand.fact().kind != ValueKind::kTensor) return std::nullopt;
    const auto dtype = operand.fact().dtypes.single();
    return dtype && DTypeSet::floats().contains(*dtype) ? dtype : std::nullopt;
  }

  static bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

  /// The half operand among the concerned ones, and the wider dtype of another one; all of them have to be floats.
  static std::optional<CastFix> half_of(const ViolationCase& violation) {
    if (violation.kind() != ops::ConstraintKind::kMixedDtypes || !violation.has_node()) return std::nullopt;
    std::optional<Operand> half;
    std::optional<DType> wide;
    for (const Operand& operand : violation.operands()) {
      const auto dtype = float_of(operand);
      if (!dtype) return std::nullopt;
      if (is_half(*dtype)) half = operand;
      if (*dtype == DType::kFloat32 || *dtype == DType::kFloat64) wide = dtype;
    }
    if (!half || !wide) return std::nullopt;
    return CastFix{*half, *wide};
  }
};

const RegisterRule<HalfMeetsFloat> kRegisterHalfMeetsFloat;

}  // namespace
}  // namespace tensorlint::rules
