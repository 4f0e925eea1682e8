#pragma once

#include <string>
#include <vector>

#include "analyzer/findings/finding.h"
#include "analyzer/findings/rule_names.h"
#include "analyzer/findings/suppression.h"
#include "ir/graph/model.h"

namespace tensorlint::pipeline {

/// A comment that looks like a suppression and is not one.
struct BadSuppression {
  findings::SourceLocation place;
  std::string message;
};

struct CommentSuppressions {
  std::vector<findings::Suppression> good;
  std::vector<BadSuppression> bad;
};

/// `# tensorlint: ignore[rule, rule] reason` in a model in text: about its own line, or, standing alone, about the line
/// below it (and below further comments). Without a reason, or with an unknown rule, it suppresses nothing.
CommentSuppressions suppressions_of(const Model& model, const findings::RuleNames& names);

}  // namespace tensorlint::pipeline
