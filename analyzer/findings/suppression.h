#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "analyzer/findings/finding.h"
#include "analyzer/findings/rule_codes.h"

namespace tensorlint::findings {

/// What is not to be reported, and why.
struct Suppression {
  std::string rules;              ///< as written: what people know it by
  RuleCodes codes;                ///< of these rules
  std::string node, graph;        ///< globs (matches_name), empty: all
  std::uint32_t line = 0;         ///< comments: only findings on this line of a model in text
  std::string_view model_path{};  ///< comments: of that model, which keeps it
  std::uint32_t row = 0;          ///< configurations: which of theirs
  std::string reason;
  SourceLocation place;  ///< where it is written; of comments without the file, which they have in common

  bool covers(const Finding& finding) const;
  /// Steps (Meter) that `covers` takes at most: both globs may come from a file beside the model.
  std::uint64_t steps(const Finding& finding) const;
};

}  // namespace tensorlint::findings
