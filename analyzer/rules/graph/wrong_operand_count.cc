#include "analyzer/rules/graph/moved_attributes.h"

namespace tensorlint::rules {
namespace {

class WrongOperandCount : public Rule {
 public:
  WrongOperandCount()
      : Rule({"TL-G603", "wrong-operand-count", "graph", findings::Severity::kError,
              "more or fewer operands or results than the operator has"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ops::ConstraintKind::kOperandCount ? kGeneric : 0;
  }

  /// What is missing may be there as an attribute, as older opsets have it: that is another rule's finding.
  void report(const FailureCase& failure, Reporter& out) const override {
    if (failure.has_node() && !moved_attributes(failure.call()).empty()) return;
    word(failure, failure.message(), out);
  }
};

const RegisterRule<WrongOperandCount> kRegister;

}  // namespace
}  // namespace tensorlint::rules
