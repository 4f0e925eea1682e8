#pragma once

#include <span>
#include <string>

#include "analyzer/findings/input_report.h"
#include "passes/dataflow/analysis.h"
#include "passes/placement/placement.h"

namespace tensorlint {

/// The result of `check` for people: each finding with its place, the line of code, where facts began and the fix; one
/// summary line at the end. `colour`: with terminal escapes.
std::string check_text(std::span<const InputReport> inputs, bool timings, bool colour);

/// Behind a tensor's type, what its range says beyond the dtype: " in [0, 1]", " >= 0", or nothing.
std::string bounds_text(const Fact& fact);

/// Every value with its facts, graph by graph, in file order.
std::string show_text(const Analysis& analysis, const Placement& placement);

}  // namespace tensorlint
