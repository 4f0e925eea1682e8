#include "analyzer/reports/show.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <iterator>
#include <set>

#include "analyzer/findings/escape.h"
#include "analyzer/reports/unknowns.h"

namespace tensorlint {
namespace {

constexpr std::size_t kMessageLength = 2000;

/// Why dims of a value's shape are not known, as far as the operands of its node do not have that already.
std::set<Unknown> new_unknowns(const Analysis& analysis, ValueId value) {
  std::set<Unknown> reasons;
  for (const Dim dim : analysis.facts().dims_of(analysis.fact(value).shape))
    if (dim.is_unknown()) reasons.insert(dim.reason());
  const Model& model = analysis.model();
  for (const ValueId operand : model.operands(model.node(model.value(value).producer)))
    std::erase_if(reasons, [&](Unknown reason) {
      return operand != ValueId::kAbsent &&
             has_dim(analysis, operand, [reason](Dim dim) { return dim == Dim(reason); });
    });
  return reasons;
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

}  // namespace

std::string bounds_text(const Fact& fact) {
  const Range whole = range_of(fact.dtypes), &range = fact.range;
  if (fact.kind != ValueKind::kTensor || range.is_everything() || range == whole) return {};
  const std::string lo = end_text(range.lo, -1), hi = end_text(range.hi, 1);
  if (range.lo == range.hi) return fmt::format(" in [{}, {}]", end_text(range.lo, 0), end_text(range.hi, 0));
  // The limits of a dtype say nothing; of bool they are the two values.
  if (fact.dtypes != DTypeSet(DType::kBool)) {
    if (range.hi == whole.hi) return " >= " + lo;
    if (range.lo == whole.lo) return " <= " + hi;
  }
  return fmt::format(" in [{}, {}]", lo, hi);
}

std::string show_text(const Analysis& analysis, const Placement& placement) {
  const Model& model = analysis.model();
  FactStore& facts = analysis.facts();
  std::string out;
  ExtentNames names(facts);
  const auto add_value = [&](ValueId value, std::string_view indent) {
    const Fact& fact = analysis.fact(value);
    std::size_t named = names.symbols().size();
    const FactId id = names.name(analysis.fact_id(value));
    fmt::format_to(std::back_inserter(out), "{}{}: {}", indent, escape_for_people(model.name_of(value)),
                   escape_for_people(facts.to_text(id), kMessageLength));
    out += bounds_text(fact);
    if (const auto devices = placement.devices(value); placement.any_source() && !devices.empty())
      fmt::format_to(std::back_inserter(out), " on {}", fmt::join(devices, " or "));
    if (model.value(value).origin == ValueOrigin::kNode) {
      for (; named < names.symbols().size(); ++named)
        fmt::format_to(std::back_inserter(out), "  # ?{}: {}", named + 1,
                       to_text(facts.dims().fresh_reason(names.symbols()[named])));
      for (const Unknown reason : new_unknowns(analysis, value))
        fmt::format_to(std::back_inserter(out), "  # ?: {}", to_text(reason));
    }
    out += '\n';
  };
  for (std::size_t g = 0; g < model.graphs.size(); ++g) {
    const Graph& graph = model.graphs[g];
    fmt::format_to(std::back_inserter(out), "{}{}\n", g == 0 ? "" : "\n",
                   escape_for_people(model.graph_path(static_cast<GraphId>(g))));
    for (const ValueId value : graph.inputs)
      if (value != ValueId::kAbsent) add_value(value, "  input ");
    for (const ValueId value : graph.initializers) add_value(value, "  initializer ");
    for (std::uint32_t n = graph.first_node; n < graph.first_node + graph.node_count; ++n) {
      const auto id = static_cast<NodeId>(n);
      const Node& node = model.nodes[n];
      const std::string label = escape_for_people(model.label(id));
      fmt::format_to(
          std::back_inserter(out), "  {}{}", label,
          label.starts_with('#') ? "" : fmt::format(" ({})", escape_for_people(model.text(model.op(node).name))));
      if (const std::string_view reason = analysis.reason(id); !reason.empty())
        fmt::format_to(std::back_inserter(out), "  # {}", escape_for_people(reason));
      out += '\n';
      for (const ValueId value : model.results(node))
        if (value != ValueId::kAbsent) add_value(value, "    ");
    }
  }
  return out;
}

}  // namespace tensorlint
