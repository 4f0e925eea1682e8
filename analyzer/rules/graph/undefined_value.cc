#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/rules/rule.h"
#include "base/did_you_mean.h"
#include "base/escape.h"

namespace tensorlint::rules {
namespace {

class UndefinedValue : public Rule {
 public:
  UndefinedValue()
      : Rule({"TL-G616", "undefined-value", "graph", findings::Severity::kError,
              "a name that no input, initializer or node defines", kFilesOnly},
             {passes::Pass::kLiveness}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const Model& model = view.model();
    const auto values = view.analysis().values();
    if (std::ranges::none_of(values, [&](ValueId value) { return is_undefined(model, value); })) return;
    int suggestions_left = kMaxSuggestions;
    const Unused unused_values(view);
    const auto meant = [&](ValueId value, GraphId graph) {
      return suggestions_left-- > 0 ? suggested(view.analysis(), value, graph) : std::string();
    };
    for (const NodeId id : view.analysis().nodes()) {
      const auto operands = view.analysis().operands(id);
      for (std::size_t i = 0; i < operands.size(); ++i) {
        const ValueId value = operands[i];
        if (!is_undefined(model, value) || !out.first(fmt::format("{}", static_cast<std::uint32_t>(value)))) continue;
        const NodeCall call(view.analysis(), id);
        const std::vector<std::string> unused = unused_alike(view, call, i, unused_values);
        const std::string name = quoted_for_people(model.name_of(value));
        const std::string hint = unused.size() == 1 ? fmt::format("; {} is used by nothing", unused.front())
                                                    : meant(value, model.node(id).graph);
        FindingBuilder finding = out.report(call.id(), fmt::format("nothing defines {}{}", name, hint)).value(value);
        if (unused.size() > 1)
          finding.note(fmt::format("{} are used by nothing", fmt::join(unused, ", ")));
        else if (unused.size() == 1)
          finding.fix(fmt::format("one name for both: {} is read where {} is given", name, unused.front()));
      }
    }
    for (const GraphId id : model.graphs.ids())
      for (const ValueId value : view.analysis().outputs(id))
        if (is_undefined(model, value) && out.first(fmt::format("{}", static_cast<std::uint32_t>(value))))
          out.report_graph(id, fmt::format("nothing defines the output {}{}", quoted_for_people(model.name_of(value)),
                                           meant(value, id)))
              .value(value);
  }

 private:
  static constexpr int kMaxSuggestions = 4;  // each compares a name with up to kMaxCandidates
  static constexpr std::size_t kMaxCandidates = 5000, kLongest = 64, kMaxUnused = 3;

  /// The inputs and initializers of graphs that nothing uses; of a graph with more of them than tell anything, none.
  class Unused {
   public:
    explicit Unused(const ModelView& view) : inputs_(view.model().graphs.size()), initializers_(inputs_.size()) {
      for (const GraphId id : view.model().graphs.ids()) {
        inputs_[id] = unused(view, view.model().graph(id).inputs);
        initializers_[id] = unused(view, view.model().graph(id).initializers);
      }
    }
    std::span<const ValueId> inputs(GraphId graph) const { return inputs_[graph]; }
    std::span<const ValueId> initializers(GraphId graph) const { return initializers_[graph]; }

   private:
    static constexpr std::size_t kMost = 64;
    static std::vector<ValueId> unused(const ModelView& view, std::span<const ValueId> values) {
      std::vector<ValueId> found;
      for (const ValueId value : values)
        if (value != ValueId::kAbsent && !view.liveness().is_used(value) && found.size() <= kMost)
          found.push_back(value);
      return found.size() > kMost ? std::vector<ValueId>() : found;
    }
    IdVector<GraphId, std::vector<ValueId>> inputs_, initializers_;
  };

  /// A name without its digits: exporters number what they name, so that `val_16` is no slip of `val_6`.
  static std::string without_digits(std::string_view name) {
    std::string text(name);
    std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
    return text;
  }

  /// "input `image`": what the node can see, nothing uses and the operand could be, the graph's inputs first; nothing
  /// where there are too many to tell anything.
  static std::vector<std::string> unused_alike(const ModelView& view, const NodeCall& call, std::size_t operand,
                                               const Unused& unused) {
    const Model& model = view.model();
    const OpSchema* schema = call.op().schema;
    const bool has_formal = schema != nullptr && !schema->inputs.empty();
    const FormalParameter* formal =
        has_formal ? &schema->inputs[std::min(operand, schema->inputs.size() - 1)] : nullptr;
    const auto fits = [&](ValueId value) {
      const Fact& fact = view.analysis().fact(value);
      return formal == nullptr || fact.kind != ValueKind::kTensor ||
             !(fact.dtypes & schema->types[formal->type].allowed.tensor).empty();
    };
    std::vector<std::string> found;
    const auto add = [&](std::span<const ValueId> values, std::string_view kind) {
      for (const ValueId value : Walk(values, view.analysis().meter()))
        if (fits(value) && found.size() <= kMaxUnused)
          found.push_back(fmt::format("{} {}", kind, quoted_for_people(model.name_of(value))));
    };
    for (GraphId graph = call.node().graph; graph != GraphId::kNone; graph = model.graph(graph).parent)
      // The inputs of a Loop's body are often not used: its iteration and condition have to be there.
      if (graph == GraphId::kMain || model.graph(graph).kind == GraphKind::kFunction)
        add(unused.inputs(graph), "input");
    if (found.empty())
      for (GraphId graph = call.node().graph; graph != GraphId::kNone; graph = model.graph(graph).parent)
        add(unused.initializers(graph), "initializer");
    return found.size() > kMaxUnused ? std::vector<std::string>() : found;
  }

  /// "; did you mean `x`?" with a value that can be seen from the graph.
  static std::string suggested(const dataflow::Analysis& analysis, ValueId value, GraphId graph) {
    constexpr std::uint64_t kStepsOfName = 16;
    const Model& model = analysis.model();
    Meter& meter = analysis.meter();
    const std::string_view name = model.name_of(value);
    if (name.size() > kLongest) return {};
    const std::string letters = without_digits(name);
    std::vector<std::string_view> candidates;
    for (std::size_t i = 1; i < model.values.size() && candidates.size() < kMaxCandidates && !meter.is_spent(); ++i) {
      meter.charge(kStepsOfName);
      const auto other = static_cast<ValueId>(i);
      const std::string_view candidate = model.name_of(other);
      if (is_undefined(model, other) || candidate.size() > kLongest || without_digits(candidate) == letters) continue;
      GraphId from = graph;
      for (; from != GraphId::kNone && from != model.value(other).graph; from = model.graph(from).parent)
        meter.charge(1);
      if (from == GraphId::kNone) continue;
      meter.charge(kStepsOfName + name.size() * candidate.size() / 8);  // letters are compared in pairs
      candidates.push_back(candidate);
    }
    return escape_for_display(did_you_mean(name, candidates));
  }

  static bool is_undefined(const Model& model, ValueId value) {
    return value != ValueId::kAbsent && model.value(value).origin == ValueOrigin::kUndefined;
  }
};

const RegisterRule<UndefinedValue> kRegisterUndefinedValue;

}  // namespace
}  // namespace tensorlint::rules
