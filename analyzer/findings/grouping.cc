#include "analyzer/findings/grouping.h"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "analyzer/findings/fingerprint.h"
#include "analyzer/findings/source_location.h"
#include "base/hash.h"

namespace tensorlint::findings {
namespace {

/// Disjoint sets of findings; the root of a set is its first finding.
class Groups {
 public:
  explicit Groups(std::size_t count) : parents_(count) { std::iota(parents_.begin(), parents_.end(), 0); }
  std::size_t root(std::size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }
  void unite(std::size_t a, std::size_t b) {
    a = root(a);
    b = root(b);
    parents_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parents_;
};

/// The line of the program that made the node, and the node's operator: `x @ w + b` may be wrong twice. Lines of a
/// model in text are single nodes; a line of a library is shared by unrelated modules (torch/nn/modules/linear.py by
/// every Linear), so there instances of one module have to agree.
std::string line_key(const Finding& finding) {
  if (!finding.place.known() || finding.place.line == 0 || finding.place.file == finding.path) return {};
  const std::string module = is_library_file(finding.place.file) ? without_numbers(finding.module) : std::string();
  return fmt::format("{}:{} {} {}", finding.place.line, finding.place.file, finding.op, module);
}

}  // namespace

std::vector<std::string> mistake_keys(const Finding& finding) {
  std::vector<std::string> keys;
  const std::string kind =
      fmt::format("{} {} {} ", finding.code, to_text(finding.severity), to_text(finding.certainty));
  if (const std::string line = line_key(finding); !line.empty()) keys.push_back(kind + "line " + line);
  for (const std::string& cause : finding.causes) keys.push_back(kind + "cause " + cause);
  return keys;
}

void group_by_cause(std::vector<Finding>& findings) {
  Groups groups(findings.size());
  std::unordered_map<std::string, std::size_t, TextHash> first_with;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    for (std::string& key : mistake_keys(findings[i])) {
      const auto [known, is_new] = first_with.try_emplace(std::move(key), i);
      if (!is_new) groups.unite(known->second, i);
    }
  }
  first_with.clear();
  std::vector<std::size_t> counts(findings.size());
  for (std::size_t i = 0; i < findings.size(); ++i) ++counts[groups.root(i)];
  // Findings are large: a vector that grows would have thrice the room that it needs.
  for (std::size_t i = 0; i < findings.size(); ++i)
    if (counts[i] > 1) findings[i].also.reserve(counts[i] - 1);
  for (std::size_t i = 0; i < findings.size(); ++i)
    if (const std::size_t first = groups.root(i); first != i) findings[first].also.push_back(std::move(findings[i]));
  std::size_t kept = 0;
  for (std::size_t i = 0; i < findings.size(); ++i)
    if (groups.root(i) == i) {
      if (kept != i) findings[kept] = std::move(findings[i]);
      ++kept;
    }
  findings.resize(kept);
}

bool drop_first_place(Finding& finding) {
  if (finding.also.empty()) return false;
  std::vector<Finding> rest = std::move(finding.also);
  Finding next = std::move(rest.front());
  rest.erase(rest.begin());
  next.also = std::move(rest);
  finding = std::move(next);
  return true;
}

}  // namespace tensorlint::findings
