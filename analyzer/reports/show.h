#pragma once

#include <string>

#include "passes/dataflow/analysis.h"
#include "passes/placement/placement.h"

namespace tensorlint {

/// Behind a tensor's type, what its range says beyond the dtype: " in [0, 1]", " >= 0", or nothing.
std::string bounds_text(const Fact& fact);

/// Every value with its facts, graph by graph, in file order.
std::string show_text(const Analysis& analysis, const Placement& placement);

struct ShowStyle {
  bool one_line = false;
  bool all_symbols = false;  ///< extents that nothing names print as "?7", else as null
};

/// The facts of every value (docs/schema/show.schema.json), with a newline at its end.
std::string show_json(const Analysis& analysis, const Placement& placement, ShowStyle style);

}  // namespace tensorlint
