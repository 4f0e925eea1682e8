#pragma once

#include <span>
#include <string>

#include "analyzer/findings/input_report.h"
#include "passes/dataflow/analysis.h"
#include "passes/placement/placement.h"

namespace tensorlint {

/// The result of `check` as one JSON document (docs/schema/check.schema.json), with a newline at its end.
std::string check_json(std::span<const InputReport> inputs, bool timings);

struct ShowStyle {
  bool one_line = false;
  bool all_symbols = false;  ///< extents that nothing names print as "?7", else as null
};

/// The facts of every value (docs/schema/show.schema.json), with a newline at its end.
std::string show_json(const Analysis& analysis, const Placement& placement, ShowStyle style);

}  // namespace tensorlint
