#pragma once

#include <span>
#include <string>
#include <string_view>

#include "analyzer/findings/input_report.h"
#include "base/output.h"

namespace tensorlint::reports {

struct ReportStyle {
  bool timings = false;
  bool colour = false;  ///< with terminal escapes
  bool quiet = false;   ///< findings and inputs that could not be checked, without the summary
};

/// A format of `check --format`. A report is one file; it registers itself with RegisterReport.
struct Report {
  std::string_view name;  ///< static storage
  /// The result of a run over all inputs, in their order, one finding after another.
  void (*write)(std::span<const findings::InputReport> inputs, const ReportStyle& style, const TextSink& out);
};

/// All formats: text, which is the default, then the others by name.
std::span<const Report> all_reports();
/// nullptr: no such format.
const Report* find_report(std::string_view name);

struct RegisterReport {
  explicit RegisterReport(const Report& report);
};

}  // namespace tensorlint::reports
