#include <fmt/format.h>

#include "analyzer/rules/placement/wording.h"
#include "base/escape.h"

namespace tensorlint::rules {
namespace {

class DeviceChangesInLoop : public Rule {
 public:
  DeviceChangesInLoop()
      : Rule({"TL-P402", "device-changes-in-loop", "placement", findings::Severity::kError,
              "a value carried by a loop is on another device in a later iteration"},
             {passes::Pass::kPlacement}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    report_placement_violations(view, out, {placement::PlacementCause::kLoop});
    if (view.copies_at_run_time()) return;
    const placement::Placement& placement = view.placement();
    for (const auto& [node, why] : placement.limits()) out.report(findings::Severity::kInfo, node, why);
    if (!placement.violations().empty()) return;
    for (const placement::PlacementChange& change : placement.changes()) {
      if (change.iteration == 0) continue;
      out.report(findings::Severity::kInfo, change.node,
                 fmt::format("carried value {} is on {} at first and on {} {}", change.result, change.device,
                             change.other, iteration_text(change.iteration)))
          .certainty(ops::Certainty::kMay);
    }
  }
};

const RegisterRule<DeviceChangesInLoop> kRegisterDeviceChangesInLoop;

}  // namespace
}  // namespace tensorlint::rules
