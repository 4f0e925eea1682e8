#include "analyzer/reports/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyzer/findings/input_report.h"
#include "analyzer/findings/source_location.h"
#include "base/escape.h"
#include "base/glob.h"

namespace tensorlint::reports {
namespace {

constexpr std::size_t kFactLength = 2000;
constexpr std::size_t kShownOperands = 32;  // of a node, on a line

/// Why dims of a value's shape are not known, as far as the operands of its node do not have that already; nothing
/// where to look at these takes too long.
std::set<Unknown> new_unknowns(const dataflow::Analysis& analysis, ValueId value) {
  std::set<Unknown> reasons;
  for (const Dim dim : analysis.facts().dims_of(analysis.fact(value).shape))
    if (dim.is_unknown()) reasons.insert(dim.reason());
  for (const ValueId operand : analysis.operands(analysis.model().value(value).producer)) {
    if (reasons.empty()) break;
    std::erase_if(reasons, [&](Unknown reason) {
      return operand != ValueId::kAbsent &&
             has_dim(analysis, operand, [reason](Dim dim) { return dim == Dim(reason); });
    });
  }
  return analysis.meter().is_spent() ? std::set<Unknown>() : reasons;
}

/// A bound in at most six digits where it is no integer, rounded up (`away` = 1) or down (-1) so that it still holds.
std::string end_text(double value, int away) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (value == 0) return "0";  // of either sign
  if (std::fabs(value) < 1e15 && value == std::floor(value)) return fmt::format("{:.0f}", value);
  const std::string shortened = fmt::format("{:.6g}", value);
  const double rounded = std::strtod(shortened.c_str(), nullptr);
  if (rounded == value || (rounded - value) * away > 0) return shortened;
  const double last_digit = std::pow(10.0, std::floor(std::log10(std::fabs(value))) - 5);
  const std::string next = fmt::format("{:.6g}", value + away * last_digit);
  return away != 0 && (std::strtod(next.c_str(), nullptr) - value) * away > 0 ? next : fmt::format("{}", value);
}

/// An element; the ends of int64, which stand for "to the end" in Slice and the like, by name.
std::string element_text(const DimPool& dims, Dim element) {
  const auto number = dims.as_constant(element);
  if (number == std::numeric_limits<std::int64_t>::max()) return "INT64_MAX";
  if (number == std::numeric_limits<std::int64_t>::min()) return "INT64_MIN";
  return escape_for_display(dims.to_text(element));
}

/// The contents of a small tensor: " = {1, N}", of a scalar " = 1"; nothing where they are not known.
std::string contents_text(const FactStore& facts, const Fact& fact) {
  const Content* content = facts.content(fact.content);
  if (content == nullptr || content->size() > kShownElements) return {};
  if (std::ranges::all_of(content->integers, [](Dim element) { return element.is_unknown(); }) &&
      content->floats.empty() && content->size() > 0)
    return {};
  std::vector<std::string> elements;
  for (const Dim element : content->integers) elements.push_back(element_text(facts.dims(), element));
  for (const double element : content->floats) elements.push_back(fmt::format("{:g}", element));
  const bool is_scalar = facts.is_ranked(fact.shape) && facts.dims_of(fact.shape).empty() && elements.size() == 1;
  return is_scalar ? " = " + elements.front() : fmt::format(" = {{{}}}", fmt::join(elements, ", "));
}

}  // namespace

std::string bounds_text(const Fact& fact) {
  const Range whole = range_of(fact.dtypes), &range = fact.range;
  if (fact.kind != ValueKind::kTensor || range.is_everything() || range == whole) return {};
  const std::string lo = end_text(range.lo, -1), hi = end_text(range.hi, 1);
  if (range.lo == range.hi && !range.nan) return " = " + end_text(range.lo, 0);
  // The limits of a dtype say nothing; of bool they are the two values.
  if (fact.dtypes != DTypeSet(DType::kBool)) {
    if (range.hi == whole.hi) return " >= " + lo;
    if (range.lo == whole.lo) return " <= " + hi;
  }
  return fmt::format(" in [{}, {}]", lo, hi);
}

