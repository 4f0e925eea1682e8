#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/output.h"
#include "runtime/compare/comparison.h"

namespace tensorlint::compare {

/// Where a node was written, as whoever knows sources says it.
struct SourceLine {
  std::shared_ptr<const std::string> file, source;  ///< not null; any number of nodes share them
  int line = 0, column = 0;
};
using SourceLines = std::map<NodeId, SourceLine>;

/// Lines `NODE\tFILE\tLINE\tCOLUMN\tSOURCE`, where an empty FILE or SOURCE is that of the line before; what is not one
/// is left out.
SourceLines parse_locations(std::string_view text);

/// How the user asked for the comparison.
struct ReportSetting {
  std::string against, contract;
  bool is_chained = false;
  std::string reproduction{};  ///< folder that the first bug is written to; empty: not asked for
};

struct ReportedModel {
  const Model& model;
  SourceLines locations;
  ReportSetting setting;
};

/// The first bug with its line and cause, conditions and a summary.
std::string text_report(const Comparison& comparison, const ReportedModel& reported);
/// A page by itself: the same with plots, and the figures of all values.
void html_report(const Comparison& comparison, const ReportedModel& reported, const TextSink& out);
/// docs/schema/compare.schema.json; with a newline at its end.
void json_report(const Comparison& comparison, const ReportedModel& reported, const TextSink& out);

}  // namespace tensorlint::compare
