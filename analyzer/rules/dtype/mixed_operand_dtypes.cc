#include "analyzer/rules/casts.h"

namespace tensorlint::rules {
namespace {

class MixedOperandDtypes : public Rule {
 public:
  MixedOperandDtypes()
      : Rule({"TL-D103", "mixed-operand-dtypes", "dtype", findings::Severity::kError,
              "operands that need one dtype have different ones"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kMixedDtypes ? Specificity::kGeneric : Specificity::kNone;
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    FindingBuilder finding = report_violation(violation, out);
    if (const auto fix = cast_to_float(violation)) {
      propose_cast(finding, violation, *fix);
    } else {
      finding.fix("cast one of the operands, so that both have one dtype");
    }
  }
};

const RegisterRule<MixedOperandDtypes> kRegisterMixedOperandDtypes;

}  // namespace
}  // namespace tensorlint::rules
