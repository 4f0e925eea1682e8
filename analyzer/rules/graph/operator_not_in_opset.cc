#include "analyzer/rules/rule.h"

namespace tensorlint {
namespace {

class OperatorNotInOpset : public Rule {
 public:
  OperatorNotInOpset() : Rule({"TL-G602", "operator-not-in-opset", "graph", Severity::kError, "an operator that the imported opset does not have"}) {}

  int claim(const FailureCase& failure) const override { return failure.kind() == ConstraintKind::kNotInOpset ? kGeneric : 0; }

  void report(const FailureCase& failure, Reporter& out) const override {
    // Every node that calls the operator has the same mistake: said once.
    if (out.first(failure.call().op_name())) word(failure, failure.message(), out);
  }
};

const RegisterRule<OperatorNotInOpset> kRegister;

}  // namespace
}  // namespace tensorlint
