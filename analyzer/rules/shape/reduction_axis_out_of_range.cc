#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class ReductionAxisOutOfRange : public Rule {
 public:
  ReductionAxisOutOfRange()
      : Rule({"TL-S201", "reduction-axis-out-of-range", "shape", findings::Severity::kError,
              "a reduction over an axis that its operand does not have"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ops::ConstraintKind::kAxisRange && failure.has(ops::OpTrait::kReduction) ? kForOperator
                                                                                                      : 0;
  }
};

const RegisterRule<ReductionAxisOutOfRange> kRegister;

}  // namespace
}  // namespace tensorlint::rules
