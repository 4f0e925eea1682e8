#include "analyzer/rules/placement/wording.h"
#include "base/escape.h"

namespace tensorlint::rules {
namespace {

class InvalidDeviceConfiguration : public Rule {
 public:
  InvalidDeviceConfiguration()
      : Rule({"TL-P405", "invalid-device-configuration", "placement", findings::Severity::kWarning,
              "a device, tag or device configuration that cannot be used", kFilesOnly},
             {passes::Pass::kPlacement}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    for (const placement::PlacementProblem& problem : view.placement().problems()) {
      const std::string message = escape_for_display(problem.message, 1000);
      if (problem.node != NodeId::kNone) {
        out.report(problem.node, message);
      } else if (problem.value != ValueId::kAbsent) {
        out.report_value(problem.value, message);
      } else {
        out.report_graph(GraphId::kMain, message);
      }
    }
  }
};

const RegisterRule<InvalidDeviceConfiguration> kRegisterInvalidDeviceConfiguration;

}  // namespace
}  // namespace tensorlint::rules
