#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzer/findings/input_report.h"
#include "analyzer/reports/contract.h"
#include "analyzer/reports/show.h"
#include "base/escape.h"
#include "base/hash.h"
#include "base/id_vector.h"
#include "ir/facts/dim_names.h"
#include "passes/losses/loss_sites.h"

namespace tensorlint::reports {
namespace {

using Json = nlohmann::ordered_json;

/// Formulas and contents in one report, at least, and for each node. Formulas after it are null, as dims that are not
/// known, and contents are left out. There is as much room for shapes, types of elements and devices.
constexpr std::size_t kFormulaBytes = std::size_t{4} << 20, kFormulaBytesPerNode = 512;
/// An element on a line of its own, with its indentation.
constexpr std::size_t kBytesOfElement = 32;
/// A constant extent of 19 digits, and what stands around the type of an element.
constexpr std::size_t kBytesOfExtent = 24, kBytesOfType = 128;

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
  FactPrinter(const dataflow::Analysis& analysis, bool all_symbols)
      : facts_(analysis.facts()),
        all_symbols_(all_symbols),
        room_(kFormulaBytes + kFormulaBytesPerNode * analysis.model().nodes.size()),
        type_room_(room_) {}

  Json print(const Fact& fact, const std::vector<std::string>& device_names, Taint taint) {
    Json json = print(fact);
    if (const auto assumed = assumed_aspects(taint); !assumed.empty()) json["assumed"] = assumed;
    if (!json.contains("dtype")) return json;
    json["device"] = Json::array();
    for (const std::string& name : device_names)
      if (take(type_room_, name.size() + kBytesOfElement)) json["device"].push_back(escape_identifier(name));
    return json;
  }

  /// Some formulas or contents, of those that were printed.
  bool has_left_out() const { return left_out_; }

 private:
  Json print(const Fact& fact) {
    switch (fact.kind) {
      case ValueKind::kSequence: {
        const std::span<const Dim> length = facts_.dims_of(fact.shape);
        return {{"kind", to_text(fact.kind)},
                {"element", element_json(fact)},
                {"length", length.size() == 1 ? dim_json(length.front()) : Json()}};
      }
      case ValueKind::kOptional:
        return {{"kind", to_text(fact.kind)}, {"element", element_json(fact)}};
      case ValueKind::kMap:
        return {{"kind", to_text(fact.kind)}};
      default:
        return tensor(fact);
    }
  }

  Json element_json(const Fact& fact) {
    return take(type_room_, kBytesOfType) ? print(facts_.fact(fact.element)) : Json();
  }

