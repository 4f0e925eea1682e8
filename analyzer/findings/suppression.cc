#include "analyzer/findings/suppression.h"

#include "base/glob.h"

namespace tensorlint::findings {

bool Suppression::covers(const Finding& finding) const {
  if (!codes.contains(finding.code)) return false;
  if (line != 0 && (finding.place.line != line || finding.place.file != model_path)) return false;
  return matches_name(node, finding.node) && matches_name(graph, finding.graph);
}

std::uint64_t Suppression::steps(const Finding& finding) const {
  // matches_name: a word of 64 positions of the glob for each byte of the text, some five of these a step.
  const auto matching = [](std::string_view glob, std::string_view text) {
    return (glob.size() / 64 + 1) * (text.size() / 4 + 1);
  };
  constexpr std::uint64_t kSets = 8;
  return kSets + matching(node, finding.node) + matching(graph, finding.graph);
}

}  // namespace tensorlint::findings
