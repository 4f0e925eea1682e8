#include "passes/placement/places.h"

#include <algorithm>

namespace tensorlint {

Places::Places() : states_{{kAnywhere, false, false}, {kAnywhere, true, false}} {
  for (std::uint32_t s = 0; s < states_.size(); ++s) state_ids_[states_[s]] = s;
}

State Places::state_at(Diagram device, const Choices& choices) const {
  while (!store_.is_leaf(device)) {
    const auto found = std::find_if(choices.begin(), choices.end(), [&](const auto& choice) { return choice.first == store_.variable(device); });
    device = found != choices.end() && found->second ? store_.when_true(device) : store_.when_false(device);
  }
  return states_[store_.value(device)];
}

std::uint32_t Places::meet(std::uint32_t a, std::uint32_t b) {
  const State x = states_[a], y = states_[b];
  const std::uint64_t common = x.bits & y.bits;
  const bool apart = x.apart || common == 0;
  return leaf_of({apart ? x.bits : common, x.tainted || y.tainted, apart});
}

Diagram Places::meet_host(Diagram data, Diagram operand) {
  if (store_.is_leaf(operand) && (states_[store_.value(operand)].bits & 1U) != 0) return data;
  return store_.map2(kMeetHost, data, operand, [this](std::uint32_t x, std::uint32_t y) {
    return (states_[y].bits & 1U) != 0 ? x : meet(x, y);
  });
}

Diagram Places::either(Diagram a, Diagram b) {
  return store_.map2(kEither, a, b, [this](std::uint32_t x, std::uint32_t y) {
    return leaf_of({states_[x].bits | states_[y].bits, states_[x].tainted || states_[y].tainted, false});
  });
}

Diagram Places::same_or_anywhere(Diagram a, Diagram b) {
  return store_.map2(kSame, a, b, [this](std::uint32_t x, std::uint32_t y) {
    return x == y ? x : leaf_of({kAnywhere, states_[x].tainted || states_[y].tainted, false});
  });
}

Diagram Places::result(Diagram met, bool tagged) {
  return store_.map(tagged ? kTaggedResult : kResult, met, [&](std::uint32_t leaf) {
    const State& state = states_[leaf];
    return leaf_of({state.bits, state.apart || (state.tainted && !tagged), false});
  });
}

Diagram Places::untainted(Diagram device) {
  return store_.map(kUntainted, device, [this](std::uint32_t leaf) { return states_[leaf].tainted ? 0U : 1U; });
}

Diagram Places::fails(Diagram met) {
  return store_.map(kFails, met, [this](std::uint32_t leaf) { return states_[leaf].apart && !states_[leaf].tainted ? 1U : 0U; });
}

Diagram Places::differs(Diagram a, Diagram b) {
  return store_.map2(kDiffers, a, b, [this](std::uint32_t x, std::uint32_t y) {
    return !states_[x].tainted && !states_[y].tainted && (states_[x].bits & states_[y].bits) == 0 ? 1U : 0U;
  });
}

}  // namespace tensorlint
