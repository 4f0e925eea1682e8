#pragma once

#include <optional>
#include <vector>

#include "passes/losses/formula.h"

namespace tensorlint::rules {

/// A formula of one score of a layer, and of labels that are one number each.
struct OneScore {
  ValueId score = ValueId::kAbsent;                  ///< kAbsent where there are labels alone
  NodeId layer = NodeId::kNone;                      ///< gives the score
  std::vector<losses::Formula::Assignment> given{};  ///< the labels, and then the score as 0
};
/// nullopt where scores are compared with each other, or with data.
std::optional<OneScore> one_score(const losses::Expressions& expressions, const losses::Formula& formula);

}  // namespace tensorlint::rules
