#include "analyzer/reports/json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "analyzer/findings/escape.h"
#include "analyzer/findings/fingerprint.h"
#include "analyzer/version.h"
#include "passes/losses/loss_sites.h"

namespace tensorlint {
namespace {

using Json = nlohmann::ordered_json;

/// Paths and names that a reader may look up again are kept longer than what only people read.
constexpr std::size_t kIdentifierLength = 1000;

std::string identifier(std::string_view text) { return escape_for_people(text, kIdentifierLength); }
std::string prose(std::string_view text) { return escape_for_people(text, 2 * kIdentifierLength); }

Json text_or_null(std::string_view text) { return text.empty() ? Json() : Json(identifier(text)); }
Json number_or_null(std::uint32_t number) { return number == 0 ? Json() : Json(number); }

Json to_json(const Note& note) {
  return {{"message", prose(note.message)},
          {"node", text_or_null(note.node)},
          {"file", text_or_null(note.place.file)},
          {"line", number_or_null(note.place.line)}};
}

/// A number where it is one, a formula as text, null where it is not known.
Json bytes_json(const std::string& bytes) {
  if (bytes.empty()) return {};
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), number);
  return error == std::errc() && end == bytes.data() + bytes.size() ? Json(number) : Json(identifier(bytes));
}

Json to_json(const TransferCost& cost) {
  Json json = {{"copies", cost.copies},
               {"bytes", bytes_json(cost.bytes)},
               {"setup_copies", cost.setup_copies},
               {"setup_bytes", bytes_json(cost.setup_bytes)}};
  if (!cost.conditions.empty()) {
    json["conditions"] = Json::object();
    for (const auto& [name, choice] : cost.conditions) json["conditions"][identifier(name)] = choice;
  }
  return json;
}

Json to_json(const DeviceWitness& witness) {
  Json json = {{"devices", Json::array()},
               {"conditions", Json::object()},
               {"trip_counts", Json::object()},
               {"iteration", witness.iteration},
               {"calls", Json::array()}};
  for (const std::string& device : witness.devices) json["devices"].push_back(identifier(device));
  for (const auto& [name, choice] : witness.conditions) json["conditions"][identifier(name)] = choice;
  for (const auto& [name, count] : witness.trip_counts) json["trip_counts"][identifier(name)] = count;
  for (const std::string& call : witness.calls) json["calls"].push_back(identifier(call));
  return json;
}

Json to_json(const Finding& finding) {
  Json notes = Json::array(), fixes = Json::array();
  for (const Note& note : finding.notes) notes.push_back(to_json(note));
  for (const Fix& fix : finding.fixes)
    fixes.push_back({{"message", prose(fix.message)}, {"applicability", to_text(fix.applicability)}});
  Json json = {{"rule", finding.rule},
               {"code", finding.code},
               {"severity", to_text(finding.severity)},
               {"certainty", to_text(finding.certainty)},
               {"path", identifier(finding.path)},
               {"graph", identifier(finding.graph)},
               {"node", text_or_null(finding.node)},
               {"op", text_or_null(finding.op)},
               {"value", text_or_null(finding.value)},
               {"file", text_or_null(finding.place.file)},
               {"line", number_or_null(finding.place.line)},
               {"column", number_or_null(finding.place.column)},
               {"message", prose(finding.message)},
               {"notes", std::move(notes)},
               {"fixes", std::move(fixes)},
               {"fingerprint", fingerprint(finding)}};
  if (finding.cost) json["cost"] = to_json(*finding.cost);
  if (finding.devices) {
    json["witness"] = to_json(*finding.devices);
  } else if (!finding.witness.empty()) {
    json["witness"] = {{"case", prose(finding.witness)}};
  }
  return json;
}

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

  Json print(const Fact& fact, const std::vector<std::string>& device_names) {
    Json json = print(fact);
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
    return identifier(dims.to_text(dim));
  }

  static Json dtypes_json(DTypeSet dtypes) {
    Json names = Json::array();
    for (int code = 1; code < kDTypeCount; ++code)
      if (dtypes.contains(static_cast<DType>(code))) names.push_back(to_text(static_cast<DType>(code)));
    return names;
  }

  FactStore& facts_;
  bool all_symbols_;
};

