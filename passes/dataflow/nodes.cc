#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/meter.h"
#include "passes/dataflow/attributes.h"
#include "passes/dataflow/solver.h"

namespace tensorlint::dataflow {
namespace {

/// Violations of one constraint that are kept of a node: those of a sum of thousands of operands are not.
constexpr std::size_t kMaxFaultsOfConstraint = 8;
/// Of memory that a violation takes, and each value that its message names: two shapes as a rule.
constexpr std::uint64_t kBytesOfViolation = 512, kBytesOfArgument = 256;

constexpr std::int64_t kSmallContent = 16;  // shapes, axes, pads

std::int64_t content_size(const FactStore& facts, FactId id) {
  if (id == FactId::kAbsent || id == FactId::kTop) return 0;
  const Content* content = facts.content(facts.fact(id).content);
  return content == nullptr ? 0 : static_cast<std::int64_t>(content->size());
}

std::int64_t size_of(const FactStore& facts, FactId id) {
  if (id == FactId::kAbsent || id == FactId::kTop) return 0;
  const ShapeId shape = facts.fact(id).shape;
  return content_size(facts, id) +
         (shape == ShapeId::kUnranked ? 0 : static_cast<std::int64_t>(facts.dims_of(shape).size()));
}

/// Of a message, with those of messages and lists in it; extents and characters count as parts of one.
std::size_t arguments_in(const ops::Message& message);
std::size_t arguments_in(const ops::Argument& argument) {
  constexpr std::size_t kDimsOfArgument = 16, kCharactersOfArgument = 64;
  if (const auto* inner = std::get_if<ops::Message>(&argument.value())) return 1 + arguments_in(*inner);
  if (const auto* dims = std::get_if<std::vector<Dim>>(&argument.value())) return 1 + dims->size() / kDimsOfArgument;
  if (const auto* text = std::get_if<std::string>(&argument.value())) return 1 + text->size() / kCharactersOfArgument;
  std::size_t count = 1;
  if (const auto* list = std::get_if<ops::ArgumentList>(&argument.value()))
    for (const ops::Argument& item : list->items) count += arguments_in(item);
  return count;
}
std::size_t arguments_in(const ops::Message& message) {
  std::size_t count = 0;
  for (const ops::Argument& argument : message.arguments) count += arguments_in(argument);
  return count;
}

}  // namespace

std::uint64_t Solver::memory_of(const ops::Violation& violation) {
  return kBytesOfViolation + kBytesOfArgument * (arguments_in(violation.message) + arguments_in(violation.witness));
}

void Solver::visit_node(NodeId id) {
  const Node& node = model_.node(id);
  const Operator& op = model_.op(node);
  Frame& frame = this->frame();
  frame.operands.clear();
  frame.taints.clear();
  Taint any;
  for (const ValueId value : model_.operands(node)) {
    const AbstractValue operand = read_operand(value);
    const FactId fact = equalities_.canonical(operand.fact);
    frame.operands.push_back(budget_.has_contents() ? fact : without_large_content(fact));
    frame.taints.push_back(operand.taint);
    any |= operand.taint;
  }
  // What is visited once costs no more than its reading; a solve with a limit of its own is one of many.
  const std::uint64_t cost = depth_ == 0 && options_.max_visits == 0 ? 1 : 1 + weight_of(node) / 16;
  if (!budget_.take(cost)) {
    give_up(id, Gap::kBudget);
    return;
  }

  std::vector<Attribute> resolved;
  const std::span<const Attribute> attributes =
      resolve_references(model_.attributes(node), {caller_attributes_}, resolved);
  KeptMemory kept(facts_.meter());  // calls within calls have theirs at the same time
  kept.add(resolved.capacity() * sizeof(Attribute));
  if (!resolved.empty() && facts_.meter().is_spent()) {
    give_up(id, Gap::kBudget);
    return;
  }
  // Of a node that is given up nobody knows whether it has the operands that it needs.
  if (!speculative_ && !is_provisional()) out_.visited_[id] = true;
  Application call{.domain = model_.text(op.domain),
                   .name = model_.text(op.name),
                   .opset = op.opset,
                   .schema = op.schema,
                   .attributes = attributes,
                   .operands = frame.operands,
                   .operand_taints = frame.taints,
                   .results = {},
                   .result_count = node.result_count,
                   .facts = &facts_,
                   .site = mix(static_cast<std::uint64_t>(id) + 1, visit_serial_) | 1};
  // A caller's may be any size, and such a node is inferred anew in each visit.
  if (call.attributes.data() != model_.attributes(node).data()) facts_.meter().charge(4 * steps_of(call.attributes));
  if (op.function != GraphId::kNone) {
    call_function(id, op.function, call);
    check_declarations(id);
    return;
  }

  const bool memoisable = any == Taint() && op.schema != nullptr;
  std::uint64_t key = 0;
  if (memoisable) {
    key = NodeMemo::key_of(node, call);
    if (const FactId* known = memo_.find(key, node, call)) {
      const std::span<const ValueId> results = model_.results(node);
      for (std::size_t r = 0; r < results.size(); ++r)
        if (results[r] != ValueId::kAbsent) current_[results[r]] = {known[r], {}};
      if (has_declarations(node)) check_declarations(id);
      return;
    }
  }

  const bool clean = infer_node(id, call, any != Taint(), frame.result);
  if (facts_.meter().is_spent()) {
    give_up(id, Gap::kBudget);
    return;
  }
  if (region_kind(model_, op) != RegionKind::kNone) {
    visit_region(id, call);
  } else if (std::ranges::any_of(attributes, &Attribute::has_graphs)) {
    forget_graphs(attributes);  // nobody follows what such an operator does with them
  } else if (memoisable && clean && frame.result.repeatable &&
             call.attributes.data() == model_.attributes(node).data()) {
    memo_.remember(key, id, frame.operands, frame.result.results);
  }
  if (has_declarations(node)) check_declarations(id);
}

bool Solver::infer_node(NodeId id, const Application& call, bool tainted, ops::InferenceResult& result) {
  const Node& node = model_.node(id);
  const Operator& op = model_.op(node);
  const std::uint32_t checkpoint = facts_.dims().checkpoint();
  const ops::OpEntry* entry = out_.entries_[node.op];
  const ops::Signature* signature = signatures_[node.op];
  if (signature != nullptr) {
    ops::infer_signature(*signature, call, result);
  } else {
    ops::infer(call, entry, result);
  }
  // Arithmetic of dims may have ended on the way: what was compared with unknown proves nothing.
  if (facts_.meter().is_spent()) return false;
  std::int64_t size = 0;
  for (const FactId fact : call.operands) size += size_of(facts_, fact);
  for (const FactId fact : result.results) size += size_of(facts_, fact);
  const std::uint32_t new_dims = facts_.dims().checkpoint() - checkpoint;
  budget_.charge_contents(size, new_dims);
  if (depth_ != 0)
    budget_.charge(node.result_count / 2 + static_cast<std::uint64_t>(size) / 4 + 2 * std::uint64_t{new_dims});
  for (ops::Violation& violation : result.violations) record(id, std::move(violation));
  const bool clean = result.violations.empty();
  if (clean && !tainted) {
    for (const auto& [a, b] : result.equalities) equalities_.learn(a, b);
  }
  const std::span<const ValueId> results = model_.results(node);
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (results[r] == ValueId::kAbsent) continue;
    current_[results[r]] = {result.results[r], result.taints[r]};
  }
  if (signature != nullptr) {
    if (!speculative_) out_.declared_.insert(id);
  } else if (op.schema == nullptr) {
    note_gap(id, Gap::kUnknownOperator);
  } else if (entry == nullptr && region_kind(model_, op) == RegionKind::kNone) {
    note_gap(id, Gap::kNoInference);
  }
  return clean;
}

