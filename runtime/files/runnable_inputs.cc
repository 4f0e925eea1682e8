#include "runtime/files/runnable_inputs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/ops/entry.h"
#include "passes/contract/contract.h"
#include "passes/contract/working_sizes.h"
#include "passes/dataflow/analysis.h"
#include "passes/dataflow/reached_values.h"

namespace tensorlint::runtime {
namespace {

/// What is given has its extents, and so have the axes of the other inputs that are called the same.
dataflow::AnalysisOptions options_for(const Model& model, std::span<const HostValue> given) {
  dataflow::AnalysisOptions options;
  const Graph& main = model.graph(GraphId::kMain);
  std::map<NameId, std::string> extents;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const TypeDecl* const type = model.value(main.inputs[i]).type;
    if (!given[i].is_tensor()) continue;
    const HostTensor& tensor = given[i].tensor();
    for (std::size_t axis = 0; type != nullptr && axis < std::min(type->dims.size(), tensor.rank()); ++axis)
      if (type->dims[axis].name != NameId::kEmpty)
        extents.try_emplace(type->dims[axis].name, std::to_string(tensor.extent(axis)));
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    const TypeDecl* const type = model.value(main.inputs[i]).type;
    if (type == nullptr || !type->ranked || extents.empty()) continue;
    dataflow::InputDeclaration& declared = options.values[std::string(model.name_of(main.inputs[i]))];
    declared.has_shape = true;
    for (const DimDecl& dim : type->dims) {
      const auto known = dim.name == NameId::kEmpty ? extents.end() : extents.find(dim.name);
      const std::string open(dim.name == NameId::kEmpty ? "?" : model.text(dim.name));
      declared.dims.push_back(dim.has_extent && dim.extent >= 0 ? std::to_string(dim.extent)
                              : known != extents.end()          ? known->second
                                                                : open);
    }
  }
  return options;
}

bool is_drawn(const Model& model, ValueId input, const HostValue& given) {
  const Value& value = model.value(input);
  return given.is_absent() && !value.has_default();
}

/// Nothing is said of windows that runtimes place differently over an axis that is too short for them, nor of what
/// follows: no fault of a model, but no sizes to run it with.
bool has_doubtful_extents(const contract::Prober& prober, const contract::Sizes& sizes) {
  const dataflow::Analysis solved = prober.solve(sizes);
  const Model& model = solved.model();
  return std::ranges::any_of(ids_below(model.values.size(), static_cast<ValueId>(1)), [&](ValueId value) {
    const Fact& fact = solved.fact(value);
    return fact.kind == ValueKind::kTensor && solved.facts().is_ranked(fact.shape) &&
           std::ranges::any_of(solved.facts().dims_of(fact.shape),
                               [](Dim dim) { return dim == Dim(Unknown::kTainted); });
  });
}

/// Sizes with which nothing fails: the drawn ones where they will do, since small runs are quick. Those where a branch
/// or a body fails may be too small for it.
contract::Sizes working_sizes(contract::Prober& prober, contract::Sizes drawn) {
  const contract::Probe* probe = prober.probe(drawn);
  if (probe != nullptr && probe->runs() && !probe->may_fail && !has_doubtful_extents(prober, drawn)) return drawn;
  const auto found = contract::find_working_sizes(prober);
  return found ? *found : drawn;
}

/// The extent along an axis of a value; nullopt: open.
std::optional<std::int64_t> extent_of(const dataflow::Analysis& analysis, ValueId value, std::int64_t axis) {
  const Fact& fact = analysis.fact(value);
  if (fact.kind != ValueKind::kTensor || !analysis.facts().is_ranked(fact.shape)) return std::nullopt;
  const std::span<const Dim> dims = analysis.facts().dims_of(fact.shape);
  const auto rank = static_cast<std::int64_t>(dims.size());
  if (axis < -rank || axis >= rank) return std::nullopt;
  return analysis.facts().dims().as_constant(dims[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)]);
}

