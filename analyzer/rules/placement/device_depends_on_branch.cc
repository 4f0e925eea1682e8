#include <fmt/format.h>

#include "analyzer/rules/placement/wording.h"

namespace tensorlint::rules {
namespace {

class DeviceDependsOnBranch : public Rule {
 public:
  DeviceDependsOnBranch()
      : Rule({"TL-P403", "device-depends-on-branch", "placement", findings::Severity::kError,
              "which branch runs decides where a value is"},
             {passes::Pass::kPlacement}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    report_placement_violations(view, out, {placement::PlacementCause::kBranch});
    const placement::Placement& placement = view.placement();
    if (view.copies_at_run_time() || !placement.violations().empty()) return;
    for (const placement::PlacementChange& change : placement.changes()) {
      if (change.iteration != 0) continue;
      out.report(findings::Severity::kInfo, change.node,
                 fmt::format("result {} is on {} from the then branch and on {} from the else branch", change.result,
                             change.device, change.other))
          .certainty(ops::Certainty::kMay);
    }
  }
};

const RegisterRule<DeviceDependsOnBranch> kRegisterDeviceDependsOnBranch;

}  // namespace
}  // namespace tensorlint::rules
