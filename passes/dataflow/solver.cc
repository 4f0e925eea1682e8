#include "passes/dataflow/solver.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace tensorlint::dataflow {

Analysis analyse(const Model& model, const AnalysisOptions& options) { return Solver::solve(model, options); }

Analysis Solver::solve(const Model& model, const AnalysisOptions& options) {
  Analysis analysis = begin(model, options);
  Solver(model, options, analysis).run();
  return analysis;
}

Analysis Solver::begin(const Model& model, const AnalysisOptions& options) {
  Analysis analysis;
  analysis.model_ = &model;
  analysis.facts_ = std::make_unique<FactStore>(options.meter != nullptr ? options.meter : meter_of(model));
  analysis.meter_ = &analysis.facts_->meter();
  analysis.value_facts_.assign(model.values.size(), FactId::kTop);
  analysis.taints_.resize(model.values.size());
  analysis.visited_.resize(model.nodes.size());
  analysis.gaps_.resize(model.nodes.size());
  analysis.note_references(NodeId{}, GraphId{});
  return analysis;
}

Solver::Solver(const Model& model, const AnalysisOptions& options, Analysis& out)
    : model_(model),
      options_(options),
      out_(out),
      facts_(*out.facts_),
      initial_facts_(model, options, facts_),
      current_(model.values.size()),
      budget_(facts_.meter(), model.nodes.size(), options.max_visits),
      bodies_(bodies_by_graph(model)),
      graphs_(model.graphs.size()),
      memo_(model),
      equalities_(facts_, model.nodes.size()),
      body_cache_(model, bodies_),
      summaries_(model) {}

void Solver::find_entries() {
  while (out_.entries_.size() < model_.operators.size()) {
    const Operator& op = model_.operators[out_.entries_.next_id()];
    out_.entries_.push_back(ops::find_entry(model_.text(op.domain), model_.text(op.name), op.opset));
    signatures_.push_back(op.schema == nullptr && op.opset > 0 ? signature_of(op) : nullptr);
  }
}

void Solver::run() {
  find_entries();
  if (model_.graphs.empty()) return;
  for (const StructureFault& fault : model_.faults)
    if (fault.kind == StructureFault::Kind::kDuplicateDefinition) defined_twice_.insert(fault.value);
  const Graph& main = model_.graph(GraphId::kMain);
  for (const ValueId input : main.inputs) current_[input] = {initial_facts_.input(input), {}};
  NodeOrders orders = order_all_nodes(model_, facts_.meter());
  std::size_t early_uses = 0;
  for (const GraphId id : model_.graphs.ids()) {
    early_uses += orders[id].early_uses.size();
    state(id).order = std::move(orders[id]);
  }
  // Probes run again and again, also over nodes that they do not visit.
  constexpr std::uint64_t kStepsOfEarlyUse = 32, kStepsOfGraph = 16, kStepsOfDefinition = 12;
  facts_.meter().charge(model_.nodes.size() + (model_.operand_list.size() + model_.values.size()) / 4 +
                        kStepsOfGraph * model_.graphs.size() + kStepsOfEarlyUse * early_uses +
                        kStepsOfDefinition * defined_twice_.size());
  visit_graph(GraphId::kMain);
  commit(GraphId::kMain);
  keep_unrun_violations();
  out_.visits_ = budget_.spent();
  out_.ran_out_ = budget_.is_spent() || unrun_ran_out_;
  std::stable_sort(out_.violations_.begin(), out_.violations_.end(),
                   [](const NodeViolation& a, const NodeViolation& b) { return a.node < b.node; });
  for (const GraphId id : model_.graphs.ids()) {
    const NodeOrder& order = this->order(id);
    out_.early_uses_.insert(out_.early_uses_.end(), order.early_uses.begin(), order.early_uses.end());
  }
}

const NodeOrder& Solver::order(GraphId graph) {
  std::optional<NodeOrder>& order = state(graph).order;
  if (!order) order = order_nodes(model_, graph, bodies_);
  return *order;
}

FactId Solver::initializer_fact(ValueId initializer) {
  if (!speculative_) return initial_facts_.initializer(model_.value(initializer));
  const auto [known, is_new] = speculative_initializers_.try_emplace(initializer, FactId::kAbsent);
  if (is_new) known->second = initial_facts_.initializer(model_.value(initializer));
  return known->second;
}

void Solver::visit_graph(GraphId id) {
  GraphState& state = this->state(id);
  state.is_active = true;
  const Graph& graph = model_.graph(id);
  const EqualityScope::Checkpoint outer_equalities = equalities_.checkpoint();
  // Nothing changes them: the facts of the first visit hold in all. A speculative visit takes back what it changes.
  const bool has_initializers = state.has_initializers;
  if (!speculative_) state.has_initializers = true;
  for (const ValueId initializer : has_initializers ? std::span<const ValueId>() : std::span(graph.initializers))
    current_[initializer] = {initializer_fact(initializer), {}};
  const NodeOrder& nodes = order(id);
  for (const NodeId node : nodes.cyclic) {
    if (depth_ != 0) budget_.charge(1 + model_.node(node).result_count / 2);  // these are not visited
    note_gap(node, Gap::kCycle);
    for (const ValueId result : model_.results(model_.node(node)))
      if (result != ValueId::kAbsent) current_[result] = {FactId::kTop, everything_tainted()};
  }
  for (std::size_t i = 0; i < nodes.nodes.size() && !infeasible_; ++i) {
    visit_node(nodes.nodes[i]);
    if (const auto clash = std::exchange(shape_clash_, std::nullopt))
      refine_branch(*clash, std::span(nodes.nodes).subspan(i));
  }
  // What holds after a body ran need not hold where it did not.
  if (id != GraphId::kMain) equalities_.rollback(outer_equalities);
  state.is_active = false;
}

void Solver::commit(GraphId id) {
  if (speculative_ || is_provisional()) return;
  const bool first = !std::exchange(state(id).is_committed, true);
  const Graph& graph = model_.graph(id);
  const auto move = [&](ValueId value) {
    if (value == ValueId::kAbsent) return;
    const AbstractValue& from = current_[value];
    FactId& to = out_.value_facts_[value];
    to = first ? from.fact : facts_.join(to, from.fact);
    out_.taints_[value] |= from.taint;
  };
  for (const ValueId value : graph.inputs) move(value);
  if (first)
    for (const ValueId value : graph.initializers) move(value);  // the same in all visits
  for (const NodeId node : graph.nodes)
    for (const ValueId value : model_.results(model_.node(node))) move(value);
}

void Solver::set_results(NodeId id, std::span<const AbstractValue> values) {
  const std::span<const ValueId> results = model_.results(model_.node(id));
  for (std::size_t r = 0; r < results.size(); ++r)
    if (results[r] != ValueId::kAbsent) current_[results[r]] = r < values.size() ? values[r] : AbstractValue{};
}

}  // namespace tensorlint::dataflow
