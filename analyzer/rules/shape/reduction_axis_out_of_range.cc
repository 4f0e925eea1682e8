#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class ReductionAxisOutOfRange : public Rule {
 public:
  ReductionAxisOutOfRange()
      : Rule({"TL-S201", "reduction-axis-out-of-range", "shape", findings::Severity::kError,
              "a reduction over an axis that its operand does not have"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kAxisRange && violation.has(ops::OpTrait::kReduction)
               ? Specificity::kForOperator
               : Specificity::kNone;
  }
};

const RegisterRule<ReductionAxisOutOfRange> kRegisterReductionAxisOutOfRange;

}  // namespace
}  // namespace tensorlint::rules
