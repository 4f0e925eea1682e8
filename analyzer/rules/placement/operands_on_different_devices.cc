#include "analyzer/rules/placement/wording.h"

namespace tensorlint::rules {
namespace {

class OperandsOnDifferentDevices : public Rule {
 public:
  OperandsOnDifferentDevices()
      : Rule({"TL-P401", "operands-on-different-devices", "placement", findings::Severity::kError,
              "a node's operands are not all on one device"},
             {passes::Pass::kPlacement}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    report_placement_violations(view, out, {placement::PlacementCause::kOperands, placement::PlacementCause::kClaim});
  }
};

const RegisterRule<OperandsOnDifferentDevices> kRegisterOperandsOnDifferentDevices;

}  // namespace
}  // namespace tensorlint::rules
