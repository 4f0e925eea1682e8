#include "analyzer/rules/rule.h"

namespace tensorlint {
namespace {

class DeclaredTypeContradicted : public Rule {
 public:
  DeclaredTypeContradicted() : Rule({"TL-G617", "declared-type-contradicted", "graph", Severity::kError, "a declared type or shape that contradicts what the nodes compute"}) {}

  int claim(const FailureCase& failure) const override { return failure.kind() == ConstraintKind::kDeclaredType ? kGeneric : 0; }
};

const RegisterRule<DeclaredTypeContradicted> kRegister;

}  // namespace
}  // namespace tensorlint
