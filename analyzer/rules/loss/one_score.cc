#include "analyzer/rules/loss/one_score.h"

#include "analyzer/rules/value/sources.h"
#include "passes/losses/score_values.h"

namespace tensorlint::rules {

using losses::Formula;

std::optional<OneScore> one_score(const losses::Expressions& expressions, const Formula& formula) {
  if (!formula.is_complete()) return std::nullopt;
  const losses::ScoreValues scores(expressions);
  OneScore found;
  std::size_t leaf = 0;
  const auto parts = formula.parts();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind != Formula::PartKind::kLeaf) continue;
    if (parts[i].value == ValueId::kAbsent) return std::nullopt;
    if (const auto label = same_number(expressions.analysis(), parts[i].value)) {
      found.given.push_back({i, *label});
      continue;
    }
    if (found.score != ValueId::kAbsent) return std::nullopt;
    found.layer = scores.layer_of(before_stretch(expressions, parts[i].value));
    if (found.layer == NodeId::kNone) return std::nullopt;
    found.score = parts[i].value;
    leaf = i;
  }
  if (found.score != ValueId::kAbsent) found.given.push_back({leaf, 0});
  return found;
}

}  // namespace tensorlint::rules
