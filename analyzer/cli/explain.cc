#include "analyzer/cli/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "analyzer/cli/check.h"
#include "analyzer/rules/rule.h"
#include "base/output.h"
#include "base/suggestion.h"

namespace tensorlint::cli {

int run_explain(const std::string& name) {
  const rules::Rule* rule = rules::find_rule(name);
  if (rule == nullptr) {  // TL-D101 and tl-d101, since people write both
    std::string code = name;
    std::ranges::transform(code, code.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    rule = rules::find_rule(code);
  }
  if (rule == nullptr) {
    const std::string meant = suggestion(name, rules::rule_words());
    return refuse(
        fmt::format("no rule is called `{}`{}", name, meant.empty() ? "; `tensorlint rules` lists them" : meant));
  }
  const auto error = write_stdout(rules::rule_page(rule->info().name));
  return error ? refuse(error->message) : kExitClean;
}

}  // namespace tensorlint::cli
