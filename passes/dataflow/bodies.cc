#include <algorithm>
#include <utility>

#include "passes/dataflow/solver.h"

namespace tensorlint::dataflow {
namespace {

const ops::Constraint kBodyArity{"body_arity", ops::ConstraintKind::kOperandCount,
                                 "a body takes and gives as many values as its node hands it"};

}  // namespace

void Solver::record_arity(NodeId id, std::string message) {
  record(id, {&kBodyArity, ops::Certainty::kMust, {}, std::move(message), {}});
}

void Solver::visit_control_flow(NodeId id, const Application& call) {
  if (depth_ + 1 >= kMaxNesting) {
    give_up(id, "bodies and calls are nested too deep");
    return;
  }
  ++depth_;
  std::vector<AbstractValue> values;
  for (std::size_t i = 0; i < call.operands.size(); ++i) values.push_back({call.operands[i], call.operand_taints[i]});
  if (call.name == "If") visit_if(id, call, values);
  if (call.name == "Loop") visit_loop(id, call, values);
  if (call.name == "Scan") visit_scan(id, call, values);
  if (call.name == "SequenceMap") visit_sequence_map(id, call, values);
  --depth_;
}

GraphId Solver::body_of(const Application& call, std::string_view attribute) {
  const Attribute* found = call.attribute(attribute);
  return found != nullptr && found->kind == AttributeKind::kGraph ? found->graph : GraphId::kNone;
}

/// A body that declares an optional may be handed what the optional holds (backend test loop16_seq_none).
AbstractValue Solver::as_input(ValueId input, AbstractValue given) {
  const TypeDecl* type = model_.value(input).type;
  const ValueKind kind = facts_.fact(given.fact).kind;
  if (type == nullptr || type->kind != TypeKind::kOptional ||
      (kind != ValueKind::kTensor && kind != ValueKind::kSequence))
    return given;
  Fact fact;
  fact.kind = ValueKind::kOptional;
  fact.element = given.fact;
  return {facts_.intern(fact), given.taint};
}

/// One visit of a body with these inputs; the outputs' values. Inputs past the given ones are top.
std::vector<AbstractValue> Solver::visit_body(GraphId body, std::span<const AbstractValue> inputs) {
  const Graph& graph = model_.graph(body);
  budget_.charge((graph.inputs.size() + graph.outputs.size()) / 16);
  const std::uint64_t outer_serial = std::exchange(visit_serial_, ++serials_);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    current_[index(graph.inputs[i])] = i < inputs.size() ? as_input(graph.inputs[i], inputs[i]) : AbstractValue{};
  visit_graph(body);
  visit_serial_ = outer_serial;
  std::vector<AbstractValue> outputs;
  for (const ValueId output : graph.outputs)
    outputs.push_back(output == ValueId::kAbsent ? AbstractValue{} : read_operand(output));
  return outputs;
}

/// visit_body and commit, unless the same was done before: loops within loops would be followed 2^depth times.
/// Visits that made symbols are not kept, since these stand for other extents each time; the rest repeats word for
/// word.
std::vector<AbstractValue> Solver::follow_body(GraphId body, std::span<const AbstractValue> inputs) {
  const auto follow = [&](std::span<const AbstractValue> values) {
    std::vector<AbstractValue> outputs = visit_body(body, values);
    commit(body);
    return outputs;
  };
  if (speculative_) return follow(inputs);
  BodyCache::Body* kept = body_cache_.visit(body, call_serial_);
  if (kept == nullptr) return follow(inputs);
  std::vector<AbstractValue> given(inputs.begin(), inputs.end());
  for (const ValueId capture : kept->captures) given.push_back(read_operand(capture));
  budget_.charge(given.size() / 16);
  // In terms of the symbols that are left, what a body does no longer depends on the equalities known around it.
  for (AbstractValue& value : given) value.fact = equalities_.canonical(value.fact);
  const bool is_exact = kept->is_exact();
  if (!is_exact)
    for (AbstractValue& value : given) value.fact = any_floating_value(facts_, value.fact);
  if (const std::vector<AbstractValue>* known = kept->find(given)) return *known;
  const std::uint32_t checkpoint = facts_.dims().checkpoint();
  std::vector<FactId> before;
  const auto exchange_captures = [&](auto replacement) {
    for (std::size_t i = 0; !is_exact && i < kept->captures.size(); ++i)
      replacement(current_[index(kept->captures[i])].fact, i);
  };
  exchange_captures(
      [&](FactId& fact, std::size_t i) { before.push_back(std::exchange(fact, given[inputs.size() + i].fact)); });
  std::vector<AbstractValue> outputs = follow(std::span(given).first(inputs.size()));
  exchange_captures([&](FactId& fact, std::size_t i) { fact = before[i]; });
  if (facts_.dims().checkpoint() == checkpoint && !budget_.is_spent())
    body_cache_.keep(*kept, std::move(given), outputs);
  return outputs;
}

}  // namespace tensorlint::dataflow
