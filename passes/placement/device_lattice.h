#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "passes/placement/bdd.h"
#include "passes/placement/sources.h"

namespace tensorlint::placement {

/// Where a value is, for given choices: what the leaves of a diagram number.
struct DeviceState {
  std::uint64_t bits = 0;  ///< devices it may be on; one, unless choices were not told apart
  bool tainted = false;
  bool conflict = false;  ///< only while operands are compared: they are on different devices
  friend auto operator<=>(const DeviceState&, const DeviceState&) = default;
};

inline constexpr std::uint64_t kAnywhere = ~std::uint64_t{0};

/// Values of variables (BddStore::example); those left out are false.
using Choices = std::vector<std::pair<std::uint32_t, bool>>;

/// Diagrams over states. A full store answers leaf 0: unknown, so that nothing is reported.
class DeviceLattice {
 public:
  /// `meter`: of the input.
  explicit DeviceLattice(Meter& meter);

  BddStore& store() { return store_; }
  const BddStore& store() const { return store_; }
  const DeviceState& state(std::uint32_t leaf) const { return states_[leaf]; }
  DeviceState state_at(Bdd device, const Choices& choices) const;

  // What infer_device asks for.
  using Device = Bdd;
  Bdd host() { return on(0); }
  Bdd unknown() { return store_.leaf(kUnknownLeaf); }
  Bdd on(int device) {
    return store_.leaf(device >= DeviceSources::kManyDevices ? kUnknownLeaf
                                                             : leaf_of({std::uint64_t{1} << device, false, false}));
  }

  /// Two operands (or what earlier ones gave, and one more) meet: apart where they are on different devices.
  Bdd meet(Bdd a, Bdd b) {
    if (a == b) return a;
    return store_.map2(kMeet, a, b, [this](std::uint32_t x, std::uint32_t y) { return meet(x, y); });
  }
  /// The same of an operand that is read by the host and may be on the cpu or with the data.
  Bdd meet_host(Bdd data, Bdd operand);
  /// On the devices of both, without saying under which choices.
  Bdd join(Bdd a, Bdd b);
  /// On the device of both, else anywhere.
  Bdd same_or_anywhere(Bdd a, Bdd b);
  /// What is made of operands that met: tainted where they are apart, or are tainted. A node that passes on its own tag
  /// is where it says, whatever its operands follow from.
  Bdd result(Bdd met, bool tagged = false);

  // Conditions: leaves are 0 and 1.
  Bdd untainted(Bdd device);
  Bdd fails(Bdd met);  ///< apart, by no earlier violation
  Bdd differs(Bdd a, Bdd b);

  /// One state, that follows from no violation and is none.
  bool is_sound_leaf(Bdd device) const {
    if (!store_.is_leaf(device)) return false;
    const DeviceState& state = states_[store_.value(device)];
    return !state.conflict && !state.tainted;
  }

  /// The states that are met where `guard` holds, each once.
  template <typename Visit>
  void for_each_state(Bdd device, Bdd guard, const Visit& visit) {
    const Bdd nothing = store_.leaf(leaf_of({0, false, false}));
    store_.for_each_leaf(store_.ite(guard, device, nothing), [&](std::uint32_t leaf) {
      if (states_[leaf].bits != 0) visit(states_[leaf]);
    });
  }

  /// From here on keys of BddStore::map are free for others.
  static constexpr std::uint32_t kFreeKeys = 256;

 private:
  static constexpr std::uint32_t kUnknownLeaf = 0;
  enum : std::uint32_t { kMeet = 16, kMeetHost, kFails, kUntainted, kResult, kTaggedResult, kDiffers, kEither, kSame };

  std::uint32_t leaf_of(const DeviceState& state) {
    const auto [at, added] = state_ids_.try_emplace(state, static_cast<std::uint32_t>(states_.size()));
    if (added) states_.push_back(state);
    return at->second;
  }
  std::uint32_t meet(std::uint32_t a, std::uint32_t b);

  BddStore store_;
  std::vector<DeviceState> states_;
  std::map<DeviceState, std::uint32_t> state_ids_;
};

}  // namespace tensorlint::placement
