#include "analyzer/rules/consequences.h"

#include <algorithm>

namespace tensorlint::rules {
namespace {

bool is_about_shapes(const dataflow::NodeViolation& violation) {
  if (violation.node == NodeId::kNone) return false;
  switch (violation.kind()) {
    case ops::ConstraintKind::kAxisRange:
    case ops::ConstraintKind::kDuplicateAxis:
    case ops::ConstraintKind::kRank:
    case ops::ConstraintKind::kShapes:
    case ops::ConstraintKind::kElementCount:
    case ops::ConstraintKind::kConcatRanks:
    case ops::ConstraintKind::kConcatShapes:
      return true;
    default:
      return false;
  }
}

}  // namespace

Consequences::Consequences(const dataflow::Analysis& analysis) : analysis_(analysis) {
  const std::vector<dataflow::NodeViolation>& violations = analysis.violations();
  const auto may_be_wrong = [](const dataflow::NodeViolation& violation) {
    return is_about_shapes(violation) && violation.certainty == ops::Certainty::kMay;
  };
  if (std::ranges::none_of(violations, may_be_wrong)) return;
  const Model& model = analysis.model();
  sources_ = IdVector<ValueId, const dataflow::NodeViolation*>(model.values.size(), nullptr);
  auto next = violations.begin();  // sorted by node
  for (const NodeId id : ids_below<NodeId>(model.nodes.size())) {
    const Node& node = model.node(id);
    while (next != violations.end() && (next->node == NodeId::kNone || next->node < id)) ++next;
    const dataflow::NodeViolation* source = nullptr;
    for (const ValueId operand : model.operands(node))
      if (source == nullptr && operand != ValueId::kAbsent) source = sources_[operand];
    if (source != nullptr) {
      if (fixes_shape(node)) continue;
    } else {
      for (auto own = next; own != violations.end() && own->node == id && source == nullptr; ++own)
        if (may_be_wrong(*own)) source = &*own;
    }
    if (source == nullptr) continue;
    for (const ValueId result : model.results(node))
      if (result != ValueId::kAbsent) sources_[result] = source;
  }
}

/// The result has the shape that was meant, whatever came before: a list that is right asks for it, or an operand that
/// is right has it.
bool Consequences::fixes_shape(const Node& node) const {
  const Model& model = analysis_.model();
  const FactStore& facts = analysis_.facts();
  if (node.result_count == 0 || model.results(node)[0] == ValueId::kAbsent) return false;
  const Fact& result = analysis_.fact(model.results(node)[0]);
  if (result.shape == ShapeId::kUnranked) return false;
  const auto dims = facts.dims_of(result.shape);
  const ops::OpEntry* entry = analysis_.entry(node);
  return std::ranges::any_of(model.operands(node), [&](ValueId operand) {
    if (operand == ValueId::kAbsent || sources_[operand] != nullptr) return false;
    const Fact& fact = analysis_.fact(operand);
    if (entry != nullptr && entry->has(ops::OpTrait::kElementwise)) return fact.shape == result.shape;
    const Content* content = facts.content(fact.content);
    return content != nullptr && !content->integers.empty() &&
           std::ranges::equal(content->integers, dims,
                              [](Dim asked, Dim got) { return asked == got && !asked.is_unknown(); });
  });
}

const dataflow::NodeViolation* Consequences::source_of(const dataflow::NodeViolation& violation) const {
  if (sources_.empty() || !is_about_shapes(violation)) return nullptr;
  const Model& model = analysis_.model();
  const std::span<const ValueId> operands = model.operands(model.node(violation.node));
  const auto source = [&](ValueId operand) -> const dataflow::NodeViolation* {
    return operand == ValueId::kAbsent ? nullptr : sources_[operand];
  };
  for (const int index : violation.operands)
    if (index >= 0 && static_cast<std::size_t>(index) < operands.size())
      if (const dataflow::NodeViolation* found = source(operands[static_cast<std::size_t>(index)])) return found;
  if (!violation.operands.empty()) return nullptr;
  for (const ValueId operand : operands)
    if (const dataflow::NodeViolation* found = source(operand)) return found;
  return nullptr;
}

}  // namespace tensorlint::rules
