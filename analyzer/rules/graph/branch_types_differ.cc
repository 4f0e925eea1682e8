#include "analyzer/rules/rule.h"

namespace tensorlint {
namespace {

class BranchTypesDiffer : public Rule {
 public:
  BranchTypesDiffer()
      : Rule({"TL-G609", "branch-types-differ", "graph", Severity::kError,
              "branches of an If whose results cannot be of one type"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ConstraintKind::kBranchTypes ? kGeneric : 0;
  }
};

const RegisterRule<BranchTypesDiffer> kRegister;

}  // namespace
}  // namespace tensorlint
