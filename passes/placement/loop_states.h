#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "passes/placement/device_lattice.h"
#include "passes/placement/symbols.h"

namespace tensorlint::placement {

/// What loops carry from one iteration to the next: when it repeats, and how it is kept small. `old` is what there was
/// before the loop: symbols made since are its iterations' own.
class LoopStates {
 public:
  LoopStates(BddStore& store, Symbols& symbols) : store_(store), symbols_(symbols) {}

  /// Stands for a loop's state but for the names of what the iterations made: equal states go on alike. 128 bits of a
  /// seeded hash, since iterations are many and states may be large.
  using Signature = std::array<std::uint64_t, 2>;
  Signature signature(std::span<const Placed> state, Bdd going, Symbols::Count old) const;

  /// What a loop carries, as a choice between its possible outcomes instead of by the choices that earlier iterations
  /// made, which would be one more in each. Choices from outside the loop stay as they are. `inside`: when the loop
  /// goes on. `named`: the value that the new choices are named after.
  void forget_choices(std::vector<Placed>& state, Bdd inside, Symbols::Count old, ValueId named);

 private:
  /// The diagram from its leaves up: `of_leaf(leaf)`, and `of_node(diagram, low, high)` of what its two sides became.
  template <typename OfNode, typename OfLeaf>
  Bdd rebuilt(Bdd root, const OfNode& of_node, const OfLeaf& of_leaf);

  BddStore& store_;
  Symbols& symbols_;
  std::uint32_t next_key_ = DeviceLattice::kFreeKeys;
};

}  // namespace tensorlint::placement
