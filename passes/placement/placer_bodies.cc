#include <fmt/format.h>

#include <algorithm>

#include "passes/placement/placer.h"

namespace tensorlint::placement {
namespace {

constexpr std::size_t kMaxSummaries = 64;  // of one function

}  // namespace

void Placer::call_function(NodeId id, const Node& node, Bdd guard) {
  const GraphId function = model_.op(node).function;
  const Graph& graph = model_.graph(function);
  if (state(function).is_active) return give_up(id, guard, "the function calls itself");
  const auto given = model_.operands(node);
  Meter& meter = analysis_.facts().meter();
  meter.charge(graph.inputs.size());
  std::vector<Placed> operands(graph.inputs.size(), Placed{lattice_.unknown(), {}});
  for (std::size_t i = 0; i < std::min(operands.size(), given.size()); ++i) operands[i] = read(given[i]);
  const auto results = model_.results(node);
  const bool plain = model_.attributes(node).empty();
  if (plain) {
    for (const Summary& summary : state(function).summaries) {
      meter.charge(1);
      if (summary.guard != guard) continue;
      const auto differs = std::ranges::mismatch(summary.operands, operands).in1;
      meter.charge(static_cast<std::uint64_t>(differs - summary.operands.begin()) / 2);
      if (differs != summary.operands.end()) continue;
      for (std::size_t r = 0; r < std::min(results.size(), summary.results.size()); ++r)
        set(results[r], summary.results[r], guard);
      return;
    }
  }
  std::vector<Attribute> attributes = attributes_.of_call(node, graph);

  Summary summary{guard, operands, {}};
  const Symbols::Count before = symbols_.count();
  calls_.push_back(id);
  std::vector<Attribute> outer = attributes_.enter(std::move(attributes));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const ValueId input = graph.inputs[i];
    if (input == ValueId::kAbsent) continue;
    const ValueId handed = i < given.size() ? given[i] : ValueId::kAbsent;
    operands[i].device = claim(id, input, handed, operands[i].device, guard);
    set(input, operands[i], guard);
  }
  visit_graph(function, guard);
  attributes_.enter(std::move(outer));
  calls_.pop_back();
  bool repeatable = plain && before.variables == symbols_.count().variables;
  for (const ValueId output : graph.outputs) {
    summary.results.push_back(read(output));
    const Element& content = summary.results.back().content;
    repeatable = repeatable && (content.kind != Element::Kind::kSymbol || content.symbol < before.symbols);
  }
  for (std::size_t r = 0; r < results.size(); ++r)
    set(results[r], r < summary.results.size() ? summary.results[r] : Placed{lattice_.unknown(), {}}, guard);
  if (!repeatable || state(function).summaries.size() >= kMaxSummaries) return;
  meter.keep(sizeof summary + (summary.operands.size() + summary.results.size()) * sizeof(Placed));
  state(function).summaries.push_back(std::move(summary));
}

std::vector<Placed> Placer::outputs_of(GraphId body) {
  std::vector<Placed> outputs;
  for (const ValueId output : model_.graph(body).outputs) outputs.push_back(read(output));
  return outputs;
}

void Placer::visit_if(NodeId id, const Node& node, const RegionOp& region, Bdd guard) {
  const ValueId decides = value_at(model_.operands(node), region.condition_operand);
  if (!region.has_graphs() || decides == ValueId::kAbsent) return give_up(id, guard, {});
  const std::optional<Bdd> taken = condition(decides);
  note_number_use(decides);
  records_.reach(id, guard);
  std::vector<Placed> outputs[2];
  Bdd guards[2] = {guard, guard};
  if (taken) {
    guards[0] = store_.and_(guard, *taken);
    guards[1] = store_.without(guard, *taken);
  } else {
    limit_choices(id);
  }
  for (int b = 0; b < 2; ++b) {
    if (guards[b] == kFalse) continue;
    visit_graph(region.graphs[b], guards[b]);
    outputs[b] = outputs_of(region.graphs[b]);
  }
  const auto results = model_.results(node);
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (results[r] == ValueId::kAbsent) continue;
    const Placed* sides[2] = {r < outputs[0].size() ? &outputs[0][r] : nullptr,
                              r < outputs[1].size() ? &outputs[1][r] : nullptr};
    if (sides[0] == nullptr && sides[1] == nullptr) {
      set(results[r], {lattice_.unknown(), symbols_.open(results[r])}, guard);
    } else if (sides[0] == nullptr || sides[1] == nullptr) {
      // The other branch is never taken (or malformed: then it says nothing).
      set(results[r], sides[0] == nullptr ? *sides[1] : *sides[0], guard);
    } else if (taken) {
      set(results[r],
          {store_.ite(*taken, sides[0]->device, sides[1]->device),
           symbols_.merge(*taken, sides[0]->content, sides[1]->content, results[r])},
          guard);
      for (int b = 0; b < 2; ++b)
        lattice_.for_each_state(sides[b]->device, guards[b], [&](const DeviceState& state) {
          if (!state.tainted) records_.note_branch(id, r, static_cast<std::size_t>(b), state.bits);
        });
    } else {
      set(results[r], {lattice_.join(sides[0]->device, sides[1]->device), symbols_.open(results[r])}, guard);
    }
  }
}

void Placer::visit_sequence_map(NodeId id, const Node& node, const RegionOp& region, Bdd guard) {
  const auto operands = model_.operands(node);
  if (!region.has_graphs()) return give_up(id, guard, {});
  const Graph& body = model_.graph(region.body());
  records_.reach(id, guard);
  for (std::size_t i = 0; i < body.inputs.size(); ++i) {
    const auto operand = region.operand_of_input(i);
    Placed element = operand ? read(operands[*operand]) : Placed{lattice_.unknown(), {}};
    element.content = {};
    set(body.inputs[i], element, guard);
  }
  visit_graph(region.body(), guard);
  const std::vector<Placed> outputs = outputs_of(region.body());
  const auto results = model_.results(node);
  for (std::size_t r = 0; r < results.size(); ++r)
    set(results[r], {r < outputs.size() ? outputs[r].device : lattice_.unknown(), {}}, guard);
}

/// Marks the loops under way when a condition or trip count is the number of the iteration.
void Placer::note_number_use(ValueId value) {
  if (value == ValueId::kAbsent || !current_[value].content.is_iteration) return;
  for (LoopFrame& frame : loops_) frame.uses_number = true;
}

void Placer::limit_choices(NodeId id) {
  limit(id, fmt::format("more than {} choices are open: this condition is not distinguished from others",
                        Symbols::kMaxVariables));
}

}  // namespace tensorlint::placement
