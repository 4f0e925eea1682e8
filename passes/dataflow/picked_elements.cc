#include "passes/dataflow/picked_elements.h"

#include "ir/ops/element.h"

namespace tensorlint::dataflow {

ElementUse element_use(const Analysis& analysis, NodeId node) {
  const ops::OpEntry* entry = analysis.entry(analysis.model().node(node));
  const OpSchema* schema = analysis.model().op(analysis.model().node(node)).schema;
  const ops::Opcode opcode = opcode_of(entry);
  if (moves_elements(opcode) || opcode == ops::Opcode::kDropout) return ElementUse::kPicks;
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

bool is_equality(const ops::OpEntry* entry) {
  if (opcode_of(entry) != ops::Opcode::kOther || entry == nullptr || entry->element() == nullptr ||
      !has_trait(entry, ops::OpTrait::kElementwise))
    return false;
  const auto result = [&](double a, double b) {
    const double operands[] = {a, b};
    return entry->element()({operands, {}});
  };
  constexpr double kOne = 1, kTwo = 2;
  return result(kOne, kOne) == 1 && result(kOne, kTwo) == 0 && result(kTwo, kOne) == 0;
}

}  // namespace tensorlint::dataflow
