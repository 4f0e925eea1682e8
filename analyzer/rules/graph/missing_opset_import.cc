#include "analyzer/rules/structure_faults.h"

namespace tensorlint {
namespace {

class MissingOpsetImport : public Rule {
 public:
  MissingOpsetImport() : Rule({"TL-G618", "missing-opset-import", "graph", Severity::kError, "a node of a domain that the model does not import"}) {}

  void check_model(ModelView& view, Reporter& out) const override {
    report_faults(view, out, [](const StructureFault& fault) { return fault.kind == StructureFault::Kind::kMissingOpsetImport; });
  }
};

const RegisterRule<MissingOpsetImport> kRegister;

}  // namespace
}  // namespace tensorlint
