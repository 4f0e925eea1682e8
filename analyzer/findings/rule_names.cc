#include "analyzer/findings/rule_names.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/did_you_mean.h"

namespace tensorlint::findings {

RuleNames::RuleNames(std::vector<Rule> rules) : rules_(std::move(rules)) {
  std::set<std::string_view> distinct;
  for (const Rule& rule : rules_) distinct.insert({rule.name, rule.group});
  words_.assign(distinct.begin(), distinct.end());
}

std::vector<std::string_view> RuleNames::matching(std::string_view pattern) const {
  std::vector<std::string_view> codes;
  for (const Rule& rule : rules_) {
    const bool is_code_prefix = pattern.size() >= 4 && pattern.starts_with("TL-") && rule.code.starts_with(pattern);
    if (rule.name == pattern || rule.group == pattern || is_code_prefix) codes.push_back(rule.code);
  }
  return codes;
}

std::string RuleNames::unknown(std::string_view pattern, bool with_similar) const {
  return fmt::format("no rule is called `{}`{}", pattern, with_similar ? did_you_mean(pattern, words_) : "");
}

}  // namespace tensorlint::findings
