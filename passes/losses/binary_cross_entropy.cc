#include <algorithm>
#include <cstddef>

#include "passes/losses/finder.h"

namespace tensorlint::losses {
namespace {

bool contains(std::span<const ValueId> values, ValueId value) {
  return value != ValueId::kAbsent && std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

/// Binary cross-entropy: a sum or difference of t * log(p) and (1 - t) * log(1 - p), or of (1 - t) * x and
/// log(sigmoid(x)). Either is enough to know it by.
bool Finder::add_cross_entropy_of_two(NodeId combination) {
  const ValueId left = terms_.operand(combination, 0), right = terms_.operand(combination, 1);
  if (!is_product(left) && !is_product(right)) return false;
  const std::vector<ValueId> a = terms_.factors(left), b = terms_.factors(right);
  return add_binary(combination, a, b) || add_binary(combination, b, a) || add_with_logits(combination, a, b) ||
         add_with_logits(combination, b, a);
}

bool Finder::is_product(ValueId value) const {
  const Opcode made_by = terms_.op_of(value);
  return made_by == Opcode::kMul || made_by == Opcode::kNeg;
}

/// The node of a product that multiplies one of `values` itself; the last multiplication where there is none.
NodeId Finder::product_with(std::span<const ValueId> factors, ValueId a, ValueId b) const {
  NodeId last = NodeId::kNone;
  for (const ValueId factor : factors) {
    const NodeId node = terms_.maker(factor);
    if (terms_.op(node) != Opcode::kMul) continue;
    const ValueId x = terms_.operand(node, 0), y = terms_.operand(node, 1);
    if ((x == a && y == b) || (x == b && y == a)) return node;
    if (last == NodeId::kNone) last = node;
  }
  return last;
}

bool Finder::add_binary(NodeId combination, std::span<const ValueId> positive, std::span<const ValueId> negative) {
  for (const ValueId log_q : negative) {
    const auto q = terms_.log_term(log_q);
    if (!q || !q->complement) continue;
    for (const ValueId log_p : positive) {
      const auto p = terms_.log_term(log_p);
      if (!p || p->complement || p->argument == ValueId::kAbsent ||
          terms_.source(p->argument) != terms_.source(q->argument))
        continue;
      for (const ValueId other : negative) {
        const ValueId target = terms_.complement(other);
        if (!contains(positive, target)) continue;
        const NodeId first = product_with(positive, target, log_p), second = product_with(negative, other, log_q);
        // One exporter writes the loss with logits so, with constants of its own shape and the sign right behind.
        const bool exported =
            terms_.is_constant_of_rank_one(terms_.operand(terms_.maker(other), 0)) && is_negated(combination);
        const bool logits = exported && p->logit != ValueId::kAbsent;
        Nodes nodes{combination, first, second, terms_.maker(other)};
        append_makers(positive, nodes);
        append_makers(negative, nodes);
        drop_maker(p->argument, nodes);
        drop_maker(target, nodes);
        add(logits ? LossKind::kBinaryCrossEntropyWithLogits : LossKind::kBinaryCrossEntropy, LossEvidence::kPattern,
            std::min(first, second), logits ? p->logit : p->argument, target, std::move(nodes));
        return true;
      }
    }
  }
  return false;
}

bool Finder::is_negated(NodeId node) const {
  const auto users = terms_.users(terms_.result(node));
  return users.size() == 1 && terms_.op(users[0]) == Opcode::kNeg;
}

bool Finder::add_with_logits(NodeId combination, std::span<const ValueId> linear,
                             std::span<const ValueId> logarithmic) {
  for (const ValueId log : logarithmic) {
    const auto term = terms_.log_term(log);
    if (!term || term->complement || !contains(linear, term->logit)) continue;
    for (const ValueId other : linear) {
      const ValueId target = terms_.complement(other);
      if (target == ValueId::kAbsent || target == term->logit) continue;
      const NodeId meeting = product_with(linear, other, term->logit);
      if (meeting == NodeId::kNone) continue;
      Nodes nodes{combination, terms_.maker(other), terms_.maker(log)};
      append_makers(linear, nodes);
      append_makers(logarithmic, nodes);
      append_class_weights(logarithmic, target, nodes);
      drop_maker(term->logit, nodes);
      drop_maker(target, nodes);
      add(LossKind::kBinaryCrossEntropyWithLogits, LossEvidence::kPattern, meeting, term->logit, target,
          std::move(nodes));
      return true;
    }
  }
  return false;
}

/// (w - 1) * t + 1 among the factors.
void Finder::append_class_weights(std::span<const ValueId> factors, ValueId target, Nodes& nodes) const {
  for (const ValueId factor : factors) {
    if (terms_.op_of(factor) != Opcode::kAdd) continue;
    for (std::size_t i = 0; i < 2; ++i) {
      const NodeId product = terms_.maker(terms_.operand(terms_.maker(factor), i));
      if (terms_.op(product) != Opcode::kMul) continue;
      if (terms_.operand(product, 0) == target || terms_.operand(product, 1) == target) nodes.push_back(product);
    }
  }
}

}  // namespace tensorlint::losses
