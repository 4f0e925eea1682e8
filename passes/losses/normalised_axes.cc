#include "passes/losses/normalised_axes.h"

#include <algorithm>

namespace tensorlint::losses {

bool is_normalised_before(const Expressions& expressions, ValueId scores, std::size_t axis) {
  constexpr int kMaxSteps = 24;
  const std::size_t rank = expressions.dims(scores).size();
  for (int step = 0; step < kMaxSteps && scores != ValueId::kAbsent; ++step) {
    if (rank == 0 || expressions.dims(scores).size() != rank) return false;
    if (const auto before = expressions.normalised(scores)) {
      if (std::ranges::find(before->axes, axis) != before->axes.end()) return true;
      scores = before->scores;
      continue;
    }
    const NodeId node = expressions.producer(scores);
    switch (expressions.op(node)) {
      case Opcode::kCast:
      case Opcode::kIdentity:
      case Opcode::kDropout:
      case Opcode::kExp:
      case Opcode::kLog:
        scores = expressions.operand(node, 0);
        break;
      case Opcode::kWhere: {
        // Hidden places.
        const ValueId chosen = expressions.operand(node, 1);
        scores = expressions.number(chosen) ? expressions.operand(node, 2) : chosen;
        break;
      }
      case Opcode::kAdd:
      case Opcode::kMul:
      case Opcode::kDiv:
        if (!expressions.number(expressions.operand(node, 1))) return false;
        scores = expressions.operand(node, 0);
        break;
      default:
        return false;
    }
  }
  return false;
}

}  // namespace tensorlint::losses
