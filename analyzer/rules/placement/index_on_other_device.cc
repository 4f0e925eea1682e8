#include "analyzer/rules/placement/wording.h"

namespace tensorlint::rules {
namespace {

class IndexOnOtherDevice : public Rule {
 public:
  IndexOnOtherDevice()
      : Rule({"TL-P404", "index-on-other-device", "placement", findings::Severity::kError,
              "a tensor and what indexes it are on different devices"},
             {passes::Pass::kPlacement}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    report_placement_violations(view, out, {placement::PlacementCause::kIndex});
  }
};

const RegisterRule<IndexOnOtherDevice> kRegisterIndexOnOtherDevice;

}  // namespace
}  // namespace tensorlint::rules