/// Some index that the program computes is outside [-extent, extent) of that axis of `data`, or [0, extent).
bool has_index_outside(const dataflow::Analysis& analysis, ValueId indices, ValueId data, std::int64_t axis,
                       bool from_back = true, std::optional<std::int64_t> ignored = std::nullopt) {
  const auto extent = extent_of(analysis, data, axis);
  return extent && dataflow::index_outside(analysis, indices, from_back ? -*extent : 0, *extent, ignored).has_value();
}

/// GatherND and the like: one index for each axis from the first on, along the last axis, which a Concat makes.
bool has_tuple_outside(const dataflow::Analysis& analysis, ValueId indices, ValueId data) {
  const Model& model = analysis.model();
  std::span<const ValueId> parts(&indices, 1);
  const NodeId producer = model.value(indices).producer;
  if (producer != NodeId::kNone && model.operands(model.node(producer)).size() > 1)
    parts = model.operands(model.node(producer));
  if (extent_of(analysis, indices, -1) != static_cast<std::int64_t>(parts.size())) return false;
  constexpr std::uint64_t kStepsOfPart = 8;
  for (std::size_t axis = 0; axis < parts.size() && !analysis.meter().is_spent(); ++axis) {
    analysis.meter().charge(kStepsOfPart);
    const bool is_one_wide = parts.size() == 1 || extent_of(analysis, parts[axis], -1) == 1;
    if (is_one_wide && has_index_outside(analysis, parts[axis], data, static_cast<std::int64_t>(axis))) return true;
  }
  return false;
}

/// The node gets an index that is computed, and outside of what it indexes.
bool may_miss(const dataflow::Analysis& analysis, NodeId id) {
  const Model& model = analysis.model();
  const Node& node = model.node(id);
  const Operator& op = model.op(node);
  const ops::OpEntry* const entry = ops::find_entry(model.text(op.domain), model.text(op.name), op.opset);
  const std::span<const ValueId> operands = model.operands(node);
  if (entry == nullptr || op.schema == nullptr || operands.size() < 2) return false;
  const auto attribute = [&](std::string_view name) -> std::optional<std::int64_t> {
    for (const Attribute& each : model.attributes(node))
      if (each.name == name) return each.i;
    return std::nullopt;
  };
  if (entry->loss() && ops::takes_class_indices(*entry->loss()))
    return has_index_outside(analysis, operands[1], operands[0], 1, false, attribute("ignore_index"));
  const int index = ops::operand_with(*op.schema, *entry, ops::OperandRole::kIndex);
  if (index < 0 || static_cast<std::size_t>(index) >= operands.size()) return false;
  const ValueId indices = operands[static_cast<std::size_t>(index)];
  if (op.schema->attribute("axis") == nullptr) return has_tuple_outside(analysis, indices, operands[0]);
  return has_index_outside(analysis, indices, operands[0], attribute("axis").value_or(0));
}

/// What fails when the planned inputs have their extents, and elements their bounds.
class PlannedFailures {
 public:
  PlannedFailures(const Model& model, dataflow::AnalysisOptions options, const InputPlan& plan)
      : model_(model),
        options_(std::move(options)),
        meter_(*options_.meter),
        left_(kMostVisits / std::max<std::size_t>(model.nodes.size(), 1)) {
    for (const auto& [input, extents] : plan.extents) {
      dataflow::InputDeclaration& declared = declaration(input);
      declared.has_shape = true;
      declared.dims.clear();
      for (const std::int64_t extent : extents) declared.dims.push_back(std::to_string(extent));
    }
  }

  void set_bounds(ValueId input, InputPlan::Bounds bounds) {
    declaration(input).range = {static_cast<double>(bounds.least), static_cast<double>(bounds.most), false};
  }
  /// nullopt: as much was solved as a run may cost before it begins.
  std::optional<std::size_t> count() {
    if (left_ == 0 || meter_.is_spent()) return std::nullopt;
    --left_;
    meter_.charge(kStepsOfValue * model_.values.size() + kStepsOfDeclaration * options_.values.size());
    const dataflow::Analysis solved = dataflow::analyse(model_, options_);
    std::size_t failures = solved.violations().size();
    for (const NodeId node : model_.nodes.ids()) failures += may_miss(solved, node) ? 1 : 0;
    if (meter_.is_spent()) return std::nullopt;  // not all that fails was found
    return failures;
  }

