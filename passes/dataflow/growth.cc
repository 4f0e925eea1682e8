#include <algorithm>
#include <iterator>
#include <utility>

#include "passes/dataflow/solver.h"

namespace tensorlint::dataflow {

void Solver::grow() {
  find_entries();
  if (current_.size() != model_.values.size()) {
    current_.resize(model_.values.size());
    out_.value_facts_.resize(model_.values.size(), FactId::kTop);
    out_.taints_.resize(model_.values.size());
  }
  const auto first_node = static_cast<NodeId>(out_.visited_.size());
  out_.visited_.resize(model_.nodes.size());
  out_.gaps_.resize(model_.nodes.size());
  out_.note_references(first_node, static_cast<GraphId>(graphs_.size()));
  budget_.grow(model_.nodes.size());
  equalities_.grow(model_.nodes.size());
  if (graphs_.size() == model_.graphs.size()) return;
  for (const GraphId id : model_.graphs.ids(static_cast<GraphId>(graphs_.size()))) {
    bodies_.emplace_back();
    if (model_.graph(id).kind == GraphKind::kSubgraph) bodies_[model_.graph(id).parent].push_back(id);
  }
  graphs_.resize(model_.graphs.size());
  body_cache_.grow();
  summaries_.grow();
}

void Solver::set(ValueId value, const AbstractValue& known) {
  current_[value] = known;
  out_.value_facts_[value] = known.fact;
  out_.taints_[value] = known.taint;
}

std::vector<NodeViolation> Solver::append(NodeId id) {
  const auto known = static_cast<std::ptrdiff_t>(out_.violations_.size());
  visit_node(id);
  // What comes after the If is not known yet.
  if (std::exchange(shape_clash_, std::nullopt)) has_shape_clash_ = true;
  for (const ValueId result : model_.results(model_.node(id)))
    if (result != ValueId::kAbsent) set(result, current_[result]);

  std::vector<NodeViolation>& all = out_.violations_;
  if (std::ssize(all) == known) return {};
  std::vector<NodeViolation> added(all.begin() + known, all.end());
  // In file order: nodes of bodies and functions come before those that run them.
  const auto comes_first = [](const NodeViolation& a, const NodeViolation& b) { return a.node < b.node; };
  std::stable_sort(all.begin() + known, all.end(), comes_first);
  const auto middle = static_cast<std::size_t>(known);
  if (middle > 0 && comes_first(all[middle], all[middle - 1]))
    std::inplace_merge(all.begin(), all.begin() + known, all.end(), comes_first);
  return added;
}

void Solver::close_body() {
  // What a first pass learnt need not hold around the body, and what it cost is spent again by the call.
  equalities_.rollback(open_bodies_.back().equalities);
  budget_ = open_bodies_.back().budget;
  open_bodies_.pop_back();
}

void Solver::reset(std::span<const GraphId> bodies) {
  std::vector<GraphId> graphs(bodies.begin(), bodies.end());
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    const std::vector<GraphId>& nested = bodies_[graphs[g]];
    graphs.insert(graphs.end(), nested.begin(), nested.end());
  }
  NodeId first = NodeId::kNone;
  for (const GraphId id : graphs) {
    const Graph& graph = model_.graph(id);
    if (!graph.nodes.empty()) first = std::min(first, graph.nodes.front());
    for (const ValueId value : graph.inputs) set(value, {});
    for (const ValueId value : graph.initializers) set(value, {});
    for (const NodeId node : graph.nodes) {
      out_.visited_[node] = false;
      out_.gaps_[node] = Gap::kNone;
      out_.declared_.erase(node);
      has_unrun_.erase(node);
      for (const ValueId value : model_.results(model_.node(node)))
        if (value != ValueId::kAbsent) set(value, {});
    }
    GraphState& state = this->state(id);
    state.has_initializers = state.is_committed = state.is_forgotten = false;
    body_cache_.forget(id);
  }
  std::sort(graphs.begin(), graphs.end());
  const auto is_after = [](const NodeViolation& violation, NodeId node) { return violation.node < node; };
  const auto begin = std::lower_bound(out_.violations_.begin(), out_.violations_.end(), first, is_after);
  const auto kept = std::stable_partition(begin, out_.violations_.end(), [&](const NodeViolation& violation) {
    return violation.node == NodeId::kNone ||
           !std::binary_search(graphs.begin(), graphs.end(), model_.node(violation.node).graph);
  });
  for (auto gone = kept; gone != out_.violations_.end(); ++gone) recorded_.erase({gone->node, gone->constraint});
  out_.violations_.erase(kept, out_.violations_.end());
}

void Solver::abandon_body(GraphId body) {
  if (!open_bodies_.empty() && open_bodies_.back().graph == body) close_body();
  grow();
  for (const ValueId id : model_.values.ids(kFirstValue))
    if (model_.value(id).origin == ValueOrigin::kUndefined) set(id, {});
  const auto end = static_cast<NodeId>(model_.nodes.size());
  memo_.clear();
  const auto is_gone = [end](const NodeViolation& violation) {
    return violation.node != NodeId::kNone && violation.node >= end;
  };
  std::erase_if(out_.violations_, is_gone);
  std::erase_if(recorded_,
                [end](const auto& one) { return one.first.first != NodeId::kNone && one.first.first >= end; });
  const auto is_after = [end](NodeId node) { return node >= end; };
  std::erase_if(out_.declared_, is_after);
  std::erase_if(has_unrun_, is_after);
  out_.visited_.resize(model_.nodes.size());
  out_.gaps_.resize(model_.nodes.size());
  out_.refers_to_call_.resize(std::min(out_.refers_to_call_.size(), model_.nodes.size()));
}

}  // namespace tensorlint::dataflow
