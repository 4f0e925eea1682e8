#include "analyzer/rules/rule.h"

namespace tensorlint {
namespace {

class ClassIndexOutOfRange : public Rule {
 public:
  ClassIndexOutOfRange() : Rule({"TL-V501", "class-index-out-of-range", "value", Severity::kError, "a class index outside the classes of the scores"}) {}

  int claim(const FailureCase& failure) const override { const bool index = failure.kind() == ConstraintKind::kIndexRange && failure.loss_kind() && takes_class_indices(*failure.loss_kind());
    return failure.kind() == ConstraintKind::kClassRange ? kGeneric : index ? kForLoss : 0; }
};

const RegisterRule<ClassIndexOutOfRange> kRegister;

}  // namespace
}  // namespace tensorlint