std::string dumped(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string check_json(std::span<const InputReport> inputs, bool timings) {
  Json input_list = Json::array(), findings = Json::array();
  SeverityCounts counts;
  std::size_t omitted = 0, suppressed = 0, in_baseline = 0, gone = 0;
  for (const InputReport& input : inputs) {
    Json json = {{"path", identifier(input.path)}, {"status", input.checked ? "checked" : "failed"}};
    if (input.checked) {
      json["nodes"] = input.nodes;
    } else {
      json["error"] = prose(input.error);
    }
    if (input.cost) {
      json["cost"] = input.cost->first.conditions.empty()
                         ? to_json(input.cost->first)
                         : Json({{"min", to_json(input.cost->first)}, {"max", to_json(input.cost->second)}});
    } else if (!input.cost_unknown.empty()) {
      json["cost"] = nullptr;
    }
    if (timings) {
      json["seconds"] = {{"load", input.seconds.load},
                         {"infer", input.seconds.infer},
                         {"rules", input.seconds.rules},
                         {"total", input.seconds.total}};
      json["peak_rss_bytes"] = input.peak_rss_bytes;
    }
    input_list.push_back(std::move(json));
    for (const Finding& finding : input.findings) findings.push_back(to_json(finding));
    counts += input.counts;
    omitted += input.omitted();
    suppressed += input.suppressed;
    in_baseline += input.in_baseline;
    gone += input.gone;
  }
  Json summary = {{"error", counts.error}, {"warning", counts.warning}, {"info", counts.info}};
  if (omitted > 0) summary["omitted"] = omitted;  // found and counted, but past --max-findings
  if (suppressed > 0) summary["suppressed"] = suppressed;
  if (in_baseline + gone > 0) summary["baseline"] = {{"known", in_baseline}, {"gone", gone}};
  return dumped({{"schema", 1},
                 {"tool", {{"name", "tensorlint"}, {"version", kVersion}}},
                 {"inputs", std::move(input_list)},
                 {"findings", std::move(findings)},
                 {"summary", std::move(summary)}});
}

/// False for branches that no execution takes, functions that nothing calls, and bodies past a budget.
static bool entered(const Analysis& analysis, const Graph& graph) {
  bool any = graph.node_count == 0;
  for (std::uint32_t n = 0; n < graph.node_count && !any; ++n)
    any = analysis.is_visited(static_cast<NodeId>(graph.first_node + n));
  return any;
}

std::string show_json(const Analysis& analysis, const Placement& placement, ShowStyle style) {
  const Model& model = analysis.model();
  FactPrinter printer(analysis.facts(), style.all_symbols);
  std::vector<Json> values(model.graphs.size(), Json::object());
  for (std::size_t id = 1; id < model.values.size(); ++id) {
    const Value& value = model.values[id];
    if (value.name == NameId::kEmpty) continue;
    values[static_cast<std::size_t>(value.graph)][identifier(model.text(value.name))] =
        printer.print(analysis.fact(static_cast<ValueId>(id)), placement.devices(static_cast<ValueId>(id)));
  }
  Json graphs = Json::array();
  for (std::size_t g = 1; g < model.graphs.size(); ++g) {
    Json json = {{"graph", identifier(model.graph_path(static_cast<GraphId>(g)))}, {"values", std::move(values[g])}};
    if (!entered(analysis, model.graphs[g])) json["entered"] = false;
    graphs.push_back(std::move(json));
  }
  Json losses = Json::array();
  for (const LossSite& loss : find_losses(analysis))
    losses.push_back({{"kind", to_text(loss.kind)},
                      {"node", identifier(model.label(loss.meeting))},
                      {"prediction", identifier(model.name_of(loss.prediction_source))},
                      {"target", identifier(model.name_of(loss.target_source))}});
  const Json document = {{"schema", 1},
                         {"path", identifier(model.path)},
                         {"values", model.graphs.empty() ? Json::object() : std::move(values[0])},
                         {"graphs", std::move(graphs)},
                         {"losses", std::move(losses)}};
  return style.one_line ? document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n" : dumped(document);
}

}  // namespace tensorlint
