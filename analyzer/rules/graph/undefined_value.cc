#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/config/suggestion.h"
#include "analyzer/findings/escape.h"
#include "analyzer/rules/rule.h"

namespace tensorlint {
namespace {

class UndefinedValue : public Rule {
 public:
  UndefinedValue()
      : Rule({"TL-G616", "undefined-value", "graph", Severity::kError,
              "a name that no input, initializer or node defines"}) {}

  void check_model(ModelView& view, Reporter& out) const override {
    const Model& model = view.model();
    int suggestions_left = kMaxSuggestions;
    const auto meant = [&](ValueId value, GraphId graph) {
      return suggestions_left-- > 0 ? suggested(model, value, graph) : std::string();
    };
    for (std::size_t n = 0; n < model.nodes.size(); ++n)
      for (const ValueId value : model.operands(model.nodes[n]))
        if (is_undefined(model, value) && out.first(fmt::format("{}", static_cast<std::uint32_t>(value))))
          out.report(static_cast<NodeId>(n),
                     fmt::format("nothing defines {}{}", quoted_for_people(model.name_of(value)),
                                 meant(value, model.nodes[n].graph)))
              .value(value);
    for (std::size_t g = 0; g < model.graphs.size(); ++g)
      for (const ValueId value : model.graphs[g].outputs)
        if (is_undefined(model, value) && out.first(fmt::format("{}", static_cast<std::uint32_t>(value))))
          out.report_graph(static_cast<GraphId>(g),
                           fmt::format("nothing defines the output {}{}", quoted_for_people(model.name_of(value)),
                                       meant(value, static_cast<GraphId>(g))))
              .value(value);
  }

 private:
  static constexpr int kMaxSuggestions = 4;  // each compares a name with up to kMaxCandidates
  static constexpr std::size_t kMaxCandidates = 5000, kLongest = 64;

  /// A name without its digits: exporters number what they name, so that `val_16` is no slip of `val_6`.
  static std::string without_digits(std::string_view name) {
    std::string text(name);
    std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
    return text;
  }

  /// "; did you mean `x`?" with a value that can be seen from the graph.
  static std::string suggested(const Model& model, ValueId value, GraphId graph) {
    const std::string_view name = model.name_of(value);
    if (name.size() > kLongest) return {};
    const std::string letters = without_digits(name);
    std::vector<std::string_view> candidates;
    for (std::size_t i = 1; i < model.values.size() && candidates.size() < kMaxCandidates; ++i) {
      const auto other = static_cast<ValueId>(i);
      const std::string_view candidate = model.name_of(other);
      if (is_undefined(model, other) || candidate.size() > kLongest || without_digits(candidate) == letters) continue;
      GraphId from = graph;
      while (from != GraphId::kNone && from != model.value(other).graph) from = model.graph(from).parent;
      if (from != GraphId::kNone) candidates.push_back(candidate);
    }
    return escape_for_people(suggestion(name, candidates));
  }

  static bool is_undefined(const Model& model, ValueId value) {
    return value != ValueId::kAbsent && model.value(value).origin == ValueOrigin::kUndefined;
  }
};

const RegisterRule<UndefinedValue> kRegister;

}  // namespace
}  // namespace tensorlint