std::vector<std::string_view> assumed_aspects(Taint taint) {
  std::vector<std::string_view> aspects;
  if (taint.has(Aspect::kDtype)) aspects.emplace_back("dtype");
  if (taint.has(Aspect::kShape)) aspects.emplace_back("shape");
  if (taint.has(Aspect::kValue)) aspects.emplace_back("values");
  return aspects;
}

std::string fact_text(const dataflow::Analysis& analysis, ValueId value, ExtentNames& names) {
  FactStore& facts = analysis.facts();
  const FactId id = names.name(analysis.fact_id(value));
  const Fact& fact = facts.fact(id);
  const std::string contents = contents_text(facts, fact);
  return escape_for_display(facts.to_text(id), kFactLength) + (contents.empty() ? bounds_text(fact) : contents);
}

bool ShowFilter::matches(const Model& model, NodeId id, findings::LocationResolver& locations) const {
  if (!node.empty() && !matches_name(node, model.label(id))) return false;
  if (module.empty()) return true;
  // A module contains those below it: `encoder` is also the module of what is in `encoder.layers.0`.
  const std::string of = module_of(model, id, locations);
  return !of.empty() && matches_name(module + ".*", of + ".");
}

std::string module_of(const Model& model, NodeId node, findings::LocationResolver& locations) {
  if (std::string known = locations.module(node); !known.empty()) return known;
  // Exporters that write no scopes name nodes by them: `/encoder/layers.0/MatMul`.
  const std::string_view name = model.text(model.node(node).name);
  const std::size_t last = name.rfind('/');
  if (!name.starts_with('/') || last == 0) return {};
  std::string module(name.substr(1, last - 1));
  std::ranges::replace(module, '/', '.');
  return module;
}

namespace {

class ShowPrinter {
 public:
  ShowPrinter(const dataflow::Analysis& analysis, const placement::Placement& placement, const ShowFilter& filter,
              const std::function<void(std::string_view)>& write)
      : analysis_(analysis),
        model_(analysis.model()),
        placement_(placement),
        filter_(filter),
        locations_(model_),
        names_(analysis.facts()),
        type_room_(kTypeBytes + kTypeBytesPerNode * analysis.model().nodes.size()),
        write_(write) {
    for (const dataflow::NodeViolation& violation : analysis.violations()) failed_.insert(violation.node);
  }

  void print() {
    analysis_.meter().begin_reports();
    for (std::size_t g = 0; g < model_.graphs.size(); ++g) add_graph(static_cast<GraphId>(g));
    const bool is_partial = analysis_.ran_out() || analysis_.meter().is_partial();
    if (has_left_out_)
      fmt::format_to(std::back_inserter(out_), "\n{}: types past the size that the report may have are left out\n",
                     kLeftOut);
    if (is_partial && is_begun_) fmt::format_to(std::back_inserter(out_), "\n{}\n", findings::kPartialText);
    write_(out_);
  }

 private:
  static constexpr std::size_t kPart = std::size_t{1} << 20;
  /// Types in one report, at least, and for each node.
  static constexpr std::size_t kTypeBytes = std::size_t{4} << 20, kTypeBytesPerNode = 512;
  static constexpr std::string_view kLeftOut = "(...)";

  void add_graph(GraphId id) {
    const Graph& graph = model_.graph(id);
    std::vector<NodeId> nodes;
    for (const NodeId node : graph.nodes)
      if (!filter_.any() || filter_.matches(model_, node, locations_)) nodes.push_back(node);
    if (filter_.any() && nodes.empty()) return;
    fmt::format_to(std::back_inserter(out_), "{}{}\n", is_begun_ ? "\n" : "",
                   escape_for_display(model_.graph_path(id)));
    is_begun_ = true;
    write_large();
    if (!filter_.any()) {
      for (const ValueId value : graph.inputs)
        if (value != ValueId::kAbsent) add_value(value, "  input ");
      for (const ValueId value : graph.initializers) add_value(value, "  initializer ");
    }
    for (const NodeId node : nodes) add_node(node);
  }

  void write_large() {
    if (out_.size() >= kPart) write_(out_), out_.clear();
  }

