#include "analyzer/findings/rule_names.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/did_you_mean.h"

namespace tensorlint::findings {
namespace {

constexpr std::size_t kShortestPrefix = 4;  // "TL-S"

}  // namespace

const RuleNames::Tables& RuleNames::tables() const {
  std::call_once(tables_->built, [&] {
    std::set<std::string_view> distinct;
    for (const Rule& rule : rules_) distinct.insert({rule.name, rule.group});
    tables_->words.assign(distinct.begin(), distinct.end());
    for (const Rule& rule : rules_) {
      RuleCodes code;
      code.insert(rule.code);
      for (const std::string_view word : {rule.name, rule.group}) tables_->codes[word] |= code;
      for (std::size_t length = kShortestPrefix; length <= rule.code.size(); ++length)
        tables_->codes[rule.code.substr(0, length)] |= code;
    }
  });
  return *tables_;
}

const RuleCodes& RuleNames::codes_of(std::string_view pattern) const {
  static const RuleCodes kNone;
  const auto& codes = tables().codes;
  const auto found = codes.find(pattern);
  return found == codes.end() ? kNone : found->second;
}

std::string RuleNames::unknown(std::string_view pattern, bool with_similar) const {
  const std::string similar = with_similar ? did_you_mean(pattern, tables().words) : std::string();
  return fmt::format("no rule is called `{}`{}", pattern,
                     similar.empty() ? "; `tensorlint rules` lists them" : std::string_view(similar));
}

}  // namespace tensorlint::findings
