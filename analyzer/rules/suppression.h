#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/findings/finding.h"
#include "ir/graph/model.h"

namespace tensorlint::rules {

/// What is not to be reported, and why.
struct Suppression {
  std::string rules;                 ///< as written: what people know it by
  std::set<std::string_view> codes;  ///< of these rules
  std::string node, graph;           ///< globs (matches_name), empty: all
  std::uint32_t line = 0;            ///< comments: only findings on this line of a model in text
  std::string reason;
  findings::SourceLocation place;  ///< where it is written

  bool covers(const findings::Finding& finding) const;
};

/// A comment that looks like a suppression and is none.
struct BadSuppression {
  findings::SourceLocation place;
  std::string message;
};

struct CommentSuppressions {
  std::vector<Suppression> good;
  std::vector<BadSuppression> bad;
};

/// `# tensorlint: ignore[rule, rule] reason` in a model in text: about its own line, or, standing alone, about the line
/// below it (and below further comments). Without a reason, or with a rule that there is not, it suppresses nothing.
CommentSuppressions suppressions_of(const Model& model);

}  // namespace tensorlint::rules
