#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class AxisOutOfRange : public Rule {
 public:
  AxisOutOfRange()
      : Rule({"TL-S203", "axis-out-of-range", "shape", findings::Severity::kError,
              "an axis outside the rank of its operand"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kAxisRange ? Specificity::kGeneric : Specificity::kNone;
  }
};

const RegisterRule<AxisOutOfRange> kRegisterAxisOutOfRange;

}  // namespace
}  // namespace tensorlint::rules
