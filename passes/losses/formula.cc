#include "passes/losses/formula.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "passes/dataflow/element_function.h"

namespace tensorlint::losses {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
/// Operators in a row, those of called functions included.
constexpr int kMaxDepth = 40;
/// Of the meter, to read or to evaluate one part.
constexpr std::uint64_t kStepsOfPart = 2;
/// Beside that, to evaluate an operator: the tangent of a large number takes 0.25 us.
constexpr std::uint64_t kStepsOfOperator = 8;

bool is_copy(Opcode opcode) { return keeps_elements(opcode) || opcode == Opcode::kExpand || opcode == Opcode::kCast; }

}  // namespace

/// What the inputs of a called function are, while its body is read.
struct Formula::Scope {
  const Graph* function = nullptr;
  std::vector<std::uint32_t> arguments;
};

Formula::Formula(const Expressions& expressions, ValueId root) : expressions_(expressions) {
  if (build(root, nullptr, 0) == kNoPart || !complete_) {
    complete_ = false;
    parts_.clear();
    return;
  }
  ancestors_.resize(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    ancestors_[i] = std::uint64_t{1} << i;
    for (const std::uint32_t operand : parts_[i].operands)
      if (operand != kNoPart) ancestors_[i] |= ancestors_[operand];
  }
}

std::uint32_t Formula::add(Part part, const Scope* scope) {
  if (scope != nullptr) {
    part.value = ValueId::kAbsent;
    part.node = NodeId::kNone;
  }
  if (parts_.size() == kMaxParts) {
    complete_ = false;
    return kNoPart;
  }
  parts_.push_back(std::move(part));
  return static_cast<std::uint32_t>(parts_.size() - 1);
}

std::uint32_t Formula::build(ValueId value, const Scope* scope, int depth) {
  if (value == ValueId::kAbsent || !complete_) return kNoPart;
  expressions_.charge(kStepsOfPart + parts_.size());
  if (expressions_.is_spent()) complete_ = false;
  if (!complete_) return kNoPart;
  if (scope == nullptr) {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (parts_[i].value == value) return static_cast<std::uint32_t>(i);
  } else {
    const auto& inputs = scope->function->inputs;
    expressions_.charge(inputs.size() / 4);
    if (const auto found = std::ranges::find(inputs, value); found != inputs.end()) {
      const auto index = static_cast<std::size_t>(found - inputs.begin());
      return index < scope->arguments.size() ? scope->arguments[index] : kNoPart;
    }
  }
  Part part{.value = value, .node = expressions_.producer(value)};
  if (const auto number = expressions_.number(value)) {
    part.kind = PartKind::kConstant;
    part.constant = *number;
    return add(std::move(part), scope);
  }
  if (depth < kMaxDepth && part.node != NodeId::kNone && !expressions_.normalised(value)) {
    if (const std::uint32_t call = build_call(part.node, scope, depth); call != kNoPart || !complete_) return call;
    if (!read_node(part.node, scope, depth, part)) part.operands.clear();
    if (!complete_) return kNoPart;
  }
  // Inside of a function a leaf would be another one in each call of it.
  if (part.kind == PartKind::kLeaf && scope != nullptr) complete_ = false;
  return add(std::move(part), scope);
}

/// The result of a call of a function with one result, all of whose nodes are part of the formula.
std::uint32_t Formula::build_call(NodeId node, const Scope* scope, int depth) {
  const Graph* function = expressions_.called_function(node);
  if (function == nullptr || function->outputs.size() != 1 || opaque_.contains(function)) return kNoPart;
  const auto count = parts_.size();
  Scope inner{function, {}};
  for (const ValueId operand : expressions_.analysis().operands(node))
    inner.arguments.push_back(build(operand, scope, depth + 1));
  if (!complete_) return kNoPart;
  const std::uint32_t result = build(function->outputs[0], &inner, depth + 1);
  if (complete_ && result != kNoPart) {
    Part part{.kind = PartKind::kSame, .value = expressions_.result(node), .node = node, .operands = {result}};
    return add(std::move(part), scope);
  }
  // The body is more than arithmetic: the call is a leaf.
  opaque_.insert(function);
  const bool fits = parts_.size() < kMaxParts;
  if (fits) {
    complete_ = true;
    parts_.resize(count);
  }
  return kNoPart;
}

