#include "analyzer/rules/structure_faults.h"

namespace tensorlint::rules {
namespace {

class MalformedTensor : public Rule {
 public:
  MalformedTensor()
      : Rule({"TL-G619", "malformed-tensor", "graph", findings::Severity::kError,
              "a constant whose data does not fit its shape and dtype", kFilesOnly}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    report_faults(view, out,
                  [](const StructureFault& fault) { return fault.kind == StructureFault::Kind::kMalformedTensor; });
  }
};

const RegisterRule<MalformedTensor> kRegisterMalformedTensor;

}  // namespace
}  // namespace tensorlint::rules
