#include "passes/losses/loss_call.h"

#include "passes/losses/loss_pattern_matcher.h"

namespace tensorlint::losses {

std::optional<LossSite> loss_of_call(const dataflow::Analysis& analysis, NodeId call) {
  return LossPatternMatcher(analysis).find_at(call);
}

std::optional<LossSite> LossPatternMatcher::find_at(NodeId call) {
  const ops::OpEntry* entry = analysis_.entry(model_.node(call));
  if (entry == nullptr || !entry->loss()) return std::nullopt;
  add_operator(call, *entry);
  return sites_.empty() ? std::nullopt : std::optional(sites_.front());
}

}  // namespace tensorlint::losses
