#include <fmt/format.h>

#include <string>

#include "analyzer/findings/escape.h"
#include "analyzer/rules/rule.h"

namespace tensorlint {
namespace {

class UseBeforeDefinition : public Rule {
 public:
  UseBeforeDefinition()
      : Rule({"TL-G607", "use-before-definition", "graph", Severity::kError, "a node that stands above the node that makes its operand"}) {}

  void check_model(ModelView& view, Reporter& out) const override {
    const Model& model = view.model();
    for (const EarlyUse& use : view.analysis().early_uses()) {
      if (use.in_cycle || !out.first(std::to_string(static_cast<std::uint32_t>(use.value)))) continue;  // one node stands too far down
      const NodeId producer = model.value(use.value).producer;
      out.report(use.user, fmt::format("{} is used before it is defined", quoted_for_people(model.name_of(use.value))))
          .note_at(producer, "defined here, further down")
          .fix(fmt::format("move node {} above this one; ONNX wants nodes in the order of their execution", quoted_for_people(model.label(producer))),
               Applicability::kSafe);
    }
  }
};

const RegisterRule<UseBeforeDefinition> kRegister;

}  // namespace
}  // namespace tensorlint
