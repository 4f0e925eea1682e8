#pragma once

#include <span>

#include "analyzer/reports/report.h"

namespace tensorlint::reports {

/// The result of `check` for people: each finding with its place, the line of code, where facts began and the fix; one
/// summary line at the end.
void check_text(std::span<const findings::InputReport> inputs, const ReportStyle& style, const TextSink& out);

}  // namespace tensorlint::reports
