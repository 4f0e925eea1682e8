#pragma once

#include <cstddef>
#include <string>

#include "passes/dataflow/analysis.h"
#include "passes/placement/placement.h"

namespace tensorlint::reports {

/// What a model and its passes say of a value.
struct WhySources {
  const dataflow::Analysis& analysis;
  const placement::Placement& placement;
  const std::string& source_root;  ///< as of LocationResolver
};

/// How the facts of a value came about: the chain of nodes that it is computed by, each with operands and results, back
/// to where its dtype and shape began, and the reason where something is not known. Ends after 40 nodes.
std::string why_text(const WhySources& from, ValueId value);

/// The same as a tree: a line for each value, those that it was computed from below it and indented, `depth` nodes
/// deep. What has been expanded before is not expanded again. Ends after 2,000 lines.
std::string why_tree(const WhySources& from, ValueId value, std::size_t depth);

}  // namespace tensorlint::reports