  Json tensor(const Fact& fact) {
    Json json = Json::object();
    if (fact.kind == ValueKind::kSparseTensor) json["kind"] = to_text(fact.kind);
    json["dtype"] = dtypes_json(fact.dtypes);
    const std::span<const Dim> extents =
        facts_.is_ranked(fact.shape) ? facts_.dims_of(fact.shape) : std::span<const Dim>();
    json["shape"] =
        facts_.is_ranked(fact.shape) && take(type_room_, kBytesOfExtent * extents.size()) ? dims_json(extents) : Json();
    json["range"] = range_json(fact.range, fact.dtypes);
    const bool integers = fact.dtypes.is_subset_of(DTypeSet::integers() | DTypeSet(DType::kBool));
    if (!fact.range.nan && !integers) json["nan"] = false;
    if (const Content* content = facts_.content(fact.content);
        content != nullptr && take(room_, kBytesOfElement * content->size())) {
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

  /// Whether there is room for so much; where there is none, for nothing after it either.
  bool take(std::size_t& room, std::size_t bytes) {
    if (bytes <= room) {
      room -= bytes;
      return true;
    }
    room = 0;
    left_out_ = true;
    return false;
  }

  Json dims_json(std::span<const Dim> list) {
    Json json = Json::array();
    for (const Dim dim : list) json.push_back(dim_json(dim));
    return json;
  }

  Json dim_json(Dim dim) {
    DimPool& dims = facts_.dims();
    if (const auto extent = dims.as_constant(dim)) return *extent;
    if (room_ == 0) {
      left_out_ = true;
      return {};
    }
    if (dim.is_unknown()) return {};
    const auto [known, is_new] = formulas_.try_emplace(dim.id());
    if (is_new) known->second = formula_of(dim);
    const std::string& text = known->second;
    if (text.empty()) return {};
    if (!take(room_, text.size())) return {};
    return escape_for_display(text, 4 * text.size());
  }

  /// Empty for what has no name, and for what is too long: half of a formula would say something else.
  std::string formula_of(Dim dim) {
    DimPool& dims = facts_.dims();
    if (!dims.is_named(dim)) {
      if (!all_symbols_) return {};
      dim = dims.substitute(dim, [&](Dim symbol) -> std::optional<Dim> {
        if (dims.is_named(symbol)) return std::nullopt;
        return dims.symbol(fmt::format("?{}", symbol.id()));
      });
      if (!dims.is_named(dim)) return {};
    }
    std::string text = dims.to_text(dim);
    if (!is_cut_off(text)) return text;
    room_ -= std::min(room_, text.size());  // written in vain
    return {};
  }

  /// One name is as short as what stands around it; of a value of which nothing is known there are two dozen.
  Json dtypes_json(DTypeSet dtypes) {
    Json names = Json::array();
    for (int code = 1; code < kDTypeCount; ++code) {
      if (!dtypes.contains(static_cast<DType>(code))) continue;
      if (!names.empty() && !take(type_room_, kBytesOfElement)) return Json::array();
      names.push_back(to_text(static_cast<DType>(code)));
    }
    return names;
  }

  FactStore& facts_;
  bool all_symbols_;
  std::size_t room_;       // for formulas and contents
  std::size_t type_room_;  // for the rest of types
  bool left_out_ = false;
  std::unordered_map<std::uint32_t, std::string> formulas_;  // by id of the dim
};

/// A document written part by part, as the library prints a whole one: of a large model that would take ten times the
/// memory of its text.
class DocumentWriter {
 public:
  DocumentWriter(bool one_line, const std::function<void(std::string_view)>& write)
      : one_line_(one_line), write_(write) {}

  void open(char bracket) {
    begin();
    text_ += bracket;
    empty_.push_back(true);
  }
  void close(char bracket) {
    const bool was_empty = empty_.back();
    empty_.pop_back();
    if (!was_empty) break_line();
    text_ += bracket;
  }
  void key(std::string_view key) {
    begin();
    text_ += dumped(Json(key)) + (one_line_ ? ":" : ": ");
    after_key_ = true;
  }
  void put(const Json& value) {
    begin();
    if (text_.size() >= kPart) flush();
    for (const char c : dumped(value)) {  // a line break within a string is escaped
      text_ += c;
      if (c == '\n') text_.append(2 * empty_.size(), ' ');
    }
  }
  void put(std::string_view name, const Json& value) {
    key(name);
    put(value);
  }
  void finish() {
    text_ += '\n';
    flush();
  }

 private:
  static constexpr std::size_t kPart = std::size_t{1} << 20;

  void flush() {
    write_(text_);
    text_.clear();
  }
  std::string dumped(const Json& json) const {
    return json.dump(one_line_ ? -1 : 2, ' ', false, Json::error_handler_t::replace);
  }
  void break_line() {
    if (!one_line_) text_.append(1, '\n').append(2 * empty_.size(), ' ');
  }
  /// What stands between the last part and the next one.
  void begin() {
    if (std::exchange(after_key_, false) || empty_.empty()) return;
    if (!empty_.back()) text_ += ',';
    empty_.back() = false;
    break_line();
  }

  bool one_line_, after_key_ = false;
  const std::function<void(std::string_view)>& write_;
  std::string text_;
  std::vector<bool> empty_;  // by bracket that is open
};

/// Nodes of a graph with the names of what they take and give; an operand that is left out is null.
class NodePrinter {
 public:
  NodePrinter(const dataflow::Analysis& analysis, const ShowFilter& filter)
      : model_(analysis.model()), filter_(filter), locations_(model_), shown_(model_.values.size(), !filter.any()) {}

  bool has(NodeId id) { return !filter_.any() || filter_.matches(model_, id, locations_); }
  /// Its nodes' values are shown.
  void mark(const Graph& graph) {
    if (!filter_.any()) return;
    for (const NodeId id : graph.nodes) {
      if (!has(id)) continue;
      for (const ValueId value : model_.operands(model_.node(id))) shown_[value] = true;
      for (const ValueId value : model_.results(model_.node(id))) shown_[value] = true;
    }
  }
  void print(NodeId id, DocumentWriter& out) const {
    const Node& node = model_.node(id);
    out.open('{');
    out.put("node", escape_identifier(model_.label(id)));
    out.put("op", escape_identifier(model_.text(model_.op(node).name)));
    out.key("operands");
    print_names(model_.operands(node), out);
    out.key("results");
    print_names(model_.results(node), out);
    out.close('}');
  }
  bool is_shown(ValueId value) const { return shown_[value]; }

 private:
  void print_names(std::span<const ValueId> values, DocumentWriter& out) const {
    out.open('[');
    for (const ValueId value : values)
      out.put(value == ValueId::kAbsent ? Json() : Json(escape_identifier(model_.name_of(value))));
    out.close(']');
  }

  const Model& model_;
  const ShowFilter& filter_;
  findings::LocationResolver locations_;
  IdVector<ValueId, bool> shown_;
};

/// False for branches that no execution takes, functions that nothing calls, and bodies past a budget.
bool entered(const dataflow::Analysis& analysis, const Graph& graph) {
  const auto is_visited = [&](NodeId node) {
    return analysis.is_visited(node) || analysis.gap(node) != dataflow::Gap::kNone;
  };
  return graph.nodes.empty() || std::any_of(graph.nodes.begin(), graph.nodes.end(), is_visited);
}

class ShowDocument {
 public:
  ShowDocument(const dataflow::Analysis& analysis, const placement::Placement& placement, const ShowStyle& style,
               const std::function<void(std::string_view)>& write)
      : analysis_(analysis),
        model_(analysis.model()),
        placement_(placement),
        facts_(analysis, style.all_symbols),
        nodes_(analysis, style.filter),
        contract_(style.contract),
        out_(style.one_line, write),
        values_(model_.graphs.size()) {}

  void write(std::span<const losses::LossSite> sites) {
    for (const Graph& graph : model_.graphs) nodes_.mark(graph);
    for (const ValueId id : model_.values.ids(kFirstValue))
      if (model_.value(id).name != NameId::kEmpty && nodes_.is_shown(id)) values_[model_.value(id).graph].push_back(id);
    out_.open('{');
    out_.put("schema", 1);
    out_.put("path", escape_identifier(model_.path));
    if (analysis_.ran_out() || analysis_.meter().is_partial()) out_.put("partial", findings::kPartialText);
    if (model_.graphs.empty()) {
      out_.put("values", Json::object());
      out_.put("nodes", Json::array());
    } else {
      write_graph(GraphId::kMain);
    }
    out_.key("graphs");
    out_.open('[');
    for (const GraphId id : model_.graphs.ids(static_cast<GraphId>(1))) {
      out_.open('{');
      out_.put("graph", escape_identifier(model_.graph_path(id)));
      write_graph(id);
      if (!entered(analysis_, model_.graph(id))) out_.put("entered", false);
      out_.close('}');
    }
    out_.close(']');
    if (facts_.has_left_out())
      out_.put("left_out", "formulas, types and contents past the size that the document may have");
    out_.key("losses");
    out_.open('[');
    for (const losses::LossSite& loss : sites)
      out_.put({{"kind", ops::to_text(loss.kind)},
                {"node", escape_identifier(model_.label(loss.anchor))},
                {"prediction", escape_identifier(model_.name_of(loss.prediction_source))},
                {"target", escape_identifier(model_.name_of(loss.target_source))}});
    out_.close(']');
    if (contract_ != nullptr) {
      out_.put("complete", contract_->has_all());
      out_.put("requirements", requirements_json(analysis_, *contract_, {}));
    }
    out_.close('}');
    out_.finish();
  }

 private:
  void write_graph(GraphId graph) {
    out_.key("values");
    out_.open('{');
    // Of values whose names are alike, as they are or once they are cut off, the last one is shown.
    std::unordered_map<std::string, ValueId, TextHash> shown;
    for (const ValueId id : values_[graph]) shown[escape_identifier(model_.name_of(id))] = id;
    for (const ValueId id : values_[graph]) {
      const auto known = shown.find(escape_identifier(model_.name_of(id)));
      if (known == shown.end()) continue;
      const ValueId value = known->second;
      out_.put(known->first, facts_.print(analysis_.fact(value), placement_.devices(value), analysis_.taint(value)));
      shown.erase(known);
    }
    out_.close('}');
    out_.key("nodes");
    out_.open('[');
    for (const NodeId node : model_.graph(graph).nodes)
      if (nodes_.has(node)) nodes_.print(node, out_);
    out_.close(']');
  }

  const dataflow::Analysis& analysis_;
  const Model& model_;
  const placement::Placement& placement_;
  FactPrinter facts_;
  NodePrinter nodes_;
  const contract::Contract* contract_;
  DocumentWriter out_;
  IdVector<GraphId, std::vector<ValueId>> values_;
};

}  // namespace

void show_json(const dataflow::Analysis& analysis, const placement::Placement& placement,
               std::span<const losses::LossSite> sites, ShowStyle style,
               const std::function<void(std::string_view)>& write) {
  ShowDocument(analysis, placement, style, write).write(sites);
}

}  // namespace tensorlint::reports
