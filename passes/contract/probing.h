#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "passes/contract/open_extent.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::contract {

/// Sizes of the open extents, in their order.
using Sizes = std::vector<std::int64_t>;

/// What all elements of an input are, besides the sizes.
struct ElementValue {
  ValueId input = ValueId::kAbsent;  ///< kAbsent: elements are left open
  std::int64_t value = 0;
  friend auto operator<=>(const ElementValue&, const ElementValue&) = default;
};

/// What probes of one model may cost.
struct ProbeBudget {
  std::uint64_t visits = 1U << 16;  ///< nodes that are solved, in all probes
  std::size_t probes = 96;
};

/// A node that fails for certain, and what of it.
struct Failure {
  NodeId node = NodeId::kNone;
  const ops::Constraint* constraint = nullptr;
  std::size_t violation = 0;  ///< index among the violations of that solve
};

/// What comes of solving with sizes: what fails for certain and does not with open extents.
struct Probe {
  std::vector<Failure> failures;  ///< in file order
  bool may_fail = false;          ///< something fails in some executions
  bool is_too_large = false;      ///< a result for these sizes, so that nothing is known of what follows
  bool runs() const { return failures.empty(); }
};

/// Solves a model with sizes instead of open extents, as far as its budget reaches.
class Prober {
 public:
  /// Open extents past this number are left as they are.
  static constexpr std::size_t kMaxExtents = 64;

  /// The analysis outlives the prober. `options`: of the analysis.
  Prober(const dataflow::Analysis& analysis, dataflow::AnalysisOptions options, ProbeBudget budget = {});

  const dataflow::Analysis& analysis() const { return analysis_; }
  std::span<const OpenExtent> extents() const { return extents_; }
  /// The open extent that the symbol is.
  std::optional<std::size_t> extent_of(Dim symbol) const;
  /// The value of a dim for these sizes; nullopt where it depends on more.
  std::optional<std::int64_t> evaluate(Dim dim, const Sizes& sizes) const;

  /// The user declares what the elements of an input are.
  bool has_declared_range(ValueId input) const;
  /// The node breaks the constraint whatever the sizes are, or may.
  bool fails_anyway(NodeId node, const ops::Constraint& constraint) const {
    return known_.contains({node, &constraint});
  }

  /// How many more probes the budget allows.
  std::size_t probes_left() const;
  /// Null where the budget is spent: of one probe, or of all. Probes are remembered.
  const Probe* probe(const Sizes& sizes, ElementValue elements = {});
  /// The solve itself, for what a probe does not keep.
  dataflow::Analysis solve(const Sizes& sizes, ElementValue elements = {}) const;

 private:
  void find_extents();
  void add_extents(ValueId input);
  Probe read(const dataflow::Analysis& solved) const;
  bool is_always_reached(const dataflow::NodeViolation& violation) const;

  const dataflow::Analysis& analysis_;
  dataflow::AnalysisOptions options_;
  std::vector<OpenExtent> extents_;
  std::vector<ValueId> open_inputs_;
  std::set<std::pair<NodeId, const ops::Constraint*>> known_;  // fails whatever the sizes are
  std::uint64_t visits_;                                       // of one solve
  ProbeBudget budget_;                                         // what is left
  std::map<std::pair<Sizes, ElementValue>, std::optional<Probe>> done_;
};

}  // namespace tensorlint::contract
