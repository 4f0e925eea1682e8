#include "passes/losses/finder.h"

namespace tensorlint::losses {

/// Cross-entropy written out: the logarithm of a softmax, times probabilities or gathered at class indices, summed,
/// negated.
void Finder::add_cross_entropy(NodeId logarithm) {
  ValueId scores = terms_.operand(logarithm, 0);
  Nodes nodes{logarithm};
  if (terms_.op(logarithm) == Opcode::kLog) {
    const NodeId softmax = terms_.maker(scores);
    if (terms_.op(softmax) != Opcode::kSoftmax) return;
    nodes.push_back(softmax);
    scores = terms_.operand(softmax, 0);
  }
  const ValueId result = terms_.result(logarithm);
  for (const NodeId user : terms_.users(result)) {
    const ValueId a = terms_.operand(user, 0), b = terms_.operand(user, 1);
    ValueId target = ValueId::kAbsent;
    if (terms_.op(user) == Opcode::kMul) target = a == result ? b : a;
    if (terms_.op(user) == Opcode::kGatherElements && a == result) target = index_source(b);
    if (target == ValueId::kAbsent || target == result) continue;
    // p * log(p): an entropy.
    const NodeId made_by = terms_.maker(terms_.source(target));
    if ((terms_.op(made_by) == Opcode::kSoftmax && terms_.operand(made_by, 0) == scores) ||
        terms_.op(made_by) == Opcode::kExp)
      continue;
    Nodes tail = nodes;
    if (!append_negated_reduction(terms_.result(user), tail)) continue;
    add(LossKind::kCrossEntropy, LossEvidence::kPattern, user, scores, target, std::move(tail));
    return;
  }
}

/// Class indices without the axis that gathering needs.
ValueId Finder::index_source(ValueId value) const {
  for (int i = 0; i < kMaxTail; ++i) {
    value = terms_.source(value);
    const Opcode made_by = terms_.op_of(value);
    if (made_by != Opcode::kUnsqueeze && made_by != Opcode::kReshape) break;
    value = terms_.operand(terms_.maker(value), 0);
  }
  return value;
}

bool Finder::append_negated_reduction(ValueId value, Nodes& nodes) const {
  struct Step {
    ValueId value;
    int depth;
    bool negated, reduced;
  };
  std::vector<Step> pending{{value, 0, false, false}};
  for (std::size_t i = 0; i < pending.size() && pending.size() < 64; ++i) {
    const Step step = pending[i];
    if (step.depth == kMaxTail) continue;
    for (const NodeId user : terms_.users(step.value)) {
      Step next{terms_.result(user), step.depth + 1, step.negated, step.reduced};
      switch (terms_.op(user)) {
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
          const ValueId a = terms_.operand(user, 0), b = terms_.operand(user, 1);
          const auto scale = terms_.number(a == step.value ? b : a);
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
