#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "analyzer/reports/show.h"
#include "base/escape.h"
#include "base/id_vector.h"
#include "ir/facts/dim_names.h"
#include "passes/losses/loss_sites.h"

namespace tensorlint::reports {
namespace {

using Json = nlohmann::ordered_json;

/// Names that a reader may look up again are kept longer than what only people read.
constexpr std::size_t kIdentifierLength = 1000;

/// Formulas in one report; those after it are null, as dims that are not known.
constexpr std::size_t kMaxFormulaBytes = std::size_t{16} << 20;

std::string identifier(std::string_view text) { return escape_for_people(text, kIdentifierLength); }

Json bound(double value) { return std::isfinite(value) ? Json(value) : Json(); }

/// Integral bounds print as integers, as people write them.
Json range_json(const Range& range, DTypeSet dtypes) {
  const auto side = [&](double value) {
    const bool integral = dtypes.proves(DTypeSet::integers() | DType::kBool) && std::abs(value) < 9007199254740992.0;
    return integral ? Json(static_cast<std::int64_t>(value)) : bound(value);
  };
  return Json::array({side(range.lo), side(range.hi)});
}

/// Prints the facts of values; `all_symbols` says whether extents that nothing names get names of their own.
class FactPrinter {
 public:
  FactPrinter(FactStore& facts, bool all_symbols) : facts_(facts), all_symbols_(all_symbols) {}

  Json print(const Fact& fact, const std::vector<std::string>& device_names, Taint taint) {
    Json json = print(fact);
    if (const auto assumed = assumed_aspects(taint); !assumed.empty()) json["assumed"] = assumed;
    if (!json.contains("dtype")) return json;
    json["device"] = Json::array();
    for (const std::string& name : device_names) json["device"].push_back(identifier(name));
    return json;
  }

 private:
  Json print(const Fact& fact) {
    switch (fact.kind) {
      case ValueKind::kSequence: {
        const std::span<const Dim> length = facts_.dims_of(fact.shape);
        return {{"kind", to_text(fact.kind)},
                {"element", print(facts_.fact(fact.element))},
                {"length", length.size() == 1 ? dim_json(length.front()) : Json()}};
      }
      case ValueKind::kOptional:
        return {{"kind", to_text(fact.kind)}, {"element", print(facts_.fact(fact.element))}};
      case ValueKind::kMap:
        return {{"kind", to_text(fact.kind)}};
      default:
        return tensor(fact);
    }
  }

  Json tensor(const Fact& fact) {
    Json json = Json::object();
    if (fact.kind == ValueKind::kSparseTensor) json["kind"] = to_text(fact.kind);
    json["dtype"] = dtypes_json(fact.dtypes);
    json["shape"] = facts_.is_ranked(fact.shape) ? dims_json(facts_.dims_of(fact.shape)) : Json();
    json["range"] = range_json(fact.range, fact.dtypes);
    const bool integers = fact.dtypes.is_subset_of(DTypeSet::integers() | DTypeSet(DType::kBool));
    if (!fact.range.nan && !integers) json["nan"] = false;
    if (const Content* content = facts_.content(fact.content)) {
      if (content->floats.empty()) {
        json["contents"] = dims_json(content->integers);
      } else {
        json["contents"] = Json::array();
        for (const double value : content->floats)
          json["contents"].push_back(std::isfinite(value) ? Json(value) : Json());
      }
    }
    return json;
  }

  Json dims_json(std::span<const Dim> list) {
    Json json = Json::array();
    for (const Dim dim : list) json.push_back(dim_json(dim));
    return json;
  }

  Json dim_json(Dim dim) {
    DimPool& dims = facts_.dims();
    if (const auto extent = dims.as_constant(dim)) return *extent;
    if (!dims.is_named(dim)) {
      if (!all_symbols_ || dim.is_unknown()) return {};
      dim = dims.substitute(dim, [&](Dim symbol) -> std::optional<Dim> {
        if (dims.is_named(symbol)) return std::nullopt;
        return dims.symbol(fmt::format("?{}", symbol.id()));
      });
      if (!dims.is_named(dim)) return {};
    }
    // A formula is whole or not there: half of one would say something else.
    const std::string text = dims.to_text(dim);
    if (is_cut_off(text) || text.size() > formula_bytes_) return {};
    formula_bytes_ -= text.size();
    return escape_for_people(text, 4 * text.size());
  }

