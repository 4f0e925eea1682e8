#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "passes/dataflow/analysis.h"
#include "passes/placement/sources.h"

namespace tensorlint::placement {

/// Copies that a runtime makes in one run; `setup`: once, when the model is loaded, for initializers.
struct CopyCost {
  std::uint64_t copies = 0, setup_copies = 0;
  Dim bytes, setup_bytes;  ///< in the symbols of the extents; unknown where an extent is

  bool any() const { return copies + setup_copies > 0; }
};

/// Copies that one node causes: it reads what is not where it runs.
struct NodeCopies {
  std::uint64_t copies = 0;
  Dim bytes;
  std::uint64_t in_loop = 0;  ///< of these, made in a loop's second iteration or later
  int from = 0, to = 0;       ///< of the first one, in RuntimeCost::devices
  ValueId value = ValueId::kAbsent;
};

/// One run of the model for given conditions.
struct CostCase {
  std::map<std::string_view, bool> conditions;  ///< by names of the model
  std::map<std::string, bool> named_conditions() const { return {conditions.begin(), conditions.end()}; }
  CopyCost cost;
  std::map<NodeId, NodeCopies> nodes;  ///< of the dearest case alone
};

struct RuntimeCost {
  std::vector<CostCase> cases;  ///< one per open conditions that decide, at least one; empty where `unknown` says why
  std::string unknown;
  std::vector<std::string> devices;  ///< names, by number
  const std::string& device(int number) const { return devices[static_cast<std::size_t>(number)]; }
  const CostCase& cheapest(const FactStore& facts) const;
  const CostCase& dearest(const FactStore& facts) const;
};

/// Counts the copies of each run when every node runs where it is tagged, else where its first data operand is: one
/// copy per tensor and destination, a copied tensor stays where it was copied. Runs the model with places in place of
/// numbers, so trip counts have to be constants; at most kMaxCostCases combinations of conditions and kMaxCostVisits
/// nodes (of several results: that many).
inline constexpr std::size_t kMaxCostCases = 256;
inline constexpr std::uint64_t kMaxCostVisits = 1'400'000;  // 40 bytes each
RuntimeCost runtime_cost(const dataflow::Analysis& analysis, const PlacementOptions& options);

}  // namespace tensorlint::placement
