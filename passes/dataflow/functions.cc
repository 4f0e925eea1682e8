#include <algorithm>
#include <utility>

#include "base/text.h"
#include "passes/dataflow/attributes.h"
#include "passes/dataflow/solver.h"

namespace tensorlint::dataflow {
namespace {

const ops::Constraint kCallArity{"call_arity", ops::ConstraintKind::kOperandCount,
                                 "a call has as many operands as the function has inputs"};

}  // namespace

void Solver::call_function(NodeId id, GraphId function, const Application& call) {
  const Graph& graph = model_.graph(function);
  if (state(function).is_active) {
    give_up(id, Gap::kRecursion);
    return;
  }
  if (depth_ + 1 >= kMaxNesting) {
    give_up(id, Gap::kNesting);
    return;
  }
  if (call.operands.size() > graph.inputs.size())
    record(id, kCallArity, {},
           {"`{}` takes {} operand{}, {} given", call.name, graph.inputs.size(), plural(graph.inputs.size()),
            call.operands.size()});
  if (call.result_count > graph.outputs.size())
    record(id, kCallArity, {},
           {"`{}` gives {} result{}, {} asked for", call.name, graph.outputs.size(), plural(graph.outputs.size()),
            call.result_count});

  budget_.charge((graph.inputs.size() + graph.outputs.size()) / 4 + steps_of(graph.attribute_defaults) / 64);
  std::vector<AbstractValue> operands(graph.inputs.size(), AbstractValue{FactId::kAbsent, {}});
  for (std::size_t i = 0; i < std::min(operands.size(), call.operands.size()); ++i)
    operands[i] = {call.operands[i], call.operand_taints[i]};
  const std::span<const ValueId> results = model_.results(model_.node(id));
  std::vector<Attribute> attributes = with_defaults(call.attributes, graph.attribute_defaults);
  KeptMemory kept_attributes(facts_.meter());
  kept_attributes.add(attributes.capacity() * sizeof(Attribute));

  if (!summaries_.is_exact(function))
    for (AbstractValue& operand : operands) operand.fact = any_floating_value(facts_, operand.fact);

  const auto take = [&](const std::vector<AbstractValue>& outputs) {
    for (std::size_t r = 0; r < std::min(results.size(), outputs.size()); ++r)
      if (results[r] != ValueId::kAbsent) current_[results[r]] = outputs[r];
  };
  if (const std::vector<AbstractValue>* known = summaries_.find(function, operands, call.attributes)) {
    take(*known);
    return;
  }

  for (std::size_t i = 0; i < operands.size(); ++i) {
    // An absent operand is absent inside too; its value is never read as a tensor.
    current_[graph.inputs[i]] = operands[i];
  }
  const std::uint32_t checkpoint = facts_.dims().checkpoint();
  const std::uint64_t outer_serial = std::exchange(visit_serial_, ++serials_),
                      outer_call = std::exchange(call_serial_, serials_);
  std::vector<Attribute> outer_attributes = std::exchange(caller_attributes_, std::move(attributes));
  calls_.push_back(id);
  ++depth_;
  visit_graph(function);
  commit(function);
  --depth_;
  calls_.pop_back();
  caller_attributes_ = std::move(outer_attributes);
  visit_serial_ = outer_serial;
  call_serial_ = outer_call;

  std::vector<AbstractValue> outputs;
  for (const ValueId output : graph.outputs) outputs.push_back(read(output));
  take(outputs);
  const bool own_symbols = facts_.dims().checkpoint() != checkpoint && has_symbols_since(facts_, outputs, checkpoint);
  const bool own_attributes = model_.attributes(model_.node(id)).data() == call.attributes.data();
  if (!speculative_ && open_bodies_.empty() && !own_symbols && own_attributes)
    summaries_.keep(function, id, std::move(operands), std::move(outputs));
}

}  // namespace tensorlint::dataflow
