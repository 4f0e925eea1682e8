#include "passes/dataflow/picked_elements.h"

#include "ir/ops/element.h"

namespace tensorlint::dataflow {

ElementUse element_use(const Analysis& analysis, NodeId node) {
  const ops::OpEntry* entry = analysis.entry(analysis.model().node(node));
  const OpSchema* schema = analysis.model().op(analysis.model().node(node)).schema;
  const ops::Opcode opcode = opcode_of(entry);
  if (moves_elements(opcode) || opcode == ops::Opcode::kDropout || opcode == ops::Opcode::kSplit)
    return ElementUse::kPicks;
  if (entry == nullptr || schema == nullptr) return ElementUse::kOther;
  const auto takes = [&](std::string_view operand) { return schema->input_index(operand) >= 0; };
  // Gather and its relatives; what scatters has updates.
  if (ops::operand_with(*schema, *entry, ops::OperandRole::kIndex) > 0 && !takes("updates") && !takes("scales"))
    return ElementUse::kPicks;
  if (opcode != ops::Opcode::kOther) return ElementUse::kOther;
  if (takes("K")) return ElementUse::kSorts;
  if (takes("repeats") || takes("split") || schema->attribute("split") != nullptr) return ElementUse::kPicks;
  if (takes("pads")) return ElementUse::kPads;
  return schema->attribute("epsilon") != nullptr ? ElementUse::kNormalises : ElementUse::kOther;
}

ops::ElementValue element_function(const Analysis& analysis, NodeId node) {
  if (node == NodeId::kNone) return nullptr;
  const Node& call = analysis.model().node(node);
  const ops::OpEntry* entry = analysis.entry(call);
  const OpSchema* schema = analysis.model().op(call).schema;
  if (entry == nullptr || schema == nullptr || call.operand_count < schema->min_inputs) return nullptr;
  return entry->element();
}

ops::ElementValue element_function(const Analysis& analysis, NodeId node, std::size_t operands) {
  const bool fits = node != NodeId::kNone && analysis.model().node(node).operand_count == operands;
  return fits ? element_function(analysis, node) : nullptr;
}

bool is_equality(const Analysis& analysis, NodeId node) {
  const ops::ElementValue element = element_function(analysis, node, 2);
  if (element == nullptr) return false;
  const ops::OpEntry* entry = analysis.entry(analysis.model().node(node));
  if (opcode_of(entry) != ops::Opcode::kOther || !has_trait(entry, ops::OpTrait::kElementwise)) return false;
  const auto result = [&](double a, double b) {
    const double operands[] = {a, b};
    return element({operands, {}});
  };
  constexpr double kOne = 1, kTwo = 2;
  return result(kOne, kOne) == 1 && result(kOne, kTwo) == 0 && result(kTwo, kOne) == 0;
}

}  // namespace tensorlint::dataflow
