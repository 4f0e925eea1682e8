#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyzer/findings/rule_codes.h"

namespace tensorlint::findings {

/// What people call the rules, for those who read such words and know no rule.
class RuleNames {
 public:
  struct Rule {
    std::string_view code, name, group;  ///< static storage
  };
  explicit RuleNames(std::vector<Rule> rules);

  /// Codes of the rules that a word means: a rule's name or code, the beginning of codes (`TL-S`, `TL-S2`), or a group
  /// (`shape`). Empty when it means none.
  std::vector<std::string_view> matching(std::string_view pattern) const;
  /// The same as a set, found at once: files have long lists of such words.
  const RuleCodes& codes_of(std::string_view pattern) const;
  /// Names and groups, sorted.
  std::span<const std::string_view> words() const { return words_; }
  /// Of a word that means no rule: "no rule is called `shap`; did you mean `shape`?"
  std::string unknown(std::string_view pattern, bool with_similar = true) const;

 private:
  std::vector<Rule> rules_;
  std::vector<std::string_view> words_;
  std::unordered_map<std::string_view, RuleCodes> codes_;  // by each word that means a rule
};

}  // namespace tensorlint::findings
