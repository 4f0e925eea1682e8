#include "analyzer/rules/structure_faults.h"

namespace tensorlint {
namespace {

class DuplicateDefinition : public Rule {
 public:
  DuplicateDefinition() : Rule({"TL-G608", "duplicate-definition", "graph", Severity::kError, "a name, function or opset that is defined twice"}) {}

  void check_model(ModelView& view, Reporter& out) const override {
    report_faults(view, out, [](const StructureFault& fault) { return fault.kind == StructureFault::Kind::kDuplicateDefinition || fault.kind == StructureFault::Kind::kDuplicateFunction || fault.kind == StructureFault::Kind::kDuplicateOpsetImport; });
  }
};

const RegisterRule<DuplicateDefinition> kRegister;

}  // namespace
}  // namespace tensorlint
