#include "analyzer/cli/usage.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <vector>

#include "base/did_you_mean.h"

namespace tensorlint::cli {
namespace {

/// The hint at what was meant, or at the help.
std::string or_help(const std::string& hint, const std::string& help) { return hint.empty() ? "; " + help : hint; }

}  // namespace

std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* each : app.get_subcommands({})) names.push_back(each->get_name());
  return fmt::format("unknown command `{}`{}", word,
                     or_help(did_you_mean(word, std::vector<std::string_view>(names.begin(), names.end())),
                             "see `tensorlint --help`"));
}

std::string usage_error(const CLI::App& app, const CLI::ParseError& error, const std::string& first) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  const CLI::App& command = parsed.empty() ? app : *parsed.front();
  const std::string help = fmt::format("see `tensorlint {}--help`", parsed.empty() ? "" : command.get_name() + " ");
  const bool is_option = parsed.empty() && first.starts_with('-');
  if (is_option || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> extras = is_option ? std::vector{first} : command.remaining();
    // An option's name before its `=`; an argument without a name is one too many.
    const auto wrong =
        std::ranges::find_if(extras, [](const std::string& extra) { return extra.size() > 1 && extra[0] == '-'; });
    if (wrong == extras.end())
      return fmt::format("unexpected argument `{}`; {}", extras.empty() ? "" : extras.back(), help);
    const std::string option = wrong->substr(0, wrong->find('='));
    std::vector<std::string> names;
    for (const CLI::Option* each : command.get_options())
      for (const std::string& name : each->get_lnames()) names.push_back("--" + name);
    return fmt::format("{} has no option `{}`{}", parsed.empty() ? "tensorlint" : command.get_name(), option,
                       or_help(did_you_mean(option, std::vector<std::string_view>(names.begin(), names.end())), help));
  }
  const std::string said = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && said.starts_with('-')) {
    const std::string option = said.substr(0, said.find(':'));
    return fmt::format("{} {}; {}", option,
                       said.find("At Most") == std::string::npos ? "needs a value" : "is given more than once", help);
  }
  return fmt::format("{}; {}", said, help);
}

}  // namespace tensorlint::cli
