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

bool may_be_wrong(const dataflow::NodeViolation& violation) {
  return is_about_shapes(violation) && violation.certainty == ops::Certainty::kMay;
}

}  // namespace

void Consequences::follow_all() {
  const std::vector<dataflow::NodeViolation>& violations = analysis_.violations();
  if (std::ranges::none_of(violations, may_be_wrong)) return;
  auto next = violations.begin();  // sorted by node
  for (std::size_t n = 0; n < analysis_.model().nodes.size(); ++n) {
    const auto node = static_cast<NodeId>(n);
    while (next != violations.end() && (next->node == NodeId::kNone || next->node < node)) ++next;
    const auto end =
        std::find_if(next, violations.end(), [&](const auto& violation) { return violation.node != node; });
    follow(node, std::span(next, end));
  }
}

void Consequences::follow(NodeId id, std::span<const dataflow::NodeViolation> violations) {
  const auto fails_itself = [&](const dataflow::NodeViolation& violation) {
    return violation.node == id && may_be_wrong(violation);
  };
  const bool fails = std::ranges::any_of(violations, fails_itself);
  if (sources_.empty() && !fails) return;
  const Model& model = analysis_.model();
  sources_.resize(model.values.size(), NodeId::kNone);
  NodeId found = NodeId::kNone;
  for (const ValueId operand : analysis_.operands(id))
    if (found == NodeId::kNone) found = source(operand);
  if (found != NodeId::kNone ? fixes_shape(id) : !fails) return;
  if (found == NodeId::kNone) found = id;
  for (const ValueId result : analysis_.results(id))
    if (result != ValueId::kAbsent) sources_[result] = found;
}

/// The result has the shape that was meant, whatever came before: a list that is right asks for it, or an operand that
/// is right has it.
bool Consequences::fixes_shape(NodeId node) const {
  const FactStore& facts = analysis_.facts();
  const auto results = analysis_.results(node);
  if (results.empty() || results.front() == ValueId::kAbsent) return false;
  const Fact& result = analysis_.fact(results.front());
  if (result.shape == ShapeId::kUnranked) return false;
  const auto dims = facts.dims_of(result.shape);
  const ops::OpEntry* entry = analysis_.entry(analysis_.model().node(node));
  return std::ranges::any_of(analysis_.operands(node), [&](ValueId operand) {
    if (operand == ValueId::kAbsent || source(operand) != NodeId::kNone) return false;
    const Fact& fact = analysis_.fact(operand);
    if (entry != nullptr && entry->has(ops::OpTrait::kElementwise)) return fact.shape == result.shape;
    const Content* content = analysis_.content(operand);
    return content != nullptr && !content->integers.empty() &&
           std::ranges::equal(content->integers, dims,
                              [](Dim asked, Dim got) { return asked == got && !asked.is_unknown(); });
  });
}

NodeId Consequences::source_of(const dataflow::NodeViolation& violation) const {
  if (sources_.empty() || !is_about_shapes(violation)) return NodeId::kNone;
  const auto operands = analysis_.operands(violation.node);
  for (const int index : violation.operands)
    if (index >= 0 && static_cast<std::size_t>(index) < operands.size())
      if (const NodeId found = source(operands[static_cast<std::size_t>(index)]); found != NodeId::kNone) return found;
  if (!violation.operands.empty()) return NodeId::kNone;
  for (const ValueId operand : operands)
    if (const NodeId found = source(operand); found != NodeId::kNone) return found;
  return NodeId::kNone;
}

}  // namespace tensorlint::rules
