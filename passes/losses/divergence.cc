#include <cstddef>

#include "passes/losses/loss_pattern_matcher.h"

namespace tensorlint::losses {

/// KL divergence: t * log(t) - t * q, t * (log(t) - q), exp(t) * (t - q).
bool LossPatternMatcher::add_divergence(NodeId difference) {
  const ValueId left = expressions_.operand(difference, 0), right = expressions_.operand(difference, 1);
  if (const ValueId target = expressions_.times_own_log(left);
      target != ValueId::kAbsent && expressions_.op_of(right) == Opcode::kMul) {
    const NodeId anchor = expressions_.producer(right);
    const ValueId a = expressions_.operand(anchor, 0), b = expressions_.operand(anchor, 1);
    if (a == target || b == target) {
      Nodes nodes{difference, expressions_.producer(left)};
      append_selections(left, nodes);
      add(LossKind::kKlDivergence, LossEvidence::kPattern, anchor, a == target ? b : a, target, std::move(nodes));
      return true;
    }
  }
  const bool from_log = expressions_.op_of(left) == Opcode::kLog;
  const ValueId argument = from_log ? expressions_.operand(expressions_.producer(left), 0) : ValueId::kAbsent;
  for (const NodeId user : expressions_.users(expressions_.result(difference))) {
    if (expressions_.op(user) != Opcode::kMul) continue;
    const ValueId a = expressions_.operand(user, 0), b = expressions_.operand(user, 1);
    const ValueId factor = a == expressions_.result(difference) ? b : a;
    const NodeId producer = expressions_.producer(factor);
    if (from_log && factor == argument) {
      Nodes nodes{expressions_.producer(left), user};
      // Zero where t is: a selection by t itself.
      for (const NodeId select : expressions_.users(expressions_.result(user)))
        if (expressions_.op(select) == Opcode::kWhere)
          nodes.insert(nodes.end(), {select, expressions_.producer(expressions_.operand(select, 0))});
      add(LossKind::kKlDivergence, LossEvidence::kPattern, difference, right, argument, std::move(nodes));
      return true;
    }
    if (expressions_.op(producer) == Opcode::kExp && expressions_.operand(producer, 0) == left) {
      add(LossKind::kKlDivergence, LossEvidence::kPattern, difference, right, left, {producer, user});
      return true;
    }
  }
  return false;
}

/// The nodes between t and a selected t * log(t).
void LossPatternMatcher::append_selections(ValueId value, Nodes& nodes) const {
  while (nodes.size() < 16 && expressions_.op_of(value) == Opcode::kWhere) {
    const NodeId node = expressions_.producer(value);
    nodes.push_back(node);
    nodes.push_back(expressions_.producer(expressions_.operand(node, 0)));
    value = expressions_.operand(node, 2);
  }
  const NodeId product = expressions_.producer(value);
  nodes.push_back(product);
  for (std::size_t i = 0; i < 2; ++i)
    if (const NodeId log = expressions_.producer(expressions_.operand(product, i));
        expressions_.op(log) == Opcode::kLog)
      nodes.push_back(log);
}

}  // namespace tensorlint::losses
