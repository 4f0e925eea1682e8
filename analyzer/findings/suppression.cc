#include "analyzer/findings/suppression.h"

#include "base/glob.h"

namespace tensorlint::findings {

bool Suppression::covers(const Finding& finding) const {
  if (!codes.contains(finding.code)) return false;
  if (line != 0 && (finding.place.line != line || finding.place.file != place.file)) return false;
  return matches_name(node, finding.node) && matches_name(graph, finding.graph);
}

}  // namespace tensorlint::findings
