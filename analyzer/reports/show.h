#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/findings/source_location.h"
#include "analyzer/reports/unknowns.h"
#include "passes/contract/contract.h"
#include "passes/dataflow/analysis.h"
#include "passes/losses/loss_sites.h"
#include "passes/placement/placement.h"

namespace tensorlint::reports {

/// What the range of a tensor adds to its type: " in [0, 1]", " >= 0", " = 3" where all elements are equal, or nothing.
std::string bounds_text(const Fact& fact);

/// Type, and contents where the tensor is small or else the range: "int64[2] = {1, N}", "float32[N] >= 0".
std::string fact_text(const dataflow::Analysis& analysis, ValueId value, ExtentNames& names);

/// "dtype", "shape", "values": what of a value is a best guess after a node that fails.
std::vector<std::string_view> assumed_aspects(Taint taint);

/// The dotted path of the torch.nn.Module of a node: from the exporter's scopes, else from the node's name; empty when
/// neither gives it.
std::string module_of(const Model& model, NodeId node, findings::LocationResolver& locations);

/// Which nodes to show: globs (matches_name), empty for all.
struct ShowFilter {
  std::string node;    ///< matches the label of the node
  std::string module;  ///< matches its module or one around that

  bool any() const { return !node.empty() || !module.empty(); }
  bool matches(const Model& model, NodeId id, findings::LocationResolver& locations) const;
};

/// Every value with its facts, graph by graph, in file order. With a filter only the nodes that match, each with its
/// operands and results, and nothing at all where none does. Handed to `write` in parts of a megabyte or so, or whole.
void show_text(const dataflow::Analysis& analysis, const placement::Placement& placement, const ShowFilter& filter,
               const std::function<void(std::string_view)>& write);

struct ShowStyle {
  bool one_line = false;
  bool all_symbols = false;  ///< extents that nothing names print as "?7", else as null
  ShowFilter filter;         ///< the values of the nodes that match: operands and results
  /// What the model requires of its inputs; null: not asked for.
  const contract::Contract* contract = nullptr;
};

/// The facts of every value (docs/schema/show.schema.json), with a newline at its end, handed to `write` in parts of a
/// megabyte or so: the document of a large model is many times the model.
void show_json(const dataflow::Analysis& analysis, const placement::Placement& placement,
               std::span<const losses::LossSite> losses, ShowStyle style,
               const std::function<void(std::string_view)>& write);

}  // namespace tensorlint::reports
