#include "analyzer/rules/rule.h"

namespace tensorlint {
namespace {

class UnknownOperator : public Rule {
 public:
  UnknownOperator() : Rule({"TL-G601", "unknown-operator", "graph", Severity::kError, "an operator that its domain does not have"}) {}

  int claim(const FailureCase& failure) const override { return failure.kind() == ConstraintKind::kUnknownOperator ? kGeneric : 0; }

  void report(const FailureCase& failure, Reporter& out) const override {
    // Every node that calls the operator has the same mistake: said once.
    if (out.first(failure.call().op_name())) word(failure, failure.message(), out);
  }
};

const RegisterRule<UnknownOperator> kRegister;

}  // namespace
}  // namespace tensorlint
