#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "passes/losses/expressions.h"

namespace tensorlint::losses {

/// Makes `known` hold a value, after what it is computed from: compute(v, follows(n)) adds v, with n values that wait,
/// and is called for operands first where that is true. cycle(v) is called for a value that is computed from itself.
/// A stack of its own: a chain of nodes may be as long as the model. Each question charges, known or not.
template <typename Known, typename Follows, typename Cycle, typename Compute>
void compute_operands_first(const Expressions& expressions, ValueId value, const Known& known, const Follows& follows,
                            const Cycle& cycle, const Compute& compute) {
  constexpr std::uint64_t kStepsOfLookup = 8;  // in a map of many
  expressions.charge(kStepsOfLookup);
  if (known.contains(value)) return;
  std::vector<ValueId> pending{value};
  std::set<ValueId> open;
  while (!pending.empty()) {
    const ValueId at = pending.back();
    if (known.contains(at)) {
      pending.pop_back();
      continue;
    }
    bool ready = true;
    const NodeId node = expressions.producer(at);
    const bool is_followed = follows(pending.size());
    if (node != NodeId::kNone && is_followed && open.insert(at).second) {
      for (const ValueId operand : expressions.analysis().operands(node)) {
        if (operand == ValueId::kAbsent || known.contains(operand)) continue;
        if (open.contains(operand)) {
          cycle(operand);
          continue;
        }
        pending.push_back(operand);
        ready = false;
      }
    }
    if (!ready) continue;
    pending.pop_back();
    compute(at, is_followed);
  }
}

}  // namespace tensorlint::losses
