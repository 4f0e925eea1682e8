#include "analyzer/rules/rule.h"

namespace tensorlint {
namespace {

class LoopCarriedTypeChanges : public Rule {
 public:
  LoopCarriedTypeChanges()
      : Rule({"TL-G610", "loop-carried-type-changes", "graph", Severity::kError,
              "a carried value of a Loop or Scan that changes its type"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ConstraintKind::kLoopCarriedType ? kGeneric : 0;
  }
};

const RegisterRule<LoopCarriedTypeChanges> kRegister;

}  // namespace
}  // namespace tensorlint
