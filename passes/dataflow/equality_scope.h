#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "base/meter.h"
#include "ir/facts/equalities.h"
#include "ir/facts/fact.h"

namespace tensorlint::dataflow {

/// The equalities of extents that hold in the scope under way, and facts in terms of the symbols that these leave.
class EqualityScope {
 public:
  EqualityScope(FactStore& facts, std::size_t nodes) : facts_(facts), memory_(facts.meter()) { grow(nodes); }

  /// The model has got `nodes` by now. Where loops learn anew in each iteration, facts are rewritten in each: past so
  /// many extents and elements they stay as they are.
  void grow(std::size_t nodes) {
    const std::uint64_t granted = std::max<std::uint64_t>(kRewrittenAtLeast, kRewrittenPerNode * nodes);
    left_ += granted - std::exchange(granted_, granted);
  }

  /// What is known at one point, to come back to: what holds after a body ran need not hold where it did not.
  struct Checkpoint {
    Equalities known;
    std::uint64_t number = 0;  ///< identifies the set of equalities, below 2^32
  };
  const Checkpoint& checkpoint() const { return state_; }
  void rollback(const Checkpoint& checkpoint) { state_ = checkpoint; }

  void learn(Dim a, Dim b) {
    if (state_.known.learn(facts_.dims(), a, b)) state_.number = ++states_;
  }

  /// The fact with its extents and elements in terms of the symbols that are left.
  FactId canonical(FactId id) {
    return state_.known.empty() || id == FactId::kAbsent || id == FactId::kTop ? id : rewritten(id);
  }

 private:
  static constexpr std::uint64_t kRewrittenAtLeast = std::uint64_t{1} << 15, kRewrittenPerNode = 64;

  FactId rewritten(FactId id);

  static constexpr std::uint64_t kBytesOfEntry = 48;

  FactStore& facts_;
  KeptMemory memory_;
  Checkpoint state_;
  std::uint64_t states_ = 0;
  std::uint64_t granted_ = 0,
                left_ = 0;  // extents and elements that may be rewritten, some 10 us each where they are long
  std::unordered_map<std::uint64_t, FactId, WordHash> canonical_;  // by state and fact
};

}  // namespace tensorlint::dataflow