 private:
  static constexpr std::size_t kMostVisits = std::size_t{1} << 17;  // nodes that are solved, in all analyses
  static constexpr std::uint64_t kStepsOfValue = 4, kStepsOfDeclaration = 16;
  dataflow::InputDeclaration& declaration(ValueId input) { return options_.values[std::string(model_.name_of(input))]; }

  const Model& model_;
  dataflow::AnalysisOptions options_;
  Meter& meter_;
  std::size_t left_;
};

/// The largest elements with which nothing more may fail than with the least one alone: of indices that are computed
/// from them, which the contract's probes do not see, since a node gets others beside these.
void narrow_elements(PlannedFailures& failures, ValueId input, InputPlan& plan) {
  const auto known = plan.elements.find(input);
  InputPlan::Bounds bounds = known == plan.elements.end() ? kUsualElements : known->second;
  failures.set_bounds(input, {bounds.least, bounds.least});
  const auto fewest = failures.count();
  const auto fails = [&](std::int64_t most) {
    failures.set_bounds(input, {bounds.least, most});
    const auto found = failures.count();
    return !fewest || !found || *found > *fewest;
  };
  if (fewest && fails(bounds.most)) {
    std::int64_t fits = bounds.least, fails_at = bounds.most;
    while (fails_at - fits > 1) {
      const std::int64_t middle = fits + (fails_at - fits) / 2;
      (fails(middle) ? fails_at : fits) = middle;
    }
    bounds.most = fits;
    plan.elements[input] = bounds;
  }
  failures.set_bounds(input, bounds);
}

}  // namespace

InputPlan runnable_inputs(const Model& model, std::uint64_t seed, std::span<const HostValue> given,
                          std::shared_ptr<Meter> meter) {
  InputPlan plan;
  dataflow::AnalysisOptions options = options_for(model, given);
  options.meter = std::move(meter);
  const dataflow::Analysis analysis = dataflow::analyse(model, options);
  if (contract::certain_failure(analysis)) return plan;
  contract::Prober prober(analysis, options);
  contract::Sizes sizes(prober.extents().size());
  Random random(seed);
  for (std::int64_t& size : sizes) size = drawn_extent(random);
  sizes = working_sizes(prober, std::move(sizes));

  const FactStore& facts = analysis.facts();
  const Graph& main = model.graph(GraphId::kMain);
  std::vector<ValueId> integers;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Fact& fact = analysis.fact(main.inputs[i]);
    if (!is_drawn(model, main.inputs[i], given[i]) || fact.kind != ValueKind::kTensor || !facts.is_ranked(fact.shape))
      continue;
    if (fact.dtypes.proves(DTypeSet::integers())) integers.push_back(main.inputs[i]);
    Extents extents;
    for (const Dim dim : facts.dims_of(fact.shape))
      if (const auto extent = prober.evaluate(dim, sizes)) extents.push_back(*extent);
    if (extents.size() == facts.dims_of(fact.shape).size()) plan.extents[main.inputs[i]] = std::move(extents);
  }
  if (integers.empty()) return plan;
  for (const contract::Requirement& line : contract::find_contract(analysis, options).requirements) {
    if (line.kind != contract::RequirementKind::kRange) continue;
    const auto least = line.least ? prober.evaluate(*line.least, sizes) : std::optional<std::int64_t>(0);
    const auto most = line.most ? prober.evaluate(*line.most, sizes) : least;
    if (!least || !most || *least > *most) continue;
    // Negative indices count from the end: valid, and nobody's labels.
    const std::int64_t first = *most >= 0 ? std::max<std::int64_t>(*least, 0) : *least;
    plan.elements[line.elements_of] = {first, *most};
  }
  PlannedFailures failures(model, options, plan);
  for (const ValueId input : integers) {
    const auto known = plan.elements.find(input);
    failures.set_bounds(input, known == plan.elements.end() ? kUsualElements : known->second);
  }
  for (const ValueId input : integers) narrow_elements(failures, input, plan);
  return plan;
}

}  // namespace tensorlint::runtime
