#pragma once

#include <span>
#include <string>

#include "analyzer/findings/input_report.h"

namespace tensorlint {

/// The result of `check` for people: each finding with its place, the line of code, where facts began and the fix; one
/// summary line at the end. `colour`: with terminal escapes.
std::string check_text(std::span<const InputReport> inputs, bool timings, bool colour);

}  // namespace tensorlint
