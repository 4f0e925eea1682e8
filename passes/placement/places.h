#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "passes/placement/diagram.h"
#include "passes/placement/sources.h"

namespace tensorlint {

/// Where a value is, for given choices: what the leaves of a diagram number.
struct State {
  std::uint64_t bits = 0;  ///< devices it may be on; one, unless choices were not told apart
  bool tainted = false;
  bool apart = false;      ///< only while operands are compared: they are on different devices
  friend auto operator<=>(const State&, const State&) = default;
};

inline constexpr std::uint64_t kAnywhere = ~std::uint64_t{0};

/// Values of variables (DiagramStore::example); those left out are false.
using Choices = std::vector<std::pair<std::uint32_t, bool>>;

/// Diagrams over states. A full store answers leaf 0: unknown, so that nothing is reported.
class Places {
 public:
  Places();

  DiagramStore& store() { return store_; }
  const DiagramStore& store() const { return store_; }
  const State& state(std::uint32_t leaf) const { return states_[leaf]; }
  State state_at(Diagram device, const Choices& choices) const;

  Diagram unknown() { return store_.leaf(kUnknownLeaf); }
  Diagram on(int device) {
    return store_.leaf(device >= DeviceSources::kManyDevices ? kUnknownLeaf : leaf_of({std::uint64_t{1} << device, false, false}));
  }

  /// Two operands (or what earlier ones gave, and one more) meet: apart where they are on different devices.
  Diagram meet(Diagram a, Diagram b) {
    if (a == b) return a;
    return store_.map2(kMeet, a, b, [this](std::uint32_t x, std::uint32_t y) { return meet(x, y); });
  }
  /// The same of an operand that is read by the host and may be on the cpu or with the data.
  Diagram meet_host(Diagram data, Diagram operand);
  /// On the devices of both: choices are not told apart.
  Diagram either(Diagram a, Diagram b);
  /// On the device of both, else anywhere.
  Diagram same_or_anywhere(Diagram a, Diagram b);
  /// What is made of operands that met: tainted where they are apart, or are tainted. A node that passes on its own tag is
  /// where it says, whatever its operands follow from.
  Diagram result(Diagram met, bool tagged = false);

  // Conditions: leaves are 0 and 1.
  Diagram untainted(Diagram device);
  Diagram fails(Diagram met);  ///< apart, by no earlier failure
  Diagram differs(Diagram a, Diagram b);

  /// One state, that follows from no failure and is none.
  bool is_sound_leaf(Diagram device) const {
    if (!store_.is_leaf(device)) return false;
    const State& state = states_[store_.value(device)];
    return !state.apart && !state.tainted;
  }

  /// The states that are met where `guard` holds, each once.
  template <typename Visit>
  void for_each_state(Diagram device, Diagram guard, const Visit& visit) {
    const Diagram nothing = store_.leaf(leaf_of({0, false, false}));
    store_.for_each_leaf(store_.choose(guard, device, nothing), [&](std::uint32_t leaf) {
      if (states_[leaf].bits != 0) visit(states_[leaf]);
    });
  }

  /// From here on keys of DiagramStore::map are free for others.
  static constexpr std::uint32_t kFreeKeys = 256;

 private:
  static constexpr std::uint32_t kUnknownLeaf = 0;
  enum : std::uint32_t { kMeet = 16, kMeetHost, kFails, kUntainted, kResult, kTaggedResult, kDiffers, kEither, kSame };

  std::uint32_t leaf_of(const State& state) {
    const auto [at, added] = state_ids_.emplace(state, static_cast<std::uint32_t>(states_.size()));
    if (added) states_.push_back(state);
    return at->second;
  }
  std::uint32_t meet(std::uint32_t a, std::uint32_t b);

  DiagramStore store_;
  std::vector<State> states_;
  std::map<State, std::uint32_t> state_ids_;
};

}  // namespace tensorlint
