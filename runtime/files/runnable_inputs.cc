#include "runtime/files/runnable_inputs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "passes/contract/contract.h"
#include "passes/contract/working_sizes.h"
#include "passes/dataflow/analysis.h"

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
  return given.is_absent() && value.initializer == nullptr && value.sparse_initializer == nullptr;
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

}  // namespace

InputPlan runnable_inputs(const Model& model, std::uint64_t seed, std::span<const HostValue> given) {
  InputPlan plan;
  const dataflow::AnalysisOptions options = options_for(model, given);
  const dataflow::Analysis analysis = dataflow::analyse(model, options);
  if (contract::certain_failure(analysis) != nullptr) return plan;
  contract::Prober prober(analysis, options);
  contract::Sizes sizes(prober.extents().size());
  Random random(seed);
  for (std::int64_t& size : sizes) size = drawn_extent(random);
  sizes = working_sizes(prober, std::move(sizes));

  const FactStore& facts = analysis.facts();
  const Graph& main = model.graph(GraphId::kMain);
  bool has_integers = false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Fact& fact = analysis.fact(main.inputs[i]);
    if (!is_drawn(model, main.inputs[i], given[i]) || fact.kind != ValueKind::kTensor || !facts.is_ranked(fact.shape))
      continue;
    has_integers = has_integers || fact.dtypes.proves(DTypeSet::integers());
    Extents extents;
    for (const Dim dim : facts.dims_of(fact.shape))
      if (const auto extent = prober.evaluate(dim, sizes)) extents.push_back(*extent);
    if (extents.size() == facts.dims_of(fact.shape).size()) plan.extents[main.inputs[i]] = std::move(extents);
  }
  if (!has_integers) return plan;
  for (const contract::Requirement& line : contract::find_contract(analysis, options).requirements) {
    if (line.kind != contract::RequirementKind::kRange) continue;
    const auto least = line.least ? prober.evaluate(*line.least, sizes) : std::optional<std::int64_t>(0);
    const auto most = line.most ? prober.evaluate(*line.most, sizes) : least;
    if (!least || !most || *least > *most) continue;
    // Negative indices count from the end: valid, and nobody's labels.
    const std::int64_t first = *most >= 0 ? std::max<std::int64_t>(*least, 0) : *least;
    plan.elements[line.elements_of] = {first, *most};
  }
  return plan;
}

}  // namespace tensorlint::runtime
