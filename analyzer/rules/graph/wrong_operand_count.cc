#include "analyzer/rules/rule.h"

namespace tensorlint {
namespace {

class WrongOperandCount : public Rule {
 public:
  WrongOperandCount()
      : Rule({"TL-G603", "wrong-operand-count", "graph", Severity::kError,
              "more or fewer operands or results than the operator has"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ConstraintKind::kOperandCount ? kGeneric : 0;
  }
};

const RegisterRule<WrongOperandCount> kRegister;

}  // namespace
}  // namespace tensorlint
