#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "analyzer/cli/command.h"
#include "analyzer/rules/rule.h"
#include "base/output.h"

namespace tensorlint::cli {
namespace {

int run_explain(const std::string& name) {
  const rules::Rule* rule = rules::find_rule(name);
  if (rule == nullptr) {  // TL-D101 and tl-d101, since people write both
    std::string code = name;
    std::ranges::transform(code, code.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    rule = rules::find_rule(code);
  }
  if (rule == nullptr) return refuse(rules::rule_names().unknown(name));
  const auto error = write_stdout(rules::rule_page(rule->info().name));
  return error ? refuse(error->message) : kExitClean;
}

class Explain : public Command {
 public:
  Explain() : Command("explain", "print the page of a rule") {}

  void add_options(Options& options) override { options.argument("RULE", rule_, "name or code of the rule"); }

  int run() override { return run_explain(rule_); }

 private:
  std::string rule_;
};

const RegisterCommand<Explain> kRegisterExplain;

}  // namespace
}  // namespace tensorlint::cli
