#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "passes/dataflow/analysis.h"

namespace tensorlint::contract {

enum class RequirementKind : std::uint8_t {
  kEqual,    ///< `subject` is `equals`
  kBound,    ///< `subject` is in [least, most]
  kDivisor,  ///< `divisor` divides `subject`
  kRange,    ///< every element of `elements_of` is in [least, most]
};

std::string_view to_text(RequirementKind kind);

/// What the inputs have to satisfy for a node to run. Dims are those of the analysis, over the open extents.
struct Requirement {
  RequirementKind kind = RequirementKind::kEqual;
  Dim subject{};                           ///< not of kRange
  ValueId elements_of = ValueId::kAbsent;  ///< of kRange
  Dim equals{};                            ///< of kEqual
  std::optional<Dim> least{}, most{};      ///< of kBound and kRange
  std::int64_t divisor = 1;                ///< of kDivisor
  /// Everything outside was seen to fail, and what is inside to run, where it was tried; else some inputs that break
  /// the line run, too: extents of 1 that broadcasting stretches.
  bool is_exact = true;
  std::vector<ValueId> inputs{};  ///< whose extents or elements it is about
  NodeId node = NodeId::kNone;    ///< that asks for it
};

struct Contract {
  std::vector<Requirement> requirements;  ///< those on one node together, in the order of the inputs
  bool has_sizes = true;    ///< sizes were found for which the model runs; without them nothing can be said
  bool is_complete = true;  ///< false: the budget ended before everything was tried
  /// Elements of an input decide an extent, as in a Reshape: with which of them a model runs is not looked for.
  bool depends_on_elements = false;
  /// All requirements are known.
  bool has_all() const { return is_complete && has_sizes && !depends_on_elements; }
};

/// A node that fails whatever the inputs are, or reads what nothing defines, or runs for ever: such a model has no
/// contract.
std::optional<NodeId> certain_failure(const dataflow::Analysis& analysis);

/// What a model requires of its inputs: found by solving it with sizes and elements, at and around those that run.
/// What fails in some executions only, and what rank and dtype decide, is no part of it.
Contract find_contract(const dataflow::Analysis& analysis, const dataflow::AnalysisOptions& options);

}  // namespace tensorlint::contract
