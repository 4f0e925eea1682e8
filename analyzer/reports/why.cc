#include "analyzer/reports/why.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <span>
#include <string_view>

#include "analyzer/findings/source_location.h"
#include "analyzer/findings/violation_text.h"
#include "analyzer/reports/show.h"
#include "analyzer/reports/unknowns.h"
#include "base/escape.h"
#include "ir/graph/region_op.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::reports {
namespace {

/// Of the list: nodes, and inputs and initializers, which a node may read by the thousands.
constexpr int kMaxNodes = 40, kMaxOthers = 200;
/// Extents that nothing names.
constexpr std::size_t kMaxNamed = 200;
/// Of the tree: lines, columns of indentation in steps of two, and operands of a node, so that no model makes it
/// endless.
constexpr int kMaxLines = 2000;
constexpr std::size_t kMaxTreeBytes = std::size_t{2} << 20;  // types and failures may be long
constexpr std::size_t kMaxIndent = 60, kMaxSources = 256;

std::string name_of(const Model& model, ValueId value) {
  return fmt::format("`{}`", escape_for_display(model.name_of(value)));
}

/// The value of each body that a control-flow node makes `result` of, or of the function that a node calls.
std::vector<ValueId> made_of(const Model& model, NodeId node, const Value& result) {
  std::vector<ValueId> made;
  const RegionOp region = region_op(model, model.node(node));
  const std::size_t output = region.output_of_result(result.result_index);
  for (std::size_t g = 0; g < region.graph_count(); ++g) {
    if (region.graphs[g] == GraphId::kNone) continue;
    const std::vector<ValueId>& outputs = model.graph(region.graphs[g]).outputs;
    if (output < outputs.size()) made.push_back(outputs[output]);
  }
  return made;
}

std::string_view word_for(const Model& model, ValueId value) {
  switch (model.value(value).origin) {
    case ValueOrigin::kInput: {
      const GraphKind kind = model.graph(model.value(value).graph).kind;
      return kind == GraphKind::kMain       ? "an input"
             : kind == GraphKind::kSubgraph ? "an input of the body"
                                            : "an input of the function";
    }
    case ValueOrigin::kInitializer:
      return "an initializer";
    case ValueOrigin::kUndefined:
      return "never defined";
    case ValueOrigin::kNode:
      break;
  }
  return "made by a node";
}

std::string node_text(const Model& model, NodeId node) {
  return fmt::format("node `{}` ({})", escape_for_display(model.label(node)),
                     escape_for_display(model.text(model.op(model.node(node)).name)));
}

/// Where a value came from, in words: "`x`, an input", "`y`, made by node `n` (Op)".
std::string source_text(const Model& model, ValueId value) {
  const Value& self = model.value(value);
  return fmt::format("{}, {}", name_of(model, value),
                     self.origin == ValueOrigin::kNode ? "made by " + node_text(model, self.producer)
                                                       : std::string(word_for(model, value)));
}

/// "axis 2", "axes 0, 1 and element 3"; of what a sequence or optional holds too. With `verb`: "axis 2 is".
std::string places_text(const dataflow::Analysis& analysis, ValueId value, const std::function<bool(Dim)>& is_meant,
                        bool verb = false) {
  const FactStore& facts = analysis.facts();
  std::vector<std::string> found;
  const auto look = [&](std::string_view one, std::string_view many, std::span<const Dim> dims, std::string_view of) {
    std::vector<std::size_t> at;
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (is_meant(dims[i])) at.push_back(i);
    if (at.empty()) return;
    const std::size_t shown = std::min<std::size_t>(at.size(), 8);
    found.push_back(fmt::format("{} {}{}{}", at.size() == 1 ? one : many,
                                fmt::join(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                                shown < at.size() ? fmt::format(" and {} more", at.size() - shown) : "", of));
  };
  std::string_view of;
  for (FactId id = analysis.fact_id(value); id != FactId::kAbsent && id != FactId::kTop; id = facts.fact(id).element) {
    const Fact& fact = facts.fact(id);
    if (fact.kind == ValueKind::kSequence && !facts.dims_of(fact.shape).empty()) {
      if (is_meant(facts.dims_of(fact.shape).front())) found.push_back(fmt::format("the length{}", of));
    } else {
      look("axis", "axes", facts.dims_of(fact.shape), of);
    }
    if (const Content* content = facts.content(fact.content)) look("element", "elements", content->integers, of);
    of = " of what it holds";
  }
  const bool is_one = found.size() == 1 && !found[0].starts_with("axes") && !found[0].starts_with("elements");
  return fmt::format("{}{}", fmt::join(found, " and "), verb ? is_one ? " is" : " are" : "");
}

/// What of a value is not known, a line each: with the reason, and where that began. Without `inherited` only what
/// began there.
std::string unknown_lines(const dataflow::Analysis& analysis, ValueId value, bool inherited) {
  const Model& model = analysis.model();
  const FactStore& facts = analysis.facts();
  std::string text;
  const auto append_line = [&](const std::string& what, const std::function<bool(ValueId)>& has,
                               std::string_view reason) {
    const ValueId first = first_with(analysis, value, has);
    if (analysis.meter().is_spent()) {
      if (inherited) text += fmt::format("  {} not known: to find where that began takes too long\n", what);
      return;
    }
    if (first != value && !inherited) return;
    const Value& self = model.value(first);
    if (self.origin == ValueOrigin::kNode && !analysis.reason(self.producer).empty())
      reason = analysis.reason(self.producer);
    if (self.origin == ValueOrigin::kInput) reason = "its declaration does not determine it";
    text += fmt::format("  {} not known{}: {}\n", what,
                        first == value ? "" : fmt::format(", as of {}", source_text(model, first)), reason);
  };
  constexpr std::string_view kInference = "not determined by the known facts of the operands";
  const auto is_top = [&](ValueId id) {
    return analysis.fact_id(id) == FactId::kTop || analysis.fact(id).kind == ValueKind::kUnknown;
  };
  const auto is_unranked = [&](ValueId id) {
    const Fact& fact = analysis.fact(id);
    return is_top(id) ||
           ((fact.kind == ValueKind::kTensor || fact.kind == ValueKind::kSparseTensor) && !facts.is_ranked(fact.shape));
  };
  if (is_top(value)) {
    append_line("kind, dtype and shape are", is_top, kInference);
    return text;
  }
  if (is_unranked(value)) append_line("its rank is", is_unranked, kInference);
  for (int code = 0; code <= static_cast<int>(Unknown::kTainted); ++code) {
    const Dim unknown{static_cast<Unknown>(code)};
    const auto is_meant = [unknown](Dim dim) { return dim == unknown; };
    const auto has = [&](ValueId id) { return has_dim(analysis, id, is_meant); };
    if (has(value)) append_line(places_text(analysis, value, is_meant, true), has, to_text(unknown.reason()));
  }
  return text;
}

/// Of one node, in file order.
std::span<const dataflow::NodeViolation> violations_of(const dataflow::Analysis& analysis, NodeId node) {
  const auto found = std::ranges::equal_range(analysis.violations(), node, {}, &dataflow::NodeViolation::node);
  return {found.begin(), found.end()};
}

/// The value has a declared type, and a fact although nothing could be derived of its node.
bool counts_declaration(const dataflow::Analysis& analysis, ValueId value) {
  const Value& self = analysis.model().value(value);
  if (self.type == nullptr || analysis.fact_id(value) == FactId::kTop) return false;
  if (!analysis.reason(self.producer).empty()) return true;
  if (!self.type->ranked) return false;
  const auto is_open = [&](ValueId operand) {
    return operand != ValueId::kAbsent && (analysis.fact(operand).kind == ValueKind::kUnknown ||
                                           !analysis.facts().is_ranked(analysis.fact(operand).shape));
  };
  return std::ranges::any_of(analysis.operands(self.producer), is_open);
}

/// " on cuda:0"; nothing where the model says nothing about devices.
std::string device_text(const placement::Placement& placement, ValueId value) {
  const std::vector<std::string> devices = placement.devices(value);
  return placement.any_source() && !devices.empty() ? fmt::format(" on {}", fmt::join(devices, " or ")) : std::string();
}

/// The line of the user's program; nothing for a line of the model itself.
std::string code_text(const Model& model, const findings::SourceLocation& place) {
  const std::size_t indent = place.source.find_first_not_of(" \t");
  if (indent == std::string::npos || place.file == model.path) return {};
  return fmt::format("    {} | {}\n", place.line, escape_for_display(std::string_view(place.source).substr(indent)));
}

/// What the names `?1`, `?2`, ... stand for, a line each.
std::string legend(const dataflow::Analysis& analysis, const ExtentNames& names, const std::vector<ValueId>& met_at) {
  const Model& model = analysis.model();
  const DimPool& dims = analysis.facts().dims();
  std::string text;
  for (std::size_t i = 0; i < met_at.size(); ++i) {
    if (i == kMaxNamed) {
      text += fmt::format("(and {} more such extents)\n", met_at.size() - i);
      break;
    }
    const Dim symbol = names.symbols()[i];
    const auto is_meant = [&](Dim dim) { return is_in(dims, symbol, dim); };
    const ValueId first = first_with(analysis, met_at[i], [&](ValueId id) { return has_dim(analysis, id, is_meant); });
    if (analysis.meter().is_spent()) {
      text += fmt::format("?{} and those after it: to find where they began takes too long\n", i + 1);
      break;
    }
    const bool is_input = model.value(first).origin == ValueOrigin::kInput;
    text += fmt::format(
        "?{} is {} of {}: {}\n", i + 1, places_text(analysis, first, is_meant), source_text(model, first),
        is_input ? "its declaration gives neither a number nor a name" : to_text(dims.fresh_reason(symbol)));
  }
  return text;
}

}  // namespace

std::string why_text(const WhySources& from, ValueId value) {
  const dataflow::Analysis& analysis = from.analysis;
  analysis.meter().begin_reports();
  const Model& model = analysis.model();
  findings::LocationResolver places(model, from.source_root);
  ExtentNames names(analysis.facts());
  std::vector<ValueId> met_at;  // where each of the names was met
  std::string text;
  std::vector<ValueId> pending{value};
  std::set<ValueId> visited{value};
  int nodes = 0, others = 0;
  for (std::size_t next = 0; next < pending.size(); ++next) {
    const ValueId current = pending[next];
    const Value& self = model.value(current);
    if (self.origin != ValueOrigin::kNode && ++others > kMaxOthers) continue;
    const std::string of = self.graph == GraphId::kMain
                               ? ""
                               : fmt::format(" of graph `{}`", escape_for_display(model.graph_path(self.graph)));
    text += fmt::format("{}{} is {}{}\n", name_of(model, current), of, fact_text(analysis, current, names),
                        device_text(from.placement, current));
    const std::string unknown = unknown_lines(analysis, current, current == value);
    text += unknown;
    met_at.resize(names.symbols().size(), current);
    if (analysis.taint(current) != Taint()) text += "  partly assumed: an operand comes from a node that fails\n";
    if (self.origin != ValueOrigin::kNode) {
      text += fmt::format("  it is {}\n", word_for(model, current));
      continue;
    }
    if (++nodes > kMaxNodes) {
      text += fmt::format("  (the chain continues beyond {} nodes)\n", kMaxNodes);
      break;
    }
    text += "  made by " + node_text(model, self.producer);
    const findings::SourceLocation& place = places.of(self.producer).place;
    text += place.known() ? fmt::format(" at {}:{}\n", escape_for_display(place.file), place.line) : "\n";
    text += code_text(model, place);
    for (const dataflow::NodeViolation& violation : violations_of(analysis, self.producer))
      text += fmt::format("  it fails: {}\n", findings::violation_text(analysis, violation));
    if (counts_declaration(analysis, current))
      text += "  the model declares its type, which is used where the operands determine nothing\n";
    if (!analysis.is_visited(self.producer) && analysis.gap(self.producer) == dataflow::Gap::kNone)
      text += "  no execution reaches that node\n";
    if (const std::string_view reason = analysis.reason(self.producer); !reason.empty() && unknown.empty())
      text += fmt::format("  not known more precisely: {}\n", reason);
    const auto enqueue = [&](ValueId id) {
      if (id != ValueId::kAbsent && visited.insert(id).second) pending.push_back(id);
    };
    for (const ValueId operand : analysis.operands(self.producer)) enqueue(operand);
    for (const ValueId made : made_of(model, self.producer, self)) enqueue(made);
  }
  if (others > kMaxOthers) text += fmt::format("(and {} more inputs and initializers)\n", others - kMaxOthers);
  // The result of a node with bodies began in these, which are printed above, not with an operand that is alike.
  const NodeId producer = model.value(value).producer;
  const bool has_bodies = producer != NodeId::kNone && !made_of(model, producer, model.value(value)).empty();
  const auto origin = [&](Aspect aspect, std::string_view what) {
    if (has_bodies) return;
    const dataflow::Origin found = dataflow::origin_of(analysis, value, aspect);
    if (analysis.meter().is_spent()) {
      text += fmt::format("to find where the {} of {} began takes too long\n", what, name_of(model, value));
      return;
    }
    if (found.value == value) return;
    text += fmt::format("the {} of {} began at {}", what, name_of(model, value), name_of(model, found.value));
    text += found.node == NodeId::kNone
                ? fmt::format(", {}\n", word_for(model, found.value))
                : fmt::format(", made by node `{}`\n", escape_for_display(model.label(found.node)));
  };
  origin(Aspect::kDtype, "dtype");
  origin(Aspect::kShape, "shape");
  text += legend(analysis, names, met_at);
  return text;
}

namespace {

/// The values that a node computes a result from: its operands, then what its bodies give.
std::vector<ValueId> sources_of(const dataflow::Analysis& analysis, ValueId value) {
  const Model& model = analysis.model();
  const Value& self = model.value(value);
  std::vector<ValueId> sources;
  const auto add = [&](ValueId source) {
    if (source != ValueId::kAbsent && std::ranges::find(sources, source) == sources.end()) sources.push_back(source);
  };
  if (self.origin != ValueOrigin::kNode) return sources;
  for (const ValueId operand : analysis.operands(self.producer)) {
    analysis.meter().charge(sources.size() / 8);
    if (sources.size() < kMaxSources) add(operand);
  }
  for (const ValueId made : made_of(model, self.producer, self)) add(made);
  return sources;
}

/// What follows the type on a line of the tree: where the value came from, and what is wrong there.
std::string remarks(const dataflow::Analysis& analysis, ValueId value, findings::LocationResolver& places,
                    std::set<NodeId>& failed) {
  const Model& model = analysis.model();
  const Value& self = model.value(value);
  if (self.origin != ValueOrigin::kNode) return fmt::format(", {}", word_for(model, value));
  std::string text = ", made by " + node_text(model, self.producer);
  if (const findings::SourceLocation& place = places.of(self.producer).place; place.known())
    text += fmt::format(" at {}:{}", escape_for_display(place.file), place.line);
  const auto violations = violations_of(analysis, self.producer);
  if (!violations.empty() && !failed.insert(self.producer).second) return text + "; it fails, see above";
  for (const dataflow::NodeViolation& violation : violations)
    text += fmt::format("; it fails: {}", findings::violation_text(analysis, violation));
  return text;
}

}  // namespace

std::string why_tree(const WhySources& from, ValueId value, std::size_t depth) {
  struct Entry {
    ValueId value;
    std::size_t level;
  };
  const dataflow::Analysis& analysis = from.analysis;
  analysis.meter().begin_reports();
  const Model& model = analysis.model();
  findings::LocationResolver places(model, from.source_root);
  ExtentNames names(analysis.facts());
  std::vector<ValueId> met_at;
  std::set<ValueId> expanded;
  std::set<NodeId> failed;  // what is wrong with them is said
  std::string text;
  int lines = 0;
  // A stack and no recursion: models may be deep.
  std::vector<Entry> pending{{value, 0}};
  while (!pending.empty()) {
    const Entry entry = pending.back();
    pending.pop_back();
    if (++lines > kMaxLines) {
      text += fmt::format("(the tree continues beyond {} lines)\n", kMaxLines);
      break;
    }
    if (text.size() > kMaxTreeBytes) {
      text += fmt::format("(the tree continues beyond {} MiB of text)\n", kMaxTreeBytes >> 20);
      break;
    }
    text.append(2 * std::min(entry.level, kMaxIndent), ' ');
    text += fmt::format("{}: {}{}{}", name_of(model, entry.value), fact_text(analysis, entry.value, names),
                        device_text(from.placement, entry.value), remarks(analysis, entry.value, places, failed));
    met_at.resize(names.symbols().size(), entry.value);
    const std::vector<ValueId> sources = sources_of(analysis, entry.value);
    if (!sources.empty() && expanded.contains(entry.value)) {
      text += " (see above)";
    } else if (!sources.empty() && entry.level >= depth) {
      text += " ...";
    } else {
      expanded.insert(entry.value);
      for (auto source = sources.rbegin(); source != sources.rend(); ++source)
        pending.push_back({*source, entry.level + 1});
    }
    text += '\n';
  }
  return text + legend(analysis, names, met_at);
}

}  // namespace tensorlint::reports
