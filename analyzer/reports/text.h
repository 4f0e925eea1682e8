#pragma once

#include <span>
#include <string>

#include "analyzer/findings/input_report.h"

namespace tensorlint::reports {

struct TextStyle {
  bool timings = false;
  bool colour = false;  ///< with terminal escapes
  bool quiet = false;   ///< findings and inputs that could not be checked, without the summary
};

/// The result of `check` for people: each finding with its place, the line of code, where facts began and the fix; one
/// summary line at the end.
std::string check_text(std::span<const findings::InputReport> inputs, TextStyle style);

}  // namespace tensorlint::reports
