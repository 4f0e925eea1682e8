#include "analyzer/reports/unknowns.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace tensorlint::reports {

Dim ExtentNames::name(Dim dim) {
  if (dim.is_unknown()) return dim;
  const auto [known, is_new] = named_dims_.try_emplace(dim.id(), dim);
  if (is_new) known->second = name_symbols(dim);
  return known->second;
}

Dim ExtentNames::name_symbols(Dim dim) {
  DimPool& dims = facts_.dims();
  if (dims.is_named(dim)) return dim;
  const Dim named = dims.substitute(dim, [&](Dim symbol) -> std::optional<Dim> {
    if (dims.is_named(symbol)) return std::nullopt;
    const auto [number, is_new] = numbers_.try_emplace(symbol.id(), symbols_.size() + 1);
    if (is_new) symbols_.push_back(symbol);
    // With the symbol's own bounds, so that the expression stays as it is.
    return dims.symbol(fmt::format("?{}", number->second), dims.bounds(symbol).lo);
  });
  return named.is_unknown() ? dim : named;
}

FactId ExtentNames::name(FactId id) {
  if (id == FactId::kAbsent || id == FactId::kTop) return id;
  if (const auto known = named_.find(id); known != named_.end()) return known->second;
  Fact fact = facts_.fact(id);
  const auto renamed = [this](std::span<const Dim> list) {
    std::vector<Dim> result(list.begin(), list.end());
    for (Dim& dim : result) dim = name(dim);
    return result;
  };
  if (facts_.is_ranked(fact.shape)) fact.shape = facts_.intern_shape(renamed(facts_.dims_of(fact.shape)));
  if (const Content* content = facts_.content(fact.content);
      content != nullptr && content->floats.empty() && content->size() <= kShownElements) {
    Content named;
    named.integers = renamed(content->integers);
    fact.content = facts_.intern_content(std::move(named));
  }
  if (fact.element != FactId::kTop) fact.element = name(fact.element);
  return named_[id] = facts_.intern(fact);
}

bool has_dim(const dataflow::Analysis& analysis, ValueId value, const std::function<bool(Dim)>& is_meant) {
  const FactStore& facts = analysis.facts();
  for (FactId id = analysis.fact_id(value); id != FactId::kAbsent && id != FactId::kTop; id = facts.fact(id).element) {
    const Fact& fact = facts.fact(id);
    const Content* content = facts.content(fact.content);
    constexpr std::uint64_t kStepsOfDim = 4;
    analysis.meter().charge(
        kStepsOfDim * (1 + facts.dims_of(fact.shape).size() + (content == nullptr ? 0 : content->integers.size())));
    if (std::ranges::any_of(facts.dims_of(fact.shape), is_meant) ||
        (content != nullptr && std::ranges::any_of(content->integers, is_meant)))
      return true;
  }
  return false;
}

ValueId first_with(const dataflow::Analysis& analysis, ValueId value, const std::function<bool(ValueId)>& has) {
  const Model& model = analysis.model();
  Visited<ValueId> seen(analysis.meter());
  while (!analysis.meter().is_spent() && seen.insert(value)) {
    const Value& self = model.value(value);
    NodeId producer = self.producer;
    if (producer != NodeId::kNone && !analysis.reason(producer).empty())
      return value;  // nothing was derived from its operands
    if (self.origin == ValueOrigin::kInput)
      producer = model.graph(self.graph).owner;  // what a body takes, its owner gives
    if (producer == NodeId::kNone || (self.origin != ValueOrigin::kNode && self.origin != ValueOrigin::kInput))
      return value;
    std::optional<ValueId> before;
    const auto consider = [&](ValueId candidate) {
      if (!before && candidate != ValueId::kAbsent && !seen.contains(candidate) && has(candidate)) before = candidate;
    };
    for (const ValueId operand : analysis.operands(producer)) consider(operand);
    const GraphId function =
        self.origin == ValueOrigin::kNode ? model.op(model.node(producer)).function : GraphId::kNone;
    if (function != GraphId::kNone && !before)
      for (const ValueId output : analysis.outputs(function)) consider(output);
    if (self.origin == ValueOrigin::kNode && !before)
      for (const Graph& graph : Walk(std::span(model.graphs.data(), model.graphs.size()), analysis.meter()))
        if (graph.kind == GraphKind::kSubgraph && graph.owner == producer)
          for (const ValueId output : graph.outputs) consider(output);
    if (!before) return value;
    value = *before;
  }
  return value;
}

bool is_in(const DimPool& dims, Dim symbol, Dim dim) {
  if (dim.is_unknown()) return false;
  const std::vector<Dim> used = dims.symbols(dim);
  return std::ranges::find(used, symbol) != used.end();
}

}  // namespace tensorlint::reports
