#include "analyzer/cli/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyzer/cli/check.h"
#include "analyzer/rules/rule.h"
#include "base/output.h"
#include "base/version.h"

namespace tensorlint::cli {
namespace {

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

}  // namespace

int run_rules(const RulesOptions& options) {
  if (options.format != "text" && options.format != "json")
    return refuse(fmt::format("unknown format `{}`; there are text and json", options.format));
  const auto error = write_stdout(options.format == "json" ? rules_json() : rules_text());
  return error ? refuse(error->message) : kExitClean;
}

}  // namespace tensorlint::cli
