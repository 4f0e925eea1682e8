#include <fmt/format.h>

#include "analyzer/rules/structure_faults.h"

namespace tensorlint::rules {
namespace {

class BrokenExternalData : public Rule {
 public:
  BrokenExternalData()
      : Rule({"TL-G613", "broken-external-data", "graph", findings::Severity::kError,
              "a tensor whose data file is missing, too short, or elsewhere", kFilesOnly},
             {passes::Pass::kExternalData}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    for (const ExternalFault& fault : view.external_data()) {
      FindingBuilder finding = report_fault(out, fault);
      if (fault.short_file.empty()) continue;
      // A download that broke off, or a file of another model: one mistake, however many tensors are past its end.
      finding.cause(fmt::format("short file {}", fault.short_file))
          .note(fmt::format("the file is cut short: it has {} bytes, its tensors need {}", fault.file_size,
                            fault.file_need));
    }
  }
};

const RegisterRule<BrokenExternalData> kRegisterBrokenExternalData;

}  // namespace
}  // namespace tensorlint::rules
