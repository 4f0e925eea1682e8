#include "analyzer/rules/placement/wording.h"

namespace tensorlint {
namespace {

class OperandsOnDifferentDevices : public Rule {
 public:
  OperandsOnDifferentDevices()
      : Rule({"TL-P401", "operands-on-different-devices", "placement", Severity::kError,
              "a node's operands are not all on one device"}) {}

  void check_model(ModelView& view, Reporter& out) const override {
    report_placement_failures(view, out, {PlacementCause::kOperands, PlacementCause::kClaim});
  }
};

const RegisterRule<OperandsOnDifferentDevices> kRegister;

}  // namespace
}  // namespace tensorlint
