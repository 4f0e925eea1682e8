#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class ConcatShapeMismatch : public Rule {
 public:
  ConcatShapeMismatch()
      : Rule({"TL-S206", "concat-shape-mismatch", "shape", findings::Severity::kError,
              "concatenated operands that differ in another axis"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ops::ConstraintKind::kConcatShapes ? kGeneric : 0;
  }
};

const RegisterRule<ConcatShapeMismatch> kRegister;

}  // namespace
}  // namespace tensorlint::rules
