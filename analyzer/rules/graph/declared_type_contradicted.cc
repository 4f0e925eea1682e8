#include "analyzer/rules/rule.h"

namespace tensorlint {
namespace {

class DeclaredTypeContradicted : public Rule {
 public:
  DeclaredTypeContradicted() : Rule({"TL-G617", "declared-type-contradicted", "graph", Severity::kError, "a declared type or shape that contradicts what the nodes compute"}) {}

  int claim(const FailureCase& failure) const override { return failure.kind() == ConstraintKind::kDeclaredType || is_shape(failure) ? kGeneric : 0; }

  void report(const FailureCase& failure, Reporter& out) const override {
    word(failure, failure.message(), out, is_shape(failure) ? Severity::kWarning : info().severity);
  }

 private:
  // ONNX Runtime refuses another dtype; of another shape it warns, and computes what the nodes say.
  static bool is_shape(const FailureCase& failure) { return failure.kind() == ConstraintKind::kDeclaredShape; }
};

const RegisterRule<DeclaredTypeContradicted> kRegister;

}  // namespace
}  // namespace tensorlint
