#include "passes/contract/probing.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tensorlint::contract {
namespace {

/// With sizes a loop has a number of iterations, and a condition a value: a probe may cost more than the solve before
/// it, but not without bound.
constexpr std::uint64_t kDearer = 4, kVisitsAtLeast = 1024;

/// An input that is declared anew: its extents as text, and all that knows of them.
constexpr std::uint64_t kStepsPerInput = 256;

/// Of one probe: the first ones decide.
constexpr std::size_t kMaxFailures = 256;

}  // namespace

Prober::Prober(const dataflow::Analysis& analysis, dataflow::AnalysisOptions options, ProbeBudget budget)
    : analysis_(analysis),
      options_(std::move(options)),
      visits_(std::max<std::uint64_t>({analysis.visits(), analysis.model().nodes.size(), 1})),
      budget_(budget) {
  find_extents();
  for (const dataflow::NodeViolation& violation : analysis.violations())
    known_.emplace(violation.node, violation.constraint);
}

void Prober::find_extents() {
  if (analysis_.model().graphs.empty()) return;
  for (const ValueId input : analysis_.model().graph(GraphId::kMain).inputs)
    if (input != ValueId::kAbsent) add_extents(input);
}

void Prober::add_extents(ValueId input) {
  // With an initializer an input is a constant, as long as nobody passes another value.
  if (analysis_.model().value(input).has_default()) return;
  const Fact& fact = analysis_.fact(input);
  if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked) return;
  const DimPool& pool = analysis_.facts().dims();
  const std::span<const Dim> dims = analysis_.facts().dims_of(fact.shape);
  bool is_open = false;
  for (std::uint32_t axis = 0; axis < dims.size(); ++axis) {
    for (const Dim symbol : pool.symbols(dims[axis])) {
      const bool is_bare = dims[axis] == symbol;
      const auto known = extent_of(symbol);
      if (known && is_bare && !extents_[*known].is_bare) extents_[*known] = {symbol, input, axis, true};
      if (!known && extents_.size() >= kMaxExtents) continue;
      if (!known) extents_.push_back({symbol, input, axis, is_bare});
      is_open = true;
    }
  }
  if (is_open) open_inputs_.push_back(input);
}

std::optional<std::size_t> Prober::extent_of(Dim symbol) const {
  const auto found = std::ranges::find(extents_, symbol, &OpenExtent::symbol);
  if (found == extents_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - extents_.begin());
}

bool Prober::has_declared_range(ValueId input) const {
  const auto declared = options_.values.find(analysis_.model().name_of(input));
  return declared != options_.values.end() && declared->second.range;
}

std::optional<std::int64_t> Prober::evaluate(Dim dim, const Sizes& sizes) const {
  Meter& meter = analysis_.facts().meter();
  if (meter.is_spent()) return std::nullopt;
  std::uint64_t looked_up = 1;
  const auto value = analysis_.facts().dims().evaluate(dim, [&](Dim symbol) -> std::optional<std::int64_t> {
    const auto extent = extent_of(symbol);
    ++looked_up;
    return extent ? std::optional(sizes[*extent]) : std::nullopt;
  });
  constexpr std::uint64_t kExtentsPerStep = 16;
  meter.charge(looked_up * (1 + extents_.size() / kExtentsPerStep));
  return value;
}

std::size_t Prober::probes_left() const {
  // Loops and calls that are followed many times cost in each probe what they cost in the solve.
  if (visits_ > kVisitsAtLeast + kDearer * analysis_.model().nodes.size()) return 0;
  if (analysis_.facts().meter().is_spent()) return 0;
  return std::min<std::uint64_t>(budget_.probes, budget_.visits / visits_);
}

const Probe* Prober::probe(const Sizes& sizes, ElementValue elements) {
  auto found = done_.find({sizes, elements});
  if (found == done_.end()) {
    if (probes_left() == 0) return nullptr;
    const dataflow::Analysis solved = solve(sizes, elements);
    --budget_.probes;
    budget_.visits -= std::min(budget_.visits, std::max(solved.visits(), visits_));
    found =
        done_.emplace(std::pair(sizes, elements), solved.ran_out() ? std::nullopt : std::optional(read(solved))).first;
  }
  return found->second ? &*found->second : nullptr;
}

dataflow::Analysis Prober::solve(const Sizes& sizes, ElementValue elements) const {
  dataflow::AnalysisOptions options = options_;
  options.max_visits = kVisitsAtLeast + kDearer * visits_;
  const Model& model = analysis_.model();
  analysis_.facts().meter().charge(kStepsPerInput * open_inputs_.size());
  for (const ValueId input : open_inputs_) {
    dataflow::InputDeclaration& declared = options.values[std::string(model.name_of(input))];
    declared.has_shape = true;
    declared.dims.clear();
    for (const Dim dim : analysis_.facts().dims_of(analysis_.fact(input).shape)) {
      const auto extent = evaluate(dim, sizes);
      declared.dims.push_back(extent && *extent >= 0 ? std::to_string(*extent) : "?");
    }
  }
  if (elements.input != ValueId::kAbsent) {
    const auto value = static_cast<double>(elements.value);
    options.values[std::string(model.name_of(elements.input))].range = {value, value, false};
  }
  return dataflow::analyse(model, options);
}

Probe Prober::read(const dataflow::Analysis& solved) const {
  Probe probe;
  for (std::size_t i = 0; i < solved.violations().size(); ++i) {
    const dataflow::NodeViolation& violation = solved.violations()[i];
    // What names no operand is about the result alone: too large for these sizes, not for all but one.
    probe.is_too_large = probe.is_too_large || violation.operands.empty();
    if (ops::is_about_declared_shape(violation.kind()) || violation.operands.empty() ||
        fails_anyway(violation.node, *violation.constraint))
      continue;
    const bool certain = violation.certainty == ops::Certainty::kMust && is_always_reached(violation);
    if (certain && probe.failures.size() < kMaxFailures)
      probe.failures.push_back({violation.node, violation.constraint, i});
    probe.may_fail = probe.may_fail || !certain;
  }
  return probe;
}

/// False in branches and bodies, which need not run.
bool Prober::is_always_reached(const dataflow::NodeViolation& violation) const {
  const Model& model = analysis_.model();
  const auto is_conditional = [&](NodeId node) {
    return node == NodeId::kNone || model.graph(model.node(node).graph).kind == GraphKind::kSubgraph;
  };
  return !is_conditional(violation.node) && std::ranges::none_of(violation.calls, is_conditional);
}

}  // namespace tensorlint::contract
