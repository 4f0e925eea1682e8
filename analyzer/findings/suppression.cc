#include "analyzer/findings/suppression.h"

#include "base/glob.h"

namespace tensorlint::findings {

bool Suppression::covers(const Finding& finding) const {
  if (!codes.contains(finding.code)) return false;
  if (line != 0 && (finding.place.line != line || finding.place.file != model_path)) return false;
  return matches_name(node, finding.node) && matches_name(graph, finding.graph);
}

std::uint64_t Suppression::steps(const Finding& finding) const {
  constexpr std::uint64_t kSets = 8;
  return kSets + steps_of_match(node, finding.node) + steps_of_match(graph, finding.graph);
}

}  // namespace tensorlint::findings
