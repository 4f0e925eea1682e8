#include "analyzer/rules/structure_faults.h"

namespace tensorlint::rules {
namespace {

class UnnamedValue : public Rule {
 public:
  UnnamedValue()
      : Rule({"TL-G621", "unnamed-value", "graph", findings::Severity::kError,
              "an input, output, initializer or function without a name", kFilesOnly}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    report_faults(view, out,
                  [](const StructureFault& fault) { return fault.kind == StructureFault::Kind::kEmptyName; });
  }
};

const RegisterRule<UnnamedValue> kRegisterUnnamedValue;

}  // namespace
}  // namespace tensorlint::rules
