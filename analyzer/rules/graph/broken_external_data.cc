#include "analyzer/rules/structure_faults.h"
#include "ir/readers/onnx/external_data.h"

namespace tensorlint {
namespace {

class BrokenExternalData : public Rule {
 public:
  BrokenExternalData()
      : Rule({"TL-G613", "broken-external-data", "graph", Severity::kError,
              "a tensor whose data file is missing, too short, or elsewhere"}) {}

  void check_model(ModelView& view, Reporter& out) const override {
    for (const StructureFault& fault : check_external_data(view.model())) report_fault(out, fault);
  }
};

const RegisterRule<BrokenExternalData> kRegister;

}  // namespace
}  // namespace tensorlint
