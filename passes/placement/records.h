#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/meter.h"
#include "passes/placement/device_lattice.h"
#include "passes/placement/operator_traits.h"
#include "passes/placement/placement.h"
#include "passes/placement/symbols.h"

namespace tensorlint::placement {

/// A loop under way.
struct LoopFrame {
  NodeId node;
  std::int64_t iteration;
  bool uses_number = false;  ///< what the body does depends on the iteration's number
};

/// A visit in which a node fails.
struct ViolatingVisit {
  Bdd fails;
  std::vector<std::pair<ValueId, Bdd>> sides;  ///< kAbsent first: the tag
  std::vector<LoopFrame> loops;
  std::vector<NodeId> calls;
  bool is_claim = false;
};

/// What was seen on the way: when nodes are reached and fail, and what changes its device; and how that is told.
class PlacementRecords {
 public:
  /// `meter`: of the input.
  PlacementRecords(const Model& model, const DeviceSources& sources, DeviceLattice& lattice, const Symbols& symbols,
                   Meter& meter)
      : model_(model), sources_(sources), lattice_(lattice), symbols_(symbols), meter_(meter), memory_(meter) {}

  void reach(NodeId id, Bdd reached);
  /// The visit to be described (`sides`, `is_claim`) where it is the earliest one that fails; else null.
  ViolatingVisit* fail(NodeId id, Bdd fails, std::span<const LoopFrame> loops, std::span<const NodeId> calls);
  /// What a loop carries in `result` is `first` at the start and `now` behind an iteration.
  void note_carried(NodeId loop, std::size_t result, std::int64_t iteration, Bdd first, Bdd now, Bdd inside);
  /// An If's result is on one of these devices from its first or second branch.
  void note_branch(NodeId id, std::size_t result, std::size_t branch, std::uint64_t bits) {
    branch_devices_[{id, result}][branch] |= bits;
  }

  std::vector<PlacementViolation> violations(const IdVector<OperatorId, OperatorTraits>& traits) const;
  std::vector<PlacementChange> changes() const;

 private:
  struct Record {
    Bdd reached, fails;
    std::optional<ViolatingVisit> first;
  };

  std::string device_at(Bdd device, const Choices& choices) const;
  std::string name_of(std::uint64_t bits) const;
  /// Of an open condition or number, no longer than it is shown.
  const std::string& symbol_name(std::uint32_t symbol) const;
  /// What decides where a value is.
  struct Deciders {
    bool trip_counts = false, conditions = false;
  };
  Deciders deciders_of(Bdd device) const;
  void describe(PlacementViolation& violation, const ViolatingVisit& visit, const Choices& choices,
                const IdVector<OperatorId, OperatorTraits>& traits) const;

  const Model& model_;
  const DeviceSources& sources_;
  DeviceLattice& lattice_;
  const Symbols& symbols_;
  Meter& meter_;
  KeptMemory memory_;
  std::map<NodeId, Record> records_;
  mutable std::unordered_map<std::uint32_t, Deciders> deciders_;  // by diagram: many nodes fail for one reason
  mutable std::unordered_map<std::uint32_t, std::string> symbol_names_;
  std::map<std::pair<NodeId, std::size_t>, PlacementChange> changes_;
  std::map<std::pair<NodeId, std::size_t>, std::array<std::uint64_t, 2>> branch_devices_;
};

}  // namespace tensorlint::placement