  void add_node(NodeId id) {
    write_large();
    const Node& node = model_.node(id);
    const std::string label = escape_for_display(model_.label(id));
    fmt::format_to(
        std::back_inserter(out_), "  {}{}", label,
        label.starts_with('#') ? "" : fmt::format(" ({})", escape_for_display(model_.text(model_.op(node).name))));
    // What is filtered does not show where the operands come from, so they get lines of their own.
    if (!filter_.any()) out_ += operand_names(node);
    if (const std::string_view reason = analysis_.reason(id); !reason.empty())
      fmt::format_to(std::back_inserter(out_), "  # {}", escape_for_display(reason));
    out_ += '\n';
    if (filter_.any()) {
      std::set<ValueId> seen;  // an operand that is used twice is shown once
      for (const ValueId value : model_.operands(node))
        if (value != ValueId::kAbsent && seen.insert(value).second) add_value(value, "    <- ");
    }
    for (const ValueId value : model_.results(node))
      if (value != ValueId::kAbsent) add_value(value, "    ");
  }

  std::string operand_names(const Node& node) const {
    std::vector<std::string> names;
    const std::span<const ValueId> operands = model_.operands(node);
    for (const ValueId value : operands.first(std::min(operands.size(), kShownOperands)))
      names.push_back(value == ValueId::kAbsent ? "_" : escape_for_display(model_.name_of(value)));
    if (operands.size() > kShownOperands) names.push_back(fmt::format("and {} more", operands.size() - kShownOperands));
    return names.empty() ? "" : fmt::format(" <- {}", fmt::join(names, ", "));
  }

  /// Operands are shown at each node that reads them.
  const std::string& known_text(ValueId value) {
    if (texts_bytes_ > kPart) texts_.clear(), texts_bytes_ = 0;
    const auto [known, is_new] = texts_.try_emplace(analysis_.fact_id(value));
    if (is_new) known->second = fact_text(analysis_, value, names_), texts_bytes_ += known->second.size();
    return known->second;
  }

  void add_type(ValueId value) {
    if (type_room_ == 0) {
      has_left_out_ = true;
      out_ += kLeftOut;
      return;
    }
    const std::size_t begin = out_.size();
    out_ += known_text(value);
    if (const auto devices = placement_.devices(value); placement_.any_source() && !devices.empty())
      fmt::format_to(std::back_inserter(out_), " on {}", fmt::join(devices, " or "));
    type_room_ -= std::min(type_room_, out_.size() - begin);
  }

  void add_value(ValueId value, std::string_view indent) {
    write_large();
    std::size_t named = names_.symbols().size();
    fmt::format_to(std::back_inserter(out_), "{}{}: ", indent, escape_for_display(model_.name_of(value)));
    add_type(value);
    if (model_.value(value).origin == ValueOrigin::kNode) {
      for (; named < names_.symbols().size(); ++named)
        fmt::format_to(std::back_inserter(out_), "  # ?{}: {}", named + 1,
                       to_text(analysis_.facts().dims().fresh_reason(names_.symbols()[named])));
      for (const Unknown reason : new_unknowns(analysis_, value))
        fmt::format_to(std::back_inserter(out_), "  # ?: {}", to_text(reason));
    }
    if (const auto assumed = assumed_aspects(analysis_.taint(value)); !assumed.empty())
      fmt::format_to(
          std::back_inserter(out_), "  # assumed {}: {}", fmt::join(assumed, " and "),
          failed_.contains(model_.value(value).producer) ? "the node fails" : "depends on a node that fails");
    out_ += '\n';
  }

  const dataflow::Analysis& analysis_;
  const Model& model_;
  const placement::Placement& placement_;
  const ShowFilter& filter_;
  findings::LocationResolver locations_;
  ExtentNames names_;
  std::size_t type_room_;
  const std::function<void(std::string_view)>& write_;
  std::string out_;
  bool is_begun_ = false, has_left_out_ = false;
  std::unordered_map<FactId, std::string> texts_;
  std::size_t texts_bytes_ = 0;
  std::set<NodeId> failed_;
};

}  // namespace

void show_text(const dataflow::Analysis& analysis, const placement::Placement& placement, const ShowFilter& filter,
               const std::function<void(std::string_view)>& write) {
  ShowPrinter(analysis, placement, filter, write).print();
}

}  // namespace tensorlint::reports
