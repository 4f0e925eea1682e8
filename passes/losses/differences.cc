#include <algorithm>
#include <cstddef>
#include <string_view>

#include "passes/losses/loss_pattern_matcher.h"

namespace tensorlint::losses {

/// Losses of a - b: squared, absolute, Huber's, log-cosh.
void LossPatternMatcher::add_difference(NodeId difference) {
  const ValueId a = expressions_.operand(difference, 0), b = expressions_.operand(difference, 1),
                result = expressions_.result(difference);
  if (a == ValueId::kAbsent || b == ValueId::kAbsent || a == b || result == ValueId::kAbsent) return;
  // A value less its own mean: a variance.
  if (is_mean_of(a, b) || is_mean_of(b, a)) return;
  for (const NodeId next : expressions_.users(result)) {
    const ValueId distance = expressions_.result(next);
    NodeId twin = NodeId::kNone;
    LossKind kind = LossKind::kMse;
    bool certain = false;
    Nodes nodes{next};
    switch (expressions_.op(next)) {
      case Opcode::kAbs:
        kind = LossKind::kL1;
        if (append_huber(distance, result, nodes)) {
          kind = LossKind::kHuber;
          certain = true;
        }
        break;
      case Opcode::kPow:
        if (expressions_.operand(next, 0) != result || !expressions_.is_number(expressions_.operand(next, 1), 2))
          continue;
        break;
      case Opcode::kMul:
        twin = same_difference(next, difference);
        if (twin == NodeId::kNone || twin < difference) continue;
        nodes.push_back(twin);
        certain = append_broadcast(difference, nodes);
        break;
      case Opcode::kCosh:
        kind = LossKind::kLogCosh;
        if (const auto users = expressions_.users(distance);
            users.size() == 1 && expressions_.op(users[0]) == Opcode::kLog) {
          nodes.push_back(users[0]);
          certain = true;
        }
        if (!certain) continue;
        break;
      default:
        continue;
    }
    LossEvidence evidence = LossEvidence::kPattern;
    if (!certain && !append_reduction(distance, nodes)) {
      if (is_named(difference, kind))
        evidence = LossEvidence::kMetadata;
      else if (!is_result_of_model(distance, a, b))
        continue;
    }
    const auto [prediction, target] = parameters_.tell_apart(a, b);
    add(kind, evidence, difference, prediction, target, std::move(nodes));
    return;
  }
}

bool LossPatternMatcher::is_mean_of(ValueId mean, ValueId value) const {
  return expressions_.op_of(mean) == Opcode::kReduceMean &&
         expressions_.operand(expressions_.producer(mean), 0) == value;
}

/// The other difference that a product multiplies `difference` with: itself, or one of the same operands.
NodeId LossPatternMatcher::same_difference(NodeId product, NodeId difference) const {
  const NodeId a = expressions_.producer(expressions_.operand(product, 0)),
               b = expressions_.producer(expressions_.operand(product, 1));
  const NodeId other = a == difference ? b : a;
  if (other == difference) return difference;
  // Each of them may cast for itself.
  const auto same = [&](std::size_t i) {
    return expressions_.source(expressions_.operand(other, i)) ==
           expressions_.source(expressions_.operand(difference, i));
  };
  return expressions_.op(other) == Opcode::kSub && same(0) && same(1) ? other : NodeId::kNone;
}

/// Both operands stretched to the shape of their sum, as one exporter writes mse_loss. The sum is part of it.
bool LossPatternMatcher::append_broadcast(NodeId difference, Nodes& nodes) const {
  NodeId sum = NodeId::kNone;
  Nodes found;
  for (std::size_t i = 0; i < 2; ++i) {
    ValueId operand = expressions_.operand(difference, i);
    if (expressions_.op_of(operand) == Opcode::kCast) operand = expressions_.operand(expressions_.producer(operand), 0);
    const NodeId expand = expressions_.producer(operand);
    if (expressions_.op(expand) != Opcode::kExpand) return false;
    const NodeId shape = expressions_.producer(expressions_.operand(expand, 1));
    const NodeId shaped = expressions_.producer(expressions_.operand(shape, 0));
    if (expressions_.op(shape) != Opcode::kShape || expressions_.op(shaped) != Opcode::kAdd ||
        (i == 1 && shaped != sum))
      return false;
    sum = shaped;
    found.insert(found.end(), {expand, shaped});
  }
  nodes.insert(nodes.end(), found.begin(), found.end());
  return true;
}

/// Where(|d| < delta, c * d^2, c * (|d| - c)), `size` being |d|.
bool LossPatternMatcher::append_huber(ValueId size, ValueId difference, Nodes& nodes) const {
  for (const NodeId compare : expressions_.users(size)) {
    if (expressions_.op(compare) != Opcode::kCompare) continue;
    for (const NodeId select : expressions_.users(expressions_.result(compare))) {
      if (expressions_.op(select) != Opcode::kWhere || expressions_.operand(select, 0) != expressions_.result(compare))
        continue;
      const std::vector<ValueId> a = expressions_.factors(expressions_.operand(select, 1)),
                                 b = expressions_.factors(expressions_.operand(select, 2));
      if (!(is_square(a, size, difference) && is_line(b, size)) &&
          !(is_square(b, size, difference) && is_line(a, size)))
        continue;
      nodes.insert(nodes.end(), {compare, select});
      append_makers(a, nodes);
      append_makers(b, nodes);
      return true;
    }
  }
  return false;
}

bool LossPatternMatcher::is_square(std::span<const ValueId> factors, ValueId size, ValueId difference) const {
  int power = 0;
  for (const ValueId factor : factors) {
    const NodeId node = expressions_.producer(factor);
    if (factor == size || factor == difference) ++power;
    const ValueId base = expressions_.operand(node, 0);
    if (expressions_.op(node) == Opcode::kPow && (base == size || base == difference) &&
        expressions_.is_number(expressions_.operand(node, 1), 2))
      power += 2;
  }
  return power == 2;
}

bool LossPatternMatcher::is_line(std::span<const ValueId> factors, ValueId size) const {
  return std::any_of(factors.begin(), factors.end(), [&](ValueId factor) {
    const NodeId node = expressions_.producer(factor);
    return expressions_.op(node) == Opcode::kSub && expressions_.operand(node, 0) == size &&
           expressions_.number(expressions_.operand(node, 1));
  });
}

/// Appends what reduces `value` to a scalar, with weights, a sign or a mean over rows on the way.
bool LossPatternMatcher::append_reduction(ValueId value, Nodes& nodes) const {
  std::vector<std::pair<ValueId, int>> pending{{value, 0}};
  for (std::size_t i = 0; i < pending.size() && pending.size() < 64; ++i) {
    const auto [at, depth] = pending[i];
    for (const NodeId user : expressions_.users(at)) {
      const Opcode kind = expressions_.op(user);
      const bool reduces = kind == Opcode::kReduceMean || kind == Opcode::kReduceSum;
      if (reduces && expressions_.operand(user, 0) == at && reduces_to_scalar(user)) {
        nodes.push_back(user);
        return true;
      }
      const bool passes =
          reduces || kind == Opcode::kMul || kind == Opcode::kNeg || kind == Opcode::kSqueeze || kind == Opcode::kDiv;
      if (passes && depth + 1 < kMaxTail && !keeps_axes(user))
        pending.emplace_back(expressions_.result(user), depth + 1);
    }
  }
  return false;
}

/// Every axis is reduced: there are no axes, or they are empty and that means all, or they name each.
bool LossPatternMatcher::reduces_to_scalar(NodeId id) const {
  if (analysis_.attribute(id, "axes") != nullptr) return false;
  const Attribute* noop = analysis_.attribute(id, "noop_with_empty_axes");
  if (noop != nullptr && noop->i != 0) return false;
  const auto operands = analysis_.operands(id);
  if (operands.size() < 2 || operands[1] == ValueId::kAbsent) return true;
  const Content* content = analysis_.content(operands[1]);
  const Fact& data = analysis_.fact(operands[0]);
  const bool ranked = data.shape != ShapeId::kUnranked;
  return content != nullptr && ranked && content->size() == analysis_.facts().dims_of(data.shape).size();
}

/// A reduction that leaves its axes: a statistic to be broadcast again, not a loss by rows.
bool LossPatternMatcher::keeps_axes(NodeId id) const {
  const Opcode kind = expressions_.op(id);
  if (kind != Opcode::kReduceMean && kind != Opcode::kReduceSum) return false;
  const Attribute* keep = analysis_.attribute(id, "keepdims");
  return keep == nullptr || keep->i != 0;
}

/// What the exporter wrote about a node says that it is part of such a loss.
bool LossPatternMatcher::is_named(NodeId node, LossKind kind) {
  if (model_.provenance == nullptr) return false;
  constexpr std::string_view kScope = "namespace", kHierarchy = "pkg.torch.onnx.class_hierarchy";
  if (!mentions_losses_)
    mentions_losses_ = model_.provenance->mentions(kScope) || model_.provenance->mentions(kHierarchy);
  if (!*mentions_losses_) return false;
  for (const MetadataEntry& entry : model_.provenance->node_metadata(model_.node(node)))
    if ((entry.key == kScope || entry.key == kHierarchy) && loss_named(entry.value) == kind) return true;
  return false;
}

/// The model hands the distance out, between what its parameters compute and an input: a loss without reduction.
bool LossPatternMatcher::is_result_of_model(ValueId distance, ValueId a, ValueId b) {
  const Value& value = model_.value(distance);
  if (!value.is_output || value.graph != GraphId::kMain) return false;
  const auto [prediction, target] = parameters_.tell_apart(a, b);
  const Value& compared = model_.value(expressions_.source(target));
  return parameters_.reach(prediction) && compared.origin == ValueOrigin::kInput && compared.graph == GraphId::kMain;
}

}  // namespace tensorlint::losses
