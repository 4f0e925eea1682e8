#include "analyzer/rules/casts.h"

namespace tensorlint::rules {
namespace {

class MixedOperandDtypes : public Rule {
 public:
  MixedOperandDtypes()
      : Rule({"TL-D103", "mixed-operand-dtypes", "dtype", findings::Severity::kError,
              "operands that need one dtype have different ones"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ops::ConstraintKind::kMixedDtypes ? kGeneric : 0;
  }

  void report(const FailureCase& failure, Reporter& out) const override {
    FindingBuilder finding = word(failure, failure.message(), out);
    if (const auto fix = cast_to_float(failure)) {
      propose_cast(finding, failure, *fix);
    } else {
      finding.fix("cast one of the operands, so that both have one dtype");
    }
  }
};

const RegisterRule<MixedOperandDtypes> kRegister;

}  // namespace
}  // namespace tensorlint::rules
