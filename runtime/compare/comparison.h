#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "passes/dataflow/analysis.h"
#include "runtime/compare/contract.h"
#include "runtime/compare/recorded_values.h"
#include "runtime/compare/tensor_test.h"

namespace tensorlint::compare {

/// An element of a value, for plots.
struct SampledElement {
  double reference = 0, other = 0, bound = 0;
};

/// Nodes before one of which nothing is recorded, back to the last records.
struct Unrecorded {
  static constexpr std::size_t kMost = 64;
  std::vector<NodeId> nearest{};  ///< sorted; at most kMost, the last of all
  bool is_cut = false;            ///< there are more

  bool empty() const { return nearest.empty(); }
};

/// One recorded value, held against the node that makes it.
struct NodeResult {
  static constexpr std::size_t kSampled = 1000;
  NodeId node = NodeId::kNone;
  ValueId value = ValueId::kAbsent;
  TensorTest test{};
  std::string_view condition{};  ///< what explains it if that holds (kExplainedIf): "tf32", "wide-intermediates", ...
  std::string cause{};           ///< a guess, of a bug
  std::vector<std::int64_t> worst_index{};
  std::vector<SampledElement> sample{};  ///< of the first bug, evenly spread; at most kSampled
  Unrecorded before{};                   ///< one of these may be to blame
};

/// A node whose results could not be compared.
struct Skipped {
  NodeId node = NodeId::kNone;
  std::string reason;
};

/// The node of the first bug: what it read, what it should have given, and what was recorded of that.
struct Reproduction {
  NodeId node = NodeId::kNone;
  std::map<ValueId, runtime::HostValue> read{}, expected{}, recorded{};
};

struct Comparison {
  std::vector<NodeResult> results;             ///< in topological order
  std::vector<Skipped> skipped;                ///< the same
  std::vector<std::string> notes{};            ///< what else a reader should know, each a sentence
  std::size_t first = 0;                       ///< index of the first bug; results.size(): none
  std::optional<Reproduction> reproduction{};  ///< if the options ask for it and there is a bug

  Verdict verdict() const;
};

struct CompareOptions {
  bool is_chained = false;  ///< each node reads what the reference computed, not what was recorded
  bool keeps_reproduction = false;
  dataflow::Allowances* allowances = nullptr;  ///< of analyses; null: each has a meter of its own
};

/// Holds every recorded value of the main graph against what its node should have given. `inputs`: by input of the
/// graph; an absent one is recorded or has a default. Errors: shapes and dtypes that are not the model's, damaged
/// files, a limit.
Result<Comparison> compare(const Model& model, const RecordedValues& recorded, std::vector<runtime::HostValue> inputs,
                           const Contract& contract, const CompareOptions& options, runtime::Memory& memory);

}  // namespace tensorlint::compare
