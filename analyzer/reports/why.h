#pragma once

#include <cstddef>
#include <string>

#include "passes/dataflow/analysis.h"

namespace tensorlint::reports {

/// How the facts of a value came about: the chain of nodes behind it, each with operands and results, back to where its
/// dtype and shape began, and the reason where something is not known. Ends after 40 nodes. For people.
std::string why_text(const dataflow::Analysis& analysis, ValueId value);

/// The same as a tree: a line for each value, those that it was computed from below it and indented, `depth` nodes
/// deep. What has been expanded before is not expanded again. Ends after 2,000 lines.
std::string why_tree(const dataflow::Analysis& analysis, ValueId value, std::size_t depth);

}  // namespace tensorlint::reports
