#include "analyzer/cli/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "analyzer/cli/batch.h"
#include "analyzer/cli/checker.h"
#include "analyzer/cli/inputs.h"
#include "analyzer/cli/settings.h"
#include "analyzer/config/config.h"
#include "analyzer/findings/input_report.h"
#include "analyzer/reports/json.h"
#include "analyzer/reports/text.h"
#include "base/escape.h"
#include "base/output.h"

namespace tensorlint::cli {
namespace {

struct Output {
  std::string format;
  std::string file;  ///< empty: standard output
};

Result<std::vector<Output>> parse_outputs(const CheckOptions& options) {
  std::vector<Output> outputs;
  std::size_t without_file = 0;
  for (const std::string& text : options.formats) {
    const std::size_t at = text.find('=');
    Output output{text.substr(0, at), at == std::string::npos ? std::string() : text.substr(at + 1)};
    if (output.file == "-")
      output.file.clear();  // standard output, as is the custom
    else if (at != std::string::npos && output.file.empty())
      return Error{fmt::format("--format {} names no file after `=`", text), {}};
    if (output.format == "sarif" || output.format == "github" || output.format == "junit" || output.format == "html")
      return Error{fmt::format("the format {} is not built yet; there are text and json", output.format), {}};
    if (output.format != "text" && output.format != "json")
      return Error{fmt::format("unknown format `{}`; there are text and json", output.format), {}};
    if (output.file.empty()) ++without_file;
    outputs.push_back(std::move(output));
  }
  if (outputs.empty()) {
    outputs.push_back({"text", {}});
    without_file = 1;
  }
  if (without_file > 1)
    return Error{"two formats go to the same place; give one of them a file (--format json=FILE)", {}};
  if (!options.output.empty() && options.output != "-") {
    const auto plain =
        std::find_if(outputs.begin(), outputs.end(), [](const Output& output) { return output.file.empty(); });
    if (plain == outputs.end()) return Error{"-o has no format to write; each --format names its own file", {}};
    plain->file = options.output;
  }
  std::set<std::string> files;
  for (const Output& output : outputs) {
    if (output.file.empty()) continue;
    if (!files.insert(output.file).second) return Error{fmt::format("two reports go to {}", output.file), {}};
    if (is_model_name(output.file))
      return Error{fmt::format("a report is not written to {}: that is the name of a model", output.file), {}};
  }
  if (files.contains(options.write_baseline))
    return Error{fmt::format("report and baseline both go to {}", options.write_baseline), {}};
  if (is_model_name(options.write_baseline))
    return Error{
        fmt::format("--write-baseline needs a file of its own; {} is the name of a model", options.write_baseline), {}};
  return outputs;
}

int exit_code(const std::vector<findings::InputReport>& reports) {
  int code = kExitClean;
  for (const findings::InputReport& report : reports) {
    if (!report.checked) return kExitNotChecked;
    const auto worst = report.counts.worst();
    if (worst && report.fail_on.fails(*worst)) code = kExitFindings;
  }
  return code;
}

/// Writes the reports of `files` inputs, and the baseline; the exit code.
int conclude(const CheckOptions& options, const std::vector<Output>& outputs, const Settings& settings,
             const Checker& checker, std::size_t files, const std::vector<findings::InputReport>& reports,
             const std::optional<config::Baseline>& written) {
  for (const Output& output : outputs) {
    const bool colour = output.file.empty() && wants_colour();
    const std::string text =
        output.format == "json"
            ? reports::check_json(reports, options.timings)
            : reports::check_text(reports, {.timings = options.timings, .colour = colour, .quiet = options.quiet});
    const auto error = output.file.empty() ? write_stdout(text) : write_file(output.file, text);
    if (error) return refuse(error->message);
  }
  if (checker.had_internal_error()) return kExitInternal;
  if (checker.was_interrupted()) {
    write_stderr(fmt::format("tensorlint: interrupted: {} of {} inputs were checked\n", reports.size(), files));
    return kExitInterrupted;
  }
  const int code = exit_code(reports);
  if (code == kExitNotChecked)
    return written ? refuse("the baseline is not written, since some input could not be checked") : code;
  for (const auto& [name, declaration] : settings.declared().values)
    if (!checker.names().is_known(name))
      return refuse(fmt::format("no model has a value `{}` in its main graph, which an option declares", name));
  if (const std::string unknown = checker.names().unknown_in_config(); !unknown.empty()) return refuse(unknown);
  if (written)
    if (const auto error = write_file(written->path(), written->to_json())) return refuse(error->message);
  return code;
}

}  // namespace

int refuse(std::string_view message) {
  write_stderr(fmt::format("tensorlint: {}\n", escape_for_people(message, 2000)));
  return kExitNotChecked;
}

int run_check(const CheckOptions& options) {
  const auto outputs = parse_outputs(options);
  if (!outputs) return refuse(outputs.error().message);
  SettingsOptions settings_options = options.settings;
  settings_options.quiet = options.quiet;
  settings_options.keep_all = !options.write_baseline.empty();
  auto settings = Settings::make(settings_options);
  if (!settings) return refuse(settings.error().message);
  std::optional<config::Baseline> written;
  if (!options.write_baseline.empty()) written.emplace(options.write_baseline);
  const std::vector<InputFile> files = expand_inputs(options.inputs);
  for (const InputFile& file : files) {
    const auto is_input = [&](const std::string& written_to) {
      std::error_code none;
      return !written_to.empty() && std::filesystem::equivalent(written_to, file.path, none) &&
             std::filesystem::is_regular_file(file.path, none);
    };
    for (const Output& output : *outputs)
      if (is_input(output.file)) return refuse(fmt::format("a report is not written over the input {}", file.path));
    if (is_input(options.write_baseline))
      return refuse(fmt::format("the baseline is not written over the input {}", file.path));
  }
  std::vector<std::shared_ptr<const config::Config>> configs;
  for (const InputFile& file : files) {
    auto config = settings->config_for(file.path);
    if (!config) return refuse(config.error().message);
    if (configs.empty() || configs.back() != *config) {  // files of one folder have one
      const InputSettings of = settings->of(file.path, *config);
      if (std::ranges::none_of(rules::all_rules(),
                               [&](const rules::Rule* rule) { return of.selection.allows(rule->info()); }))
        write_stderr(fmt::format("tensorlint: no rule is left for {}: all that are selected are ignored too\n",
                                 escape_for_people(file.path, 2000)));
    }
    configs.push_back(std::move(*config));
  }
  const InterruptWatch watch;
  Checker checker(options, *settings, written ? &*written : nullptr);
  const std::vector<findings::InputReport> reports = checker.run(files, configs);
  const int code = conclude(options, *outputs, *settings, checker, files.size(), reports, written);
  if (checker.was_abandoned()) std::_Exit(code);
  return code;
}

}  // namespace tensorlint::cli
