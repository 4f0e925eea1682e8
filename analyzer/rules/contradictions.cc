#include "analyzer/rules/contradictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace tensorlint::rules {
namespace {

constexpr int kMaxSteps = 64;             // of values that hand their shape on
constexpr std::size_t kMaxOperands = 64;  // of a node, one of which hands it on

bool is_noted_shape(const dataflow::NodeViolation& violation) {
  return violation.node != NodeId::kNone && violation.kind() == ops::ConstraintKind::kNotedShape;
}

}  // namespace

Contradictions::Contradictions(const dataflow::Analysis& analysis) : analysis_(analysis) {
  const Model& model = analysis.model();
  for (const dataflow::NodeViolation& violation : analysis.violations()) {
    if (!is_noted_shape(violation)) continue;
    const dataflow::NodeViolation* first = &violation;
    for (const ValueId operand : analysis.operands(violation.node))
      if (const auto known = by_value_.find(operand); known != by_value_.end()) first = first_.at(known->second);
    first_.emplace(&violation, first);
    for (const ValueId result : analysis.results(violation.node))
      if (result != ValueId::kAbsent && model.value(result).type != nullptr) by_value_.emplace(result, &violation);
  }
  if (by_value_.empty()) return;
  for (const dataflow::NodeViolation& violation : analysis.violations())
    for (const dataflow::NodeViolation* contradiction : behind(violation)) noted_[contradiction] = true;
}

std::string Contradictions::cause(const dataflow::NodeViolation& violation) const {
  const auto known = first_.find(&violation);
  return known == first_.end() ? std::string()
                               : fmt::format("value_info {}", static_cast<std::uint32_t>(known->second->node));
}

bool Contradictions::is_note(const dataflow::NodeViolation& violation) const { return noted_.contains(&violation); }

std::vector<const dataflow::NodeViolation*> Contradictions::behind(const dataflow::NodeViolation& violation) const {
  std::vector<const dataflow::NodeViolation*> found;
  const ops::ConstraintKind kind = violation.kind();
  if (by_value_.empty() || violation.node == NodeId::kNone || ops::is_about_declared_shape(kind) ||
      kind == ops::ConstraintKind::kDeclaredType || ops::aspect_of(kind) != Aspect::kShape)
    return found;
  const auto operands = analysis_.operands(violation.node);
  for (const int index : violation.operands) {
    if (index < 0 || static_cast<std::size_t>(index) >= operands.size()) continue;
    const ValueId value = value_behind(operands[static_cast<std::size_t>(index)]);
    if (value == ValueId::kAbsent) continue;
    const dataflow::NodeViolation* contradiction = by_value_.at(value);
    if (std::ranges::find(found, contradiction) == found.end()) found.push_back(contradiction);
  }
  return found;
}

/// The value itself, or one that it has its shape from, whose declaration is contradicted.
ValueId Contradictions::value_behind(ValueId value) const {
  const Model& model = analysis_.model();
  for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
    if (by_value_.contains(value)) return value;
    const Value& self = model.value(value);
    if (self.producer == NodeId::kNone) break;
    const ShapeId shape = analysis_.fact(value).shape;
    const auto all = analysis_.operands(self.producer), operands = all.first(kMaxOperands);
    const auto source = std::ranges::find_if(operands, [&](ValueId operand) {
      return operand != ValueId::kAbsent && shape != ShapeId::kUnranked && analysis_.fact(operand).shape == shape;
    });
    value = source == operands.end() ? ValueId::kAbsent : *source;
  }
  return ValueId::kAbsent;
}

}  // namespace tensorlint::rules
