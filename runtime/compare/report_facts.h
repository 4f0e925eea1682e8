#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compare/report.h"

namespace tensorlint::compare {

/// What reports for people say, in sentences. This chooses facts and words, and the printers (text, page) their places.
/// Names are escaped for display, between backticks.
struct ReportFacts {
  /// The first bug.
  struct First {
    const SourceLine* location = nullptr;  ///< null: unknown
    std::vector<std::string> figures;
    std::string cause;   ///< empty: it looks like nothing in particular
    std::string before;  ///< nodes before it that may be to blame instead; empty: none
  };

  std::string outcome;
  std::optional<First> first;
  std::vector<std::string> conditions;  ///< that would explain values
  std::vector<std::string> notes;
  std::vector<std::string> skipped;  ///< nodes that are not compared
  std::string summary;               ///< counts of the verdicts
  std::vector<std::string> setting;  ///< what was compared, and how
  std::string next;                  ///< what to do about the first bug; empty where there is none
};

ReportFacts facts_of(const Comparison& comparison, const ReportedModel& reported);

/// "FILE:LINE:COLUMN"
std::string location_text(const SourceLine& at);
std::string_view op_of(const Model& model, NodeId node);
/// Why a node is not compared, without the name of the node.
std::string reason_of(const Model& model, const Skipped& skipped);

}  // namespace tensorlint::compare
