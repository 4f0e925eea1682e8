#include <fmt/format.h>

#include <algorithm>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class UnusedParameter : public Rule {
 public:
  UnusedParameter()
      : Rule({"TL-L307", "unused-parameter", "loss", findings::Severity::kWarning,
              "a parameter that no output depends on, and that is never trained"},
             {passes::Pass::kGradientReach, passes::Pass::kLiveness}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const structure::Liveness& liveness = view.liveness();
    if (liveness.has_broken_links) return;
    const Model& model = view.model();
    for (const ValueId value : view.gradient_reach().parameters) {
      const auto users = view.analysis().users(value);
      const bool reaches = model.value(value).is_output ||
                           std::ranges::any_of(users, [&](NodeId user) { return liveness.is_live(user); });
      if (reaches) continue;
      FindingBuilder finding =
          out.report_value(value, fmt::format("no output depends on parameter {}: it gets no gradient",
                                              Operand(view.analysis(), value).name()));
      if (!users.empty()) finding.note_at(users.front(), "used here, but no output depends on this node");
      finding.fix("use it or remove it: distributed training waits for its gradient");
    }
  }
};

const RegisterRule<UnusedParameter> kRegisterUnusedParameter;

}  // namespace
}  // namespace tensorlint::rules
