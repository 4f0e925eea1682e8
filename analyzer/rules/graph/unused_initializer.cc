#include <fmt/format.h>

#include <string>
#include <vector>

#include "analyzer/rules/rule.h"
#include "base/escape.h"

namespace tensorlint::rules {
namespace {

class UnusedInitializer : public Rule {
 public:
  UnusedInitializer()
      : Rule({"TL-G611", "unused-initializer", "graph", findings::Severity::kInfo,
              "a constant that no node and no output uses"},
             {passes::Pass::kLiveness}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const structure::Liveness& liveness = view.liveness();
    if (liveness.has_broken_links) return;
    const Model& model = view.model();
    for (const Graph& graph : model.graphs)
      for (const ValueId value : graph.initializers)
        if (!liveness.is_used(value))
          out.report_value(value, fmt::format("initializer {} is used by no node and no output",
                                              quoted_for_people(model.name_of(value))))
              .fix("remove the initializer",
                   removal_is_safe(model, value) ? findings::Applicability::kSafe : findings::Applicability::kUnsafe,
                   removal(model, value));
  }

 private:
  /// The default of an input goes: who gave nothing for the input then has to.
  static bool removal_is_safe(const Model& model, ValueId value) {
    return model.value(value).origin == ValueOrigin::kInitializer;
  }

  static std::vector<GraphEdit> removal(const Model& model, ValueId value) {
    const Value& constant = model.value(value);
    if (constant.initializer == nullptr || constant.origin != ValueOrigin::kInitializer) return {};
    return {RemoveInitializer{value}, DropValueInfo{constant.graph, std::string(model.name_of(value))}};
  }
};

const RegisterRule<UnusedInitializer> kRegisterUnusedInitializer;

}  // namespace
}  // namespace tensorlint::rules
