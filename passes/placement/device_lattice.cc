#include "passes/placement/device_lattice.h"

#include <algorithm>

namespace tensorlint::placement {

DeviceLattice::DeviceLattice(Meter& meter)
    : store_(meter), states_{{kAnywhere, false, false}, {kAnywhere, true, false}} {
  for (std::uint32_t s = 0; s < states_.size(); ++s) state_ids_[states_[s]] = s;
}

DeviceState DeviceLattice::state_at(Bdd device, const Choices& choices) const {
  for (auto next = choices.begin(); !store_.is_leaf(device);) {
    // Both are in the order of the variables.
    while (next != choices.end() && next->first < store_.variable(device)) ++next;
    const bool holds = next != choices.end() && next->first == store_.variable(device) && next->second;
    device = holds ? store_.when_true(device) : store_.when_false(device);
  }
  return states_[store_.value(device)];
}

std::uint32_t DeviceLattice::meet(std::uint32_t a, std::uint32_t b) {
  const DeviceState x = states_[a], y = states_[b];
  const std::uint64_t common = x.bits & y.bits;
  const bool conflict = x.conflict || common == 0;
  return leaf_of({conflict ? x.bits : common, x.tainted || y.tainted, conflict});
}

Bdd DeviceLattice::meet_host(Bdd data, Bdd operand) {
  if (store_.is_leaf(operand) && (states_[store_.value(operand)].bits & 1U) != 0) return data;
  return store_.map2(kMeetHost, data, operand,
                     [this](std::uint32_t x, std::uint32_t y) { return (states_[y].bits & 1U) != 0 ? x : meet(x, y); });
}

Bdd DeviceLattice::join(Bdd a, Bdd b) {
  return store_.map2(kEither, a, b, [this](std::uint32_t x, std::uint32_t y) {
    return leaf_of({states_[x].bits | states_[y].bits, states_[x].tainted || states_[y].tainted, false});
  });
}

Bdd DeviceLattice::same_or_anywhere(Bdd a, Bdd b) {
  return store_.map2(kSame, a, b, [this](std::uint32_t x, std::uint32_t y) {
    return x == y ? x : leaf_of({kAnywhere, states_[x].tainted || states_[y].tainted, false});
  });
}

Bdd DeviceLattice::result(Bdd met, bool tagged) {
  return store_.map(tagged ? kTaggedResult : kResult, met, [&](std::uint32_t leaf) {
    const DeviceState& state = states_[leaf];
    return leaf_of({state.bits, state.conflict || (state.tainted && !tagged), false});
  });
}

Bdd DeviceLattice::untainted(Bdd device) {
  return store_.map(kUntainted, device, [this](std::uint32_t leaf) { return states_[leaf].tainted ? 0U : 1U; });
}

Bdd DeviceLattice::fails(Bdd met) {
  return store_.map(kFails, met,
                    [this](std::uint32_t leaf) { return states_[leaf].conflict && !states_[leaf].tainted ? 1U : 0U; });
}

Bdd DeviceLattice::differs(Bdd a, Bdd b) {
  return store_.map2(kDiffers, a, b, [this](std::uint32_t x, std::uint32_t y) {
    return !states_[x].tainted && !states_[y].tainted && (states_[x].bits & states_[y].bits) == 0 ? 1U : 0U;
  });
}

}  // namespace tensorlint::placement