const ops::Signature* Solver::signature_of(const Operator& op) const {
  if (options_.signatures == nullptr) return nullptr;
  const auto found =
      options_.signatures->find(std::pair(std::string(model_.text(op.domain)), std::string(model_.text(op.name))));
  return found == options_.signatures->end() ? nullptr : &found->second;
}

/// What a node costs in each visit by its own size.
std::uint64_t Solver::weight_of(const Node& node) const {
  std::uint64_t weight = std::uint64_t{node.operand_count} + node.result_count;
  weight += steps_of(model_.attributes(node)) / 4;
  for (const ValueId result : model_.results(node))
    if (result != ValueId::kAbsent && model_.value(result).type != nullptr)
      weight += model_.value(result).type->dims.size();
  return weight;
}

FactId Solver::without_large_content(FactId id) {
  if (content_size(facts_, id) <= kSmallContent) return id;
  Fact fact = facts_.fact(id);
  fact.content = ContentId::kNone;
  return facts_.intern(fact);
}

void Solver::give_up(NodeId id, Gap gap) {
  const Node& node = model_.node(id);
  if (!is_provisional()) note_gap(id, gap);
  forget_graphs(model_.attributes(node));
  if (const GraphId function = model_.op(node).function; function != GraphId::kNone) forget(function);
  for (const ValueId result : model_.results(node))
    if (result != ValueId::kAbsent) current_[result] = {FactId::kTop, {}};
}

