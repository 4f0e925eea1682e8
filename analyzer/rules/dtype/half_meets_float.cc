#include <fmt/format.h>

#include <cmath>
#include <optional>

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
  static bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

  /// What to cast: the half operand among the concerned ones to the wider dtype of another one, or a constant that was
  /// left in full precision to half. All concerned operands have to be floats.
  static std::optional<CastFix> half_of(const ViolationCase& violation) {
    if (violation.kind() != ops::ConstraintKind::kMixedDtypes || !violation.has_node()) return std::nullopt;
    std::optional<Operand> half, full;
    std::optional<DType> narrow, wide;
    for (const Operand& operand : violation.operands()) {
      const auto dtype = float_of(operand);
      if (!dtype) return std::nullopt;
      if (is_half(*dtype)) {
        half = operand;
        narrow = dtype;
      }
      if (*dtype == DType::kFloat32 || *dtype == DType::kFloat64) {
        full = operand;
        wide = dtype;
      }
    }
    if (!half || !wide) return std::nullopt;
    if (is_given_constant(violation.analysis, full->value()) && !is_given_constant(violation.analysis, half->value()) &&
        fits(full->fact(), *narrow) && is_alone(violation.call(), *full, *wide))
      return CastFix{*full, *narrow};
    return CastFix{*half, *wide};
  }

  static bool is_given_constant(const dataflow::Analysis& analysis, ValueId value) {
    const Value& known = analysis.model().value(value);
    return known.initializer != nullptr ||
           (known.producer != NodeId::kNone && NodeCall(analysis, known.producer).is(ops::Opcode::kConstant));
  }

  /// No element becomes infinite, and a single number does not become 0.
  static bool fits(const Fact& fact, DType narrow) {
    if (narrow != DType::kFloat16) return true;
    constexpr double kLargest = 65504, kSmallest = 0x1p-24;
    const auto [lo, hi, nan] = fact.range;
    const bool vanishes = lo == hi && lo != 0 && std::abs(lo) < kSmallest;
    return lo >= -kLargest && hi <= kLargest && !vanishes;
  }

  /// Of two wide operands one that is cast leaves the other one as it is.
  static bool is_alone(const NodeCall& call, const Operand& full, DType wide) {
    for (const ValueId operand : call.operands())
      if (operand != full.value() && float_of(Operand(call.analysis(), operand)) == wide) return false;
    return true;
  }
};

const RegisterRule<HalfMeetsFloat> kRegisterHalfMeetsFloat;

}  // namespace
}  // namespace tensorlint::rules
