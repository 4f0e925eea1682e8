#include "passes/losses/loss_pattern_matcher.h"

namespace tensorlint::losses {

/// Cross-entropy written out: the logarithm of a softmax, times probabilities or gathered at class indices, summed,
/// negated.
void LossPatternMatcher::add_cross_entropy(NodeId logarithm) {
  ValueId scores = expressions_.operand(logarithm, 0);
  Nodes nodes{logarithm};
  if (expressions_.op(logarithm) == Opcode::kLog) {
    const NodeId softmax = expressions_.producer(scores);
    if (expressions_.op(softmax) != Opcode::kSoftmax) return;
    nodes.push_back(softmax);
    scores = expressions_.operand(softmax, 0);
  }
  const ValueId result = expressions_.result(logarithm);
  for (const NodeId user : expressions_.users(result)) {
    const ValueId a = expressions_.operand(user, 0), b = expressions_.operand(user, 1);
    ValueId target = ValueId::kAbsent;
    if (expressions_.op(user) == Opcode::kMul) target = a == result ? b : a;
    if (expressions_.op(user) == Opcode::kGatherElements && a == result) target = index_source(b);
    if (target == ValueId::kAbsent || target == result) continue;
    // p * log(p): an entropy.
    const NodeId producer = expressions_.producer(expressions_.source(target));
    if ((expressions_.op(producer) == Opcode::kSoftmax && expressions_.operand(producer, 0) == scores) ||
        expressions_.op(producer) == Opcode::kExp)
      continue;
    Nodes tail = nodes;
    if (!append_negated_reduction(expressions_.result(user), tail)) continue;
    add(LossKind::kCrossEntropy, LossEvidence::kPattern, user, scores, target, std::move(tail));
    return;
  }
}

/// Class indices without the axis that gathering needs.
ValueId LossPatternMatcher::index_source(ValueId value) const {
  for (int i = 0; i < kMaxTail; ++i) {
    value = expressions_.source(value);
    const Opcode op = expressions_.op_of(value);
    if (op != Opcode::kUnsqueeze && op != Opcode::kReshape) break;
    value = expressions_.operand(expressions_.producer(value), 0);
  }
  return value;
}

bool LossPatternMatcher::append_negated_reduction(ValueId value, Nodes& nodes) const {
  struct Step {
    ValueId value;
    int depth;
    bool negated, reduced;
  };
  std::vector<Step> pending{{value, 0, false, false}};
  for (std::size_t i = 0; i < pending.size() && pending.size() < 64; ++i) {
    const Step step = pending[i];
    if (step.depth == kMaxTail) continue;
    for (const NodeId user : expressions_.users(step.value)) {
      Step next{expressions_.result(user), step.depth + 1, step.negated, step.reduced};
      switch (expressions_.op(user)) {
        case Opcode::kNeg:
          next.negated = true;
          break;
        case Opcode::kReduceMean:
        case Opcode::kReduceSum:
          next.reduced = true;
          break;
        case Opcode::kSqueeze:
        case Opcode::kDiv:
          break;
        case Opcode::kMul: {
          const ValueId a = expressions_.operand(user, 0), b = expressions_.operand(user, 1);
          const auto scale = expressions_.number(a == step.value ? b : a);
          if (scale && *scale < 0) next.negated = true;
          break;
        }
        default:
          continue;
      }
      nodes.push_back(user);
      if (next.negated && next.reduced) return true;
      pending.push_back(next);
    }
  }
  return false;
}

}  // namespace tensorlint::losses
