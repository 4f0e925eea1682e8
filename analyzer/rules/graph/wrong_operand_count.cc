#include "analyzer/rules/graph/moved_attributes.h"

namespace tensorlint::rules {
namespace {

class WrongOperandCount : public Rule {
 public:
  WrongOperandCount()
      : Rule({"TL-G603", "wrong-operand-count", "graph", findings::Severity::kError,
              "too many or too few operands or results"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kOperandCount ? Specificity::kGeneric : Specificity::kNone;
  }

  /// What is missing may be there as an attribute, as older opsets have it: that is another rule's finding.
  void report(const ViolationCase& violation, Reporter& out) const override {
    if (violation.has_node() && !moved_attributes(violation.call()).empty()) return;
    report_violation(violation, out);
  }
};

const RegisterRule<WrongOperandCount> kRegisterWrongOperandCount;

}  // namespace
}  // namespace tensorlint::rules
