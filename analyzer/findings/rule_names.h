#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzer/findings/rule_codes.h"

namespace tensorlint::findings {

/// What people call the rules, for those who read such words and know no rule.
class RuleNames {
 public:
  struct Rule {
    std::string_view code, name, group;  ///< static storage
  };
  explicit RuleNames(std::vector<Rule> rules) : rules_(std::move(rules)) {}

  /// Codes of the rules that a word means: a rule's name or code, the beginning of codes (`TL-S`, `TL-S2`), or a group
  /// (`shape`). Empty when it means none. Takes one look-up: files have long lists of such words.
  const RuleCodes& codes_of(std::string_view pattern) const;
  /// Of a word that means no rule: "no rule is called `shap`; did you mean `shape`?", or where to find the names. The
  /// search for a similar name takes longer than all else that is done for a word.
  std::string unknown(std::string_view pattern, bool with_similar = true) const;

 private:
  struct Tables {
    std::once_flag built;
    std::vector<std::string_view> words;                    // names and groups, sorted
    std::unordered_map<std::string_view, RuleCodes> codes;  // by each word that means a rule
  };
  /// Most runs ask for no word.
  const Tables& tables() const;

  std::vector<Rule> rules_;
  std::shared_ptr<Tables> tables_ = std::make_shared<Tables>();
};

}  // namespace tensorlint::findings
