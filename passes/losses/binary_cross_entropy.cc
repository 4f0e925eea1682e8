#include <algorithm>
#include <cstddef>

#include "passes/losses/loss_pattern_matcher.h"

namespace tensorlint::losses {
namespace {

bool contains(std::span<const ValueId> values, ValueId value) {
  return value != ValueId::kAbsent && std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

/// Binary cross-entropy: a sum or difference of t * log(p) and (1 - t) * log(1 - p), or of (1 - t) * x and
/// log(sigmoid(x)). Either is enough to know it by.
bool LossPatternMatcher::add_cross_entropy_of_two(NodeId combination) {
  const ValueId left = expressions_.operand(combination, 0), right = expressions_.operand(combination, 1);
  if (!is_product(left) && !is_product(right)) return false;
  const std::vector<ValueId> a = expressions_.factors(left), b = expressions_.factors(right);
  return add_binary(combination, a, b) || add_binary(combination, b, a) || add_with_logits(combination, a, b) ||
         add_with_logits(combination, b, a);
}

bool LossPatternMatcher::is_product(ValueId value) const {
  const Opcode op = expressions_.op_of(value);
  return op == Opcode::kMul || op == Opcode::kNeg;
}

/// The node of a product that multiplies one of `values` itself; the last multiplication where there is none.
NodeId LossPatternMatcher::product_with(std::span<const ValueId> factors, ValueId a, ValueId b) const {
  NodeId last = NodeId::kNone;
  for (const ValueId factor : factors) {
    const NodeId node = expressions_.producer(factor);
    if (expressions_.op(node) != Opcode::kMul) continue;
    const ValueId x = expressions_.operand(node, 0), y = expressions_.operand(node, 1);
    if ((x == a && y == b) || (x == b && y == a)) return node;
    if (last == NodeId::kNone) last = node;
  }
  return last;
}

bool LossPatternMatcher::add_binary(NodeId combination, std::span<const ValueId> positive,
                                    std::span<const ValueId> negative) {
  for (const ValueId log_q : negative) {
    const auto q = expressions_.log_term(log_q);
    if (!q || !q->complement) continue;
    for (const ValueId log_p : positive) {
      const auto p = expressions_.log_term(log_p);
      if (!p || p->complement || p->argument == ValueId::kAbsent ||
          expressions_.source(p->argument) != expressions_.source(q->argument))
        continue;
      for (const ValueId other : negative) {
        const ValueId target = expressions_.complement(other);
        if (!contains(positive, target)) continue;
        const NodeId first = product_with(positive, target, log_p), second = product_with(negative, other, log_q);
        // One exporter writes the loss with logits so, with constants of its own shape and the sign right behind.
        const bool exported =
            expressions_.is_constant_of_rank_one(expressions_.operand(expressions_.producer(other), 0)) &&
            is_negated(combination);
        const bool logits = exported && p->logit != ValueId::kAbsent;
        Nodes nodes{combination, first, second, expressions_.producer(other)};
        append_makers(positive, nodes);
        append_makers(negative, nodes);
        drop_producer(p->argument, nodes);
        drop_producer(target, nodes);
        add(logits ? LossKind::kBinaryCrossEntropyWithLogits : LossKind::kBinaryCrossEntropy, LossEvidence::kPattern,
            std::min(first, second), logits ? p->logit : p->argument, target, std::move(nodes));
        return true;
      }
    }
  }
  return false;
}

bool LossPatternMatcher::is_negated(NodeId node) const {
  const auto users = expressions_.users(expressions_.result(node));
  return users.size() == 1 && expressions_.op(users[0]) == Opcode::kNeg;
}

bool LossPatternMatcher::add_with_logits(NodeId combination, std::span<const ValueId> linear,
                                         std::span<const ValueId> logarithmic) {
  for (const ValueId log : logarithmic) {
    const auto term = expressions_.log_term(log);
    if (!term || term->complement || !contains(linear, term->logit)) continue;
    for (const ValueId other : linear) {
      const ValueId target = expressions_.complement(other);
      if (target == ValueId::kAbsent || target == term->logit) continue;
      const NodeId anchor = product_with(linear, other, term->logit);
      if (anchor == NodeId::kNone) continue;
      Nodes nodes{combination, expressions_.producer(other), expressions_.producer(log)};
      append_makers(linear, nodes);
      append_makers(logarithmic, nodes);
      append_class_weights(logarithmic, target, nodes);
      drop_producer(term->logit, nodes);
      drop_producer(target, nodes);
      add(LossKind::kBinaryCrossEntropyWithLogits, LossEvidence::kPattern, anchor, term->logit, target,
          std::move(nodes));
      return true;
    }
  }
  return false;
}

/// (w - 1) * t + 1 among the factors.
void LossPatternMatcher::append_class_weights(std::span<const ValueId> factors, ValueId target, Nodes& nodes) const {
  for (const ValueId factor : factors) {
    if (expressions_.op_of(factor) != Opcode::kAdd) continue;
    for (std::size_t i = 0; i < 2; ++i) {
      const NodeId product = expressions_.producer(expressions_.operand(expressions_.producer(factor), i));
      if (expressions_.op(product) != Opcode::kMul) continue;
      if (expressions_.operand(product, 0) == target || expressions_.operand(product, 1) == target)
        nodes.push_back(product);
    }
  }
}

}  // namespace tensorlint::losses
