#include "analyzer/rules/structure_faults.h"

namespace tensorlint {
namespace {

class BadAttribute : public Rule {
 public:
  BadAttribute() : Rule({"TL-G604", "bad-attribute", "graph", Severity::kError, "an attribute that the operator does not have, needs, or allows"}) {}

  int claim(const FailureCase& failure) const override { return failure.kind() == ConstraintKind::kAttribute ? kGeneric : 0; }

  void check_model(ModelView& view, Reporter& out) const override {
    report_faults(view, out, [](const StructureFault& fault) { return fault.kind == StructureFault::Kind::kMalformedAttribute; });
  }
};

const RegisterRule<BadAttribute> kRegister;

}  // namespace
}  // namespace tensorlint
