#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "analyzer/cli/command.h"
#include "analyzer/rules/rule.h"
#include "base/output.h"
#include "base/version.h"

namespace tensorlint::cli {
namespace {

constexpr std::string_view kListFormats[] = {"text", "json"};

std::string rules_text() {
  std::string text;
  std::size_t width = 0;
  for (const rules::Rule* rule : rules::all_rules()) width = std::max(width, rule->info().name.size());
  for (const rules::Rule* rule : rules::all_rules()) {
    const rules::RuleInfo& info = rule->info();
    text += fmt::format("{}  {:<{}}  {:<7}  {}\n", info.code, info.name, width, findings::to_text(info.severity),
                        info.summary);
  }
  return text;
}

std::string rules_json() {
  using Json = nlohmann::ordered_json;
  Json rules = Json::array();
  for (const rules::Rule* rule : rules::all_rules()) {
    const rules::RuleInfo& info = rule->info();
    rules.push_back({{"name", info.name},
                     {"code", info.code},
                     {"group", info.group},
                     {"severity", findings::to_text(info.severity)},
                     {"summary", info.summary}});
  }
  const Json document = {
      {"schema", 1}, {"tool", {{"name", "tensorlint"}, {"version", kVersion}}}, {"rules", std::move(rules)}};
  return document.dump(2) + "\n";
}

int run_rules(std::string_view format) {
  if (std::ranges::find(kListFormats, format) == std::end(kListFormats))
    return refuse(unknown_format(format, kListFormats));
  const auto error = write_stdout(format == "json" ? rules_json() : rules_text());
  return error ? refuse(error->message) : kExitClean;
}

class Rules : public Command {
 public:
  Rules() : Command("rules", "list all rules") {}

  void add_options(Options& options) override {
    options.text("--format", format_, "text|json", "text (default) or json");
  }

  int run() override { return run_rules(format_); }

 private:
  std::string format_ = "text";
};

const RegisterCommand<Rules> kRegisterRules;

}  // namespace
}  // namespace tensorlint::cli
