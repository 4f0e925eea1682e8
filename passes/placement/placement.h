#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/ops/inference.h"
#include "passes/dataflow/analysis.h"
#include "passes/placement/sources.h"

namespace tensorlint::placement {

/// Iterations of one loop, and open choices of one model, that are told apart.
inline constexpr std::int64_t kMaxContexts = 256;

/// Why the operands of a failing node are apart.
enum class PlacementCause : std::uint8_t {
  kOperands,  ///< in every context alike
  kIndex,     ///< the same, between what is indexed and the index
  kLoop,      ///< the iteration, or how often a loop ran, decides
  kBranch,    ///< a condition decides
  kClaim,     ///< a value handed to a body or function is not where the body's input claims
};

/// One execution in which a node fails.
struct PlacementWitness {
  std::string device, other;               ///< of the two sides
  std::map<std::string, bool> conditions;  ///< by name; others do not matter
  std::map<std::string, std::int64_t> trip_counts;
  std::size_t left_out = 0;              ///< further conditions and trip counts
  std::int64_t iteration = 0;            ///< the largest of the enclosing loops' iterations, from 1; 0 outside loops
  std::vector<NodeId> loops;             ///< enclosing Loops and Scans, outermost first
  std::vector<std::int64_t> iterations;  ///< of each of these
  std::vector<NodeId> calls;             ///< calling nodes, outermost first
};

struct PlacementViolation {
  NodeId node = NodeId::kNone;
  ops::Certainty certainty = ops::Certainty::kMust;
  PlacementCause cause = PlacementCause::kOperands;
  /// The two sides. `first` is kAbsent where the node's own tag is that side.
  ValueId first = ValueId::kAbsent, second = ValueId::kAbsent;
  PlacementWitness witness;
};

/// True and no violation: a carried value or a branch's result is on another device than before or than the other
/// branch's.
struct PlacementChange {
  NodeId node = NodeId::kNone;  ///< the Loop, Scan or If
  std::size_t result = 0;       ///< index of the carried value or of the result
  std::int64_t iteration = 0;   ///< from which on the carried value is elsewhere; 0 for an If
  std::string device, other;
};

/// Where every value of a model may live, and which nodes mix devices.
class Placement {
 public:
  /// The devices of a value over all executions, sorted by name; empty where it is not known or never computed.
  std::vector<std::string> devices(ValueId value) const;
  /// False when nothing places anything: then all is on the cpu, and the rest is empty.
  bool any_source() const { return any_source_; }

  const std::vector<PlacementViolation>& violations() const { return violations_; }  ///< in file order
  const std::vector<PlacementChange>& changes() const { return changes_; }           ///< in file order
  const std::vector<PlacementProblem>& problems() const { return sources_.problems(); }
  const DeviceSources& sources() const { return sources_; }
  /// Loops that were followed for kMaxContexts iterations without repeating, and why the rest is not followed.
  const std::vector<std::pair<NodeId, std::string>>& limits() const { return limits_; }

  /// Where a value's device comes from, walking back to what put it on `device`: a node that is tagged, moves it or
  /// makes it, or an input or initializer (node kNone).
  dataflow::Origin origin(const dataflow::Analysis& analysis, ValueId value, std::string_view device) const;

 private:
  friend class Placer;
  friend Placement place(const dataflow::Analysis& analysis, const PlacementOptions& options);
  Placement(const dataflow::Analysis& analysis, const PlacementOptions& options) : sources_(analysis, options) {}

  bool on(ValueId value, int device) const { return ((devices_[value] >> device) & 1U) != 0; }

  DeviceSources sources_;
  bool any_source_ = false;
  IdVector<ValueId, std::uint64_t> devices_;  // bits by device number; all: unknown
  std::vector<PlacementViolation> violations_;
  std::vector<PlacementChange> changes_;
  std::vector<std::pair<NodeId, std::string>> limits_;
};

/// Follows devices through a model whose facts are known, as docs/design/placement.md says: exact in the conditions and
/// trip counts that the facts leave open, as long as there are at most kMaxContexts of them.
Placement place(const dataflow::Analysis& analysis, const PlacementOptions& options);

}  // namespace tensorlint::placement
