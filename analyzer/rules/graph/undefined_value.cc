#include <fmt/format.h>

#include "analyzer/findings/escape.h"
#include "analyzer/rules/rule.h"

namespace tensorlint {
namespace {

class UndefinedValue : public Rule {
 public:
  UndefinedValue() : Rule({"TL-G616", "undefined-value", "graph", Severity::kError, "a name that no input, initializer or node defines"}) {}

  void check_model(ModelView& view, Reporter& out) const override {
    const Model& model = view.model();
    for (std::size_t n = 0; n < model.nodes.size(); ++n)
      for (const ValueId value : model.operands(model.nodes[n]))
        if (is_undefined(model, value) && out.first(fmt::format("{}", static_cast<std::uint32_t>(value))))
          out.report(static_cast<NodeId>(n), fmt::format("nothing defines {}", quoted_for_people(model.name_of(value)))).value(value);
    for (std::size_t g = 0; g < model.graphs.size(); ++g)
      for (const ValueId value : model.graphs[g].outputs)
        if (is_undefined(model, value) && out.first(fmt::format("{}", static_cast<std::uint32_t>(value))))
          out.report_graph(static_cast<GraphId>(g), fmt::format("nothing defines the output {}", quoted_for_people(model.name_of(value)))).value(value);
  }

 private:
  static bool is_undefined(const Model& model, ValueId value) {
    return value != ValueId::kAbsent && model.value(value).origin == ValueOrigin::kUndefined;
  }
};

const RegisterRule<UndefinedValue> kRegister;

}  // namespace
}  // namespace tensorlint
