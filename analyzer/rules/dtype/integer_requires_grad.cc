#include <fmt/format.h>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class IntegerRequiresGrad : public Rule {
 public:
  IntegerRequiresGrad()
      : Rule({"TL-D112", "integer-requires-grad", "dtype", findings::Severity::kError,
              "a parameter that is to be trained and holds integers"},
             {passes::Pass::kGradientReach}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    for (const ValueId value : view.gradient_reach().parameters) {
      const Operand parameter(view.analysis(), value);
      if (!parameter.fact().dtypes.proves(DTypeSet::integers() | DType::kBool)) continue;
      out.report_value(value, fmt::format("parameter {} is {}: only floating-point numbers have gradients",
                                          parameter.name(), parameter.fact().dtypes.to_text()))
          .fix("make it a floating-point tensor, or do not train it");
    }
  }
};

const RegisterRule<IntegerRequiresGrad> kRegisterIntegerRequiresGrad;

}  // namespace
}  // namespace tensorlint::rules