void Solver::forget_graphs(std::span<const Attribute> attributes) {
  for (const Attribute& attribute : attributes) {
    if (attribute.graph != GraphId::kNone) forget(attribute.graph);
    for (const GraphId graph : attribute.graphs) forget(graph);
  }
}

void Solver::forget(GraphId graph) {
  if (speculative_ || is_provisional()) return;
  std::vector<GraphId> pending{graph};
  while (!pending.empty()) {
    const GraphId id = pending.back();
    pending.pop_back();
    GraphState& known = state(id);
    if (std::exchange(known.is_forgotten, true)) continue;
    known.is_committed = true;  // what other visits show is joined with nothing
    const auto drop = [&](ValueId value) {
      if (value != ValueId::kAbsent) out_.value_facts_[value] = FactId::kTop;
    };
    std::ranges::for_each(model_.graph(id).inputs, drop);
    for (const NodeId node : model_.graph(id).nodes) {
      std::ranges::for_each(model_.results(model_.node(node)), drop);
      if (const GraphId function = model_.op(model_.node(node)).function; function != GraphId::kNone)
        pending.push_back(function);
    }
    const std::vector<GraphId>& bodies = bodies_[id];
    pending.insert(pending.end(), bodies.begin(), bodies.end());
  }
}

void Solver::record(NodeId id, ops::Violation violation) {
  if (facts_.meter().is_spent()) return;  // what was compared with unknown proves nothing
  if (speculative_) {
    if (violation.certainty != ops::Certainty::kMust) return;
    if (is_unrun_) {
      if (fails_at_load(id, violation)) keep_unrun({std::move(violation), id, calls_, iteration_});
      return;
    }
    if (conditional_ != 0) return;
    // Ranks are known or not; a violation for want of equal extents may be meant for all but the smallest.
    infeasible_ = infeasible_ || ops::is_about_rank(violation.kind());
    if (!failure_ && !ops::is_about_declared_shape(violation.kind()))
      failure_ = NodeViolation{std::move(violation), id, calls_, iteration_};
    return;
  }
  if (!is_provisional()) keep({std::move(violation), id, calls_, iteration_});
}

/// The same node fails once for all its visits; the first one has the sharpest facts. Other operands are another fault.
void Solver::keep(NodeViolation violation) {
  std::vector<std::vector<int>>& known = recorded_[{violation.node, violation.constraint}];
  if (known.size() >= kMaxFaultsOfConstraint || std::ranges::find(known, violation.operands) != known.end()) return;
  known.push_back(violation.operands);
  facts_.meter().keep(memory_of(violation));
  out_.violations_.push_back(std::move(violation));
}

}  // namespace tensorlint::dataflow