  static Json dtypes_json(DTypeSet dtypes) {
    Json names = Json::array();
    for (int code = 1; code < kDTypeCount; ++code)
      if (dtypes.contains(static_cast<DType>(code))) names.push_back(to_text(static_cast<DType>(code)));
    return names;
  }

  FactStore& facts_;
  bool all_symbols_;
  std::size_t formula_bytes_ = kMaxFormulaBytes;
};

/// Nodes of a graph with the names of what they take and give; an operand that is left out is null.
class NodePrinter {
 public:
  NodePrinter(const dataflow::Analysis& analysis, const ShowFilter& filter)
      : model_(analysis.model()), filter_(filter), locations_(model_), shown_(model_.values.size(), !filter.any()) {}

  Json print(const Graph& graph) {
    Json nodes = Json::array();
    for (const NodeId id : graph.nodes) {
      if (filter_.any() && !filter_.matches(model_, id, locations_)) continue;
      const Node& node = model_.node(id);
      nodes.push_back({{"node", identifier(model_.label(id))},
                       {"op", identifier(model_.text(model_.op(node).name))},
                       {"operands", names(model_.operands(node))},
                       {"results", names(model_.results(node))}});
    }
    return nodes;
  }
  /// A node that was printed takes or gives it.
  bool is_shown(ValueId value) const { return shown_[value]; }

 private:
  Json names(std::span<const ValueId> values) {
    Json json = Json::array();
    for (const ValueId value : values) {
      json.push_back(value == ValueId::kAbsent ? Json() : Json(identifier(model_.name_of(value))));
      if (value != ValueId::kAbsent) shown_[value] = true;
    }
    return json;
  }

  const Model& model_;
  const ShowFilter& filter_;
  findings::LocationResolver locations_;
  IdVector<ValueId, bool> shown_;
};

/// False for branches that no execution takes, functions that nothing calls, and bodies past a budget.
bool entered(const dataflow::Analysis& analysis, const Graph& graph) {
  const auto is_visited = [&](NodeId node) { return analysis.is_visited(node); };
  return graph.nodes.empty() || std::any_of(graph.nodes.begin(), graph.nodes.end(), is_visited);
}

}  // namespace

std::string show_json(const dataflow::Analysis& analysis, const placement::Placement& placement,
                      std::span<const losses::LossSite> sites, ShowStyle style) {
  const Model& model = analysis.model();
  FactPrinter printer(analysis.facts(), style.all_symbols);
  IdVector<GraphId, Json> values(model.graphs.size(), Json::object());
  NodePrinter node_printer(analysis, style.filter);
  IdVector<GraphId, Json> nodes;
  for (const Graph& graph : model.graphs) nodes.push_back(node_printer.print(graph));
  for (const ValueId id : model.values.ids(kFirstValue)) {
    const Value& value = model.value(id);
    if (value.name == NameId::kEmpty || !node_printer.is_shown(id)) continue;
    values[value.graph][identifier(model.text(value.name))] =
        printer.print(analysis.fact(id), placement.devices(id), analysis.taint(id));
  }
  Json graphs = Json::array();
  for (const GraphId id : model.graphs.ids(static_cast<GraphId>(1))) {
    Json json = {{"graph", identifier(model.graph_path(id))},
                 {"values", std::move(values[id])},
                 {"nodes", std::move(nodes[id])}};
    if (!entered(analysis, model.graph(id))) json["entered"] = false;
    graphs.push_back(std::move(json));
  }
  Json losses = Json::array();
  for (const losses::LossSite& loss : sites)
    losses.push_back({{"kind", ops::to_text(loss.kind)},
                      {"node", identifier(model.label(loss.meeting))},
                      {"prediction", identifier(model.name_of(loss.prediction_source))},
                      {"target", identifier(model.name_of(loss.target_source))}});
  const Json document = {{"schema", 1},
                         {"path", identifier(model.path)},
                         {"values", model.graphs.empty() ? Json::object() : std::move(values[GraphId::kMain])},
                         {"nodes", model.graphs.empty() ? Json::array() : std::move(nodes[GraphId::kMain])},
                         {"graphs", std::move(graphs)},
                         {"losses", std::move(losses)}};
  return document.dump(style.one_line ? -1 : 2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tensorlint::reports
