#include "passes/losses/loss_cone.h"

#include <algorithm>
#include <set>

#include "passes/dataflow/constant_tensors.h"

namespace tensorlint::losses {
namespace {

/// Copies, views and elementwise steps that are looked through in a row.
constexpr int kMaxConeSteps = 12;

}  // namespace

LossCone::LossCone(const Expressions& expressions, AxisOrigins& origins, std::span<const ValueId> outputs)
    : expressions_(expressions), origins_(origins), way_(expressions) {
  const Model& model = analysis().model();
  inside_ = IdVector<NodeId, bool>(model.nodes.size(), false);
  std::vector<ValueId> pending(outputs.begin(), outputs.end());
  while (!pending.empty() && !expressions_.is_spent()) {
    const NodeId node = expressions_.producer(pending.back());
    pending.pop_back();
    if (node == NodeId::kNone || inside_[node]) continue;
    inside_[node] = true;
    nodes_.push_back(node);
    expressions_.charge(1);
    for (const ValueId operand : operands(node))
      if (operand != ValueId::kAbsent) pending.push_back(operand);
  }
  std::ranges::sort(nodes_);
}

std::size_t LossCone::operand_index(NodeId node, ValueId value) const {
  const auto all = operands(node).read();
  return static_cast<std::size_t>(std::ranges::find(all, value) - all.begin());
}

bool LossCone::is_long(ValueId value, std::size_t axis) const {
  const auto shape = dims(value);
  return axis < shape.size() && !pool().is_constant(shape[axis], 1);
}

bool LossCone::is_batch_alone(ValueId value, std::size_t axis) const {
  const auto shape = dims(value);
  if (axis >= shape.size() || !is_long(value, axis) || !origins_.is_batch(value, axis)) return false;
  bool others = false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i == axis) continue;
    if (origins_.is_batch(value, i) || pool().equal(shape[i], shape[axis])) return false;
    others |= is_long(value, i);
  }
  return others;
}

bool LossCone::has_batch(ValueId value) const {
  const std::size_t rank = dims(value).size();
  for (std::size_t i = 0; i < rank; ++i)
    if (origins_.is_batch(value, i)) return true;
  return false;
}

bool LossCone::is_one_number(ValueId value) const {
  const Fact& fact = analysis().fact(value);
  if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked) return false;
  const auto shape = analysis().facts().dims_of(fact.shape);
  return std::ranges::all_of(shape, [&](Dim dim) { return pool().is_constant(dim, 1); });
}

ValueId LossCone::before_views(ValueId value) const {
  for (int step = 0; step < kMaxConeSteps; ++step) {
    const Opcode opcode = expressions_.op_of(value);
    if (!keeps_elements(opcode) && opcode != Opcode::kCast && opcode != Opcode::kExpand) break;
    value = expressions_.operand(expressions_.producer(value), 0);
  }
  return value;
}

bool LossCone::depends(ValueId value, ValueId on) const {
  constexpr std::size_t kMaxValues = 96;
  std::vector<ValueId> pending{value};
  Visited<ValueId> seen(analysis().meter());
  while (!pending.empty() && seen.size() < kMaxValues) {
    const ValueId at = pending.back();
    pending.pop_back();
    if (at == on) return true;
    if (at == ValueId::kAbsent || !seen.insert(at)) continue;
    const NodeId node = expressions_.producer(at);
    if (node == NodeId::kNone) continue;
    for (const ValueId operand : operands(node))
      if (operand == on || !seen.contains(operand)) pending.push_back(operand);
  }
  return seen.size() >= kMaxValues;  // not known: as if it were
}

bool LossCone::is_centred(ValueId value) const {
  value = before_views(value);
  for (int step = 0; step < kMaxConeSteps && expressions_.square_base(value) != ValueId::kAbsent; ++step)
    value = before_views(expressions_.square_base(value));
  const NodeId node = expressions_.producer(value);
  return expressions_.op(node) == Opcode::kSub &&
         expressions_.op_of(before_views(expressions_.operand(node, 1))) == Opcode::kReduceMean;
}

ValueId LossCone::norm_of(ValueId value, NodeId& node) const {
  for (int step = 0; step < kMaxConeSteps; ++step) {
    value = before_views(value);
    node = expressions_.producer(value);
    const ValueId a = expressions_.operand(node, 0), b = expressions_.operand(node, 1);
    switch (expressions_.op(node)) {
      case Opcode::kReduceL1:
      case Opcode::kReduceL2:
      case Opcode::kReduceSumSquare:
        return a;
      case Opcode::kReduceSum:
        if (const NodeId inner = expressions_.producer(a); expressions_.op(inner) == Opcode::kAbs)
          return expressions_.operand(inner, 0);
        return expressions_.square_base(a);
      case Opcode::kClip:
      case Opcode::kSqrt:
        value = a;
        break;
      case Opcode::kPow:
        if (!expressions_.is_number(b, 0.5)) return ValueId::kAbsent;
        value = a;
        break;
      case Opcode::kAdd:
      case Opcode::kMax:
        if (expressions_.number(b))
          value = a;
        else if (expressions_.number(a))
          value = b;
        else
          return ValueId::kAbsent;
        break;
      default:
        return ValueId::kAbsent;
    }
  }
  return ValueId::kAbsent;
}

bool LossCone::is_constant(ValueId value) const {
  value = before_views(value);
  if (expressions_.op_of(value) == Opcode::kConstant) return true;
  return value != ValueId::kAbsent && analysis().model().value(value).initializer != nullptr;
}

bool LossCone::is_averaged_whole(ValueId value) const {
  std::vector<ValueId> pending{value};
  bool averaged = false;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (pending.size() > 12) return false;
    for (const NodeId user : expressions_.users(pending[i])) {
      if (!has(user)) continue;
      const Opcode opcode = expressions_.op(user);
      const bool sums = opcode == Opcode::kReduceMean || opcode == Opcode::kReduceSum;
      if (sums && is_one_number(expressions_.result(user))) {
        averaged = true;
        continue;
      }
      const bool scales = opcode == Opcode::kMul && expressions_.number(expressions_.beside(user, pending[i]));
      if (opcode != Opcode::kNeg && opcode != Opcode::kTranspose && opcode != Opcode::kCast &&
          !keeps_elements(opcode) && !scales)
        return false;
      pending.push_back(expressions_.result(user));
    }
  }
  return averaged;
}

std::optional<std::vector<double>> LossCone::numbers(ValueId value) const {
  constexpr std::size_t kMost = 4096;
  const Tensor* tensor = dataflow::constant_tensor(analysis(), before_views(value));
  if (tensor == nullptr) return std::nullopt;
  expressions_.charge(kMost);
  if (tensor->element_count().value_or(kMost + 1) > kMost || !dataflow::may_read(analysis(), *tensor))
    return std::nullopt;
  return tensor->floats(kMost);
}

bool LossCone::is_input(ValueId value) const {
  value = before_views(value);
  return value != ValueId::kAbsent && analysis().model().value(value).is_given();
}

}  // namespace tensorlint::losses
