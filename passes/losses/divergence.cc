#include <cstddef>

#include "passes/losses/finder.h"

namespace tensorlint::losses {

/// KL divergence: t * log(t) - t * q, t * (log(t) - q), exp(t) * (t - q).
bool Finder::add_divergence(NodeId difference) {
  const ValueId left = terms_.operand(difference, 0), right = terms_.operand(difference, 1);
  if (const ValueId target = terms_.times_own_log(left);
      target != ValueId::kAbsent && terms_.op_of(right) == Opcode::kMul) {
    const NodeId meeting = terms_.maker(right);
    const ValueId a = terms_.operand(meeting, 0), b = terms_.operand(meeting, 1);
    if (a == target || b == target) {
      Nodes nodes{difference, terms_.maker(left)};
      append_selections(left, nodes);
      add(LossKind::kKlDivergence, LossEvidence::kPattern, meeting, a == target ? b : a, target, std::move(nodes));
      return true;
    }
  }
  const bool from_log = terms_.op_of(left) == Opcode::kLog;
  const ValueId argument = from_log ? terms_.operand(terms_.maker(left), 0) : ValueId::kAbsent;
  for (const NodeId user : terms_.users(terms_.result(difference))) {
    if (terms_.op(user) != Opcode::kMul) continue;
    const ValueId a = terms_.operand(user, 0), b = terms_.operand(user, 1);
    const ValueId factor = a == terms_.result(difference) ? b : a;
    const NodeId made_by = terms_.maker(factor);
    if (from_log && factor == argument) {
      Nodes nodes{terms_.maker(left), user};
      // Zero where t is: a selection by t itself.
      for (const NodeId select : terms_.users(terms_.result(user)))
        if (terms_.op(select) == Opcode::kWhere)
          nodes.insert(nodes.end(), {select, terms_.maker(terms_.operand(select, 0))});
      add(LossKind::kKlDivergence, LossEvidence::kPattern, difference, right, argument, std::move(nodes));
      return true;
    }
    if (terms_.op(made_by) == Opcode::kExp && terms_.operand(made_by, 0) == left) {
      add(LossKind::kKlDivergence, LossEvidence::kPattern, difference, right, left, {made_by, user});
      return true;
    }
  }
  return false;
}

/// The nodes between t and a selected t * log(t).
void Finder::append_selections(ValueId value, Nodes& nodes) const {
  while (nodes.size() < 16 && terms_.op_of(value) == Opcode::kWhere) {
    const NodeId node = terms_.maker(value);
    nodes.push_back(node);
    nodes.push_back(terms_.maker(terms_.operand(node, 0)));
    value = terms_.operand(node, 2);
  }
  const NodeId product = terms_.maker(value);
  nodes.push_back(product);
  for (std::size_t i = 0; i < 2; ++i)
    if (const NodeId log = terms_.maker(terms_.operand(product, i)); terms_.op(log) == Opcode::kLog)
      nodes.push_back(log);
}

}  // namespace tensorlint::losses
