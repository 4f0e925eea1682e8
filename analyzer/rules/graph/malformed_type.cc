#include "analyzer/rules/structure_faults.h"

namespace tensorlint {
namespace {

class MalformedType : public Rule {
 public:
  MalformedType() : Rule({"TL-G620", "malformed-type", "graph", Severity::kError, "a declared type that is none"}) {}

  void check_model(ModelView& view, Reporter& out) const override {
    report_faults(view, out, [](const StructureFault& fault) { return fault.kind == StructureFault::Kind::kMalformedType; });
  }
};

const RegisterRule<MalformedType> kRegister;

}  // namespace
}  // namespace tensorlint
