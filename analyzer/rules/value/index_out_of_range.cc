#include "analyzer/rules/rule.h"

namespace tensorlint {
namespace {

class IndexOutOfRange : public Rule {
 public:
  IndexOutOfRange() : Rule({"TL-V502", "index-out-of-range", "value", Severity::kError, "an index outside the axis it indexes"}) {}

  int claim(const FailureCase& failure) const override { return failure.kind() == ConstraintKind::kIndexRange ? kGeneric : 0; }
};

const RegisterRule<IndexOutOfRange> kRegister;

}  // namespace
}  // namespace tensorlint
