#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class AxisOutOfRange : public Rule {
 public:
  AxisOutOfRange()
      : Rule({"TL-S203", "axis-out-of-range", "shape", findings::Severity::kError,
              "an axis outside the rank of its operand"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ops::ConstraintKind::kAxisRange ? kGeneric : 0;
  }
};

const RegisterRule<AxisOutOfRange> kRegister;

}  // namespace
}  // namespace tensorlint::rules