/// False where the node is not part of a formula.
bool Formula::read_node(NodeId node, const Scope* scope, int depth, Part& part) {
  const Model& model = expressions_.analysis().model();
  const auto operands = expressions_.analysis().operands(node);
  const OpSchema* const schema = model.op(model.node(node)).schema;
  if (schema == nullptr || operands.size() < schema->min_inputs || operands.size() > kMaxParts) return false;
  const Opcode opcode = expressions_.op(node);
  if (is_copy(opcode)) {
    // To an integer the fraction is cut off; what that is compared with is the integer.
    if (opcode == Opcode::kCast && expressions_.makes_integers(node)) return false;
    part.kind = PartKind::kSame;
  } else if (const ops::ElementValue element = dataflow::element_function(expressions_.analysis(), node)) {
    part.kind = PartKind::kElement;
    part.element = element;
    part.op = model.text(model.op(model.node(node)).name);
    part.attributes = expressions_.analysis().attributes(node).read();
    if (std::ranges::any_of(part.attributes, [](const Attribute& each) { return !each.reference.empty(); })) {
      part.kind = PartKind::kLeaf;
      return false;
    }
  } else {
    return false;
  }
  const std::size_t count = part.kind == PartKind::kSame ? std::min<std::size_t>(operands.size(), 1) : operands.size();
  for (std::size_t i = 0; i < count; ++i) part.operands.push_back(build(operands[i], scope, depth + 1));
  return true;
}

std::optional<std::size_t> Formula::only_leaf() const {
  std::optional<std::size_t> leaf;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].kind != PartKind::kLeaf) continue;
    if (leaf) return std::nullopt;
    leaf = i;
  }
  return leaf;
}

std::vector<double> Formula::constants() const {
  std::vector<double> found;
  for (const Part& part : parts_)
    if (part.kind == PartKind::kConstant) found.push_back(part.constant);
  return found;
}

std::uint64_t Formula::steps_of(const Part& part) {
  return kStepsOfPart + part.operands.size() + part.attributes.size() +
         (part.kind == PartKind::kElement ? kStepsOfOperator : 0);
}

double Formula::compute(std::size_t index, int variant) const {
  const Part& part = parts_[index];
  switch (part.kind) {
    case PartKind::kConstant:
      return part.constant;
    case PartKind::kLeaf:
      // Between 0 and 1, so that a weight, a mask or a probability may be meant.
      return variant == 0 ? 0.37 + 0.011 * static_cast<double>(index) : 0.81 - 0.007 * static_cast<double>(index);
    case PartKind::kSame:
      return part.operands.empty() || part.operands[0] == kNoPart ? kNan : values_[part.operands[0]];
    case PartKind::kElement:
      arguments_.clear();
      for (const std::uint32_t operand : part.operands)
        arguments_.push_back(operand == kNoPart ? kNan : values_[operand]);
      return part.element({arguments_, part.attributes});
  }
  return kNan;
}

double Formula::evaluate(std::span<const Assignment> assignments, int variant) const {
  std::uint64_t assigned = 0, steps = parts_.size();
  for (const Assignment& given : assignments) assigned |= std::uint64_t{1} << given.part;
  if (variant != variant_) {
    values_.assign(parts_.size(), kNan);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      steps += steps_of(parts_[i]);
      values_[i] = compute(i, variant);
    }
    unassigned_ = values_;
    variant_ = variant;
  }
  values_ = unassigned_;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if ((ancestors_[i] & assigned) == 0) continue;
    steps += steps_of(parts_[i]);
    const auto given = std::ranges::find(assignments, i, &Assignment::part);
    values_[i] = given != assignments.end() ? given->value : compute(i, variant);
  }
  expressions_.charge(steps);
  return values_.back();
}

}  // namespace tensorlint::losses
