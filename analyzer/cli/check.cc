#include "analyzer/cli/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "analyzer/cli/batch.h"
#include "analyzer/cli/checker.h"
#include "analyzer/cli/command.h"
#include "analyzer/cli/inputs.h"
#include "analyzer/cli/settings.h"
#include "analyzer/config/config.h"
#include "analyzer/findings/input_report.h"
#include "analyzer/reports/report.h"
#include "base/escape.h"
#include "base/output.h"

namespace tensorlint::cli {
namespace {

// Part of the contract, and built later.
constexpr std::string_view kPlannedFormats[] = {"sarif", "github", "junit", "html"};

std::vector<std::string_view> format_names() {
  std::vector<std::string_view> names;
  for (const reports::Report& report : reports::all_reports()) names.push_back(report.name);
  return names;
}

struct Output {
  const reports::Report* report;
  std::string file;  ///< empty: standard output
};

/// What a file of that name is, which nobody wants a report instead of; empty where it may be one.
std::string_view other_kind(std::string_view file) {
  if (is_model_name(file)) return "a model";
  if (file.ends_with(".toml")) return "a configuration";
  constexpr std::string_view kData[] = {".data", ".bin", ".weights", ".safetensors", ".pb", ".npy", ".npz"};
  const bool is_data = std::ranges::any_of(kData, [&](std::string_view end) { return file.ends_with(end); });
  return is_data ? "data of models" : std::string_view();
}

Result<std::vector<Output>> parse_outputs(const CheckOptions& options) {
  std::vector<Output> outputs;
  std::size_t without_file = 0;
  for (const std::string& text : options.formats) {
    const std::size_t at = text.find('=');
    const std::string format = text.substr(0, at);
    Output output{reports::find_report(format), at == std::string::npos ? std::string() : text.substr(at + 1)};
    if (output.file == "-")
      output.file.clear();  // standard output, as is the custom
    else if (at != std::string::npos && output.file.empty())
      return Error{fmt::format("--format {} has no file name after `=`", text), {}};
    if (output.report == nullptr) return Error{unknown_format(format, format_names(), kPlannedFormats), {}};
    if (output.file.empty()) ++without_file;
    outputs.push_back(std::move(output));
  }
  if (outputs.empty()) {
    outputs.push_back({&reports::all_reports().front(), {}});
    without_file = 1;
  }
  if (without_file > 1)
    return Error{"two formats go to standard output; give one of them a file (--format json=FILE)", {}};
  if (!options.output.empty() && options.output != "-") {
    const auto plain =
        std::find_if(outputs.begin(), outputs.end(), [](const Output& output) { return output.file.empty(); });
    if (plain == outputs.end()) return Error{"-o has nothing to write: each --format names its own file", {}};
    plain->file = options.output;
  }
  std::set<std::string> files;
  for (const Output& output : outputs) {
    if (output.file.empty()) continue;
    if (!files.insert(output.file).second)
      return Error{fmt::format("two reports would be written to {}", output.file), {}};
    if (const std::string_view other = other_kind(output.file); !other.empty())
      return Error{fmt::format("refusing to write a report to {}, which is the name of {}", output.file, other), {}};
  }
  if (files.contains(options.write_baseline))
    return Error{fmt::format("report and baseline would both be written to {}", options.write_baseline), {}};
  if (const std::string_view other = other_kind(options.write_baseline); !other.empty())
    return Error{
        fmt::format("--write-baseline needs a file of its own; {} is the name of {}", options.write_baseline, other),
        {}};
  return outputs;
}

int exit_code(const std::vector<findings::InputReport>& reports) {
  int code = kExitClean;
  for (const findings::InputReport& report : reports) {
    if (!report.checked) return kExitNotChecked;
    if (report.fail_on.fails(report.counts)) code = kExitFindings;
  }
  return code;
}

/// Writes the reports of `files` inputs, and the baseline; the exit code.
int conclude(const CheckOptions& options, const std::vector<Output>& outputs, const Settings& settings,
             const Checker& checker, std::size_t files, const std::vector<findings::InputReport>& reports,
             const std::optional<config::Baseline>& written) {
  for (const Output& output : outputs) {
    const bool colour = output.file.empty() && wants_colour();
    const auto write = [&](const TextSink& out) {
      output.report->write(reports, {.timings = options.timings, .colour = colour, .quiet = options.quiet}, out);
    };
    const auto error = output.file.empty() ? write_stdout(write) : write_file(output.file, write);
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
  for (const auto& [name, declaration] : settings.declared_values())
    if (!checker.names().is_known(name))
      return refuse(fmt::format("an option declares a value `{}`, which no model has in its main graph", name));
  if (const std::string unknown = checker.names().unknown_in_config(); !unknown.empty()) return refuse(unknown);
  if (written)
    if (const auto error = write_file(written->path(), written->to_json())) return refuse(error->message);
  return code;
}

bool is_same_file(const std::string& written_to, const std::string& read) {
  std::error_code none;
  return !written_to.empty() && std::filesystem::equivalent(written_to, read, none) &&
         std::filesystem::is_regular_file(read, none);
}

/// The file of an option that has this path, too; empty where there is none.
std::string side_file_at(const std::string& path, const SettingsOptions& settings) {
  std::vector<std::string> files = settings.providers;
  files.insert(files.end(), {settings.config, settings.baseline, settings.placement_file, settings.signatures});
  const auto found = std::ranges::find_if(files, [&](const std::string& file) { return is_same_file(path, file); });
  return found == files.end() ? std::string() : *found;
}

int run_check(const CheckOptions& options) {
  const auto outputs = parse_outputs(options);
  if (!outputs) return refuse(outputs.error().message);
  SettingsOptions settings_options = options.settings;
  settings_options.quiet = options.quiet;
  settings_options.keep_all = !options.write_baseline.empty();
  auto settings = Settings::make(settings_options);
  if (!settings) return refuse(settings.error().message);
  for (const Output& output : *outputs)
    if (const std::string side = side_file_at(output.file, options.settings); !side.empty())
      return refuse(fmt::format("refusing to write a report over {}, which is read", side));
  std::optional<config::Baseline> written;
  if (!options.write_baseline.empty()) written.emplace(options.write_baseline);
  const std::vector<InputFile> files = expand_inputs(options.inputs);
  for (const InputFile& file : files) {
    const auto is_input = [&](const std::string& written_to) { return is_same_file(written_to, file.path); };
    for (const Output& output : *outputs)
      if (is_input(output.file)) return refuse(fmt::format("refusing to write a report over the input {}", file.path));
    if (is_input(options.write_baseline))
      return refuse(fmt::format("refusing to write the baseline over the input {}", file.path));
  }
  std::vector<std::shared_ptr<const config::Config>> configs;
  for (const InputFile& file : files) {
    auto config = settings->config_for(file.path);
    if (!config) return refuse(config.error().message);
    if (configs.empty() || configs.back() != *config) {  // files of one folder have one
      const Result<InputSettings> of = settings->of(file.path, *config);
      if (of && std::ranges::none_of(rules::all_rules(),
                                     [&](const rules::Rule* rule) { return of->selection.allows(rule->info()); }))
        write_stderr(fmt::format("tensorlint: no rule runs on {}: all selected rules are ignored\n",
                                 escape_for_display(file.path, 2000)));
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

class Check : public Command {
 public:
  Check() : Command("check", "find bugs in models") {}

  void add_options(Options& options) override {
    SettingsOptions& settings = options_.settings;
    options.argument("INPUT", options_.inputs, "files, folders, globs, or - for standard input");
    options.texts("--format", options_.formats, "FORMAT",
                  format_choice() + "; =FILE writes it to a file, so that several formats can be given");
    options.text("-o", options_.output, "FILE", "write the report to this file");
    options.texts("--select", settings.select, "RULE,...",
                  "only these rules: names, codes, groups, separated by commas");
    options.texts("--ignore", settings.ignore, "RULE,...", "do not run these rules");
    options.text("--fail-on", settings.fail_on, "SEVERITY",
                 "least severity that makes the exit code 1: error, warning (default), info, never");
    options.number("--max-findings", settings.max_findings, "N", "findings shown per input (default 1000)");
    options.number("--jobs", options_.jobs, "N", "inputs checked at the same time (default: all processors)");
    options.flag("-q,--quiet", options_.quiet, "print only findings: no summary, no progress");
    options.text("--target", settings.target, "onnx|onnxruntime",
                 "report what this rejects: onnxruntime (default), which sorts nodes itself, or onnx");
    options.flag("--timings", options_.timings, "print how long each step took");
    options.text("--placement", placement_, "MODE", "explicit (default), or runtime");
    add_provider(options, settings,
                 "with --placement runtime: provider that runs the nodes it has kernels for; cuda, tensorlint-cuda, or "
                 "the file of a table");
    add_placement_file(options, settings);
    add_source_root(options, settings);
    options.text("--baseline", settings.baseline, "FILE", "report only findings that are not in this file");
    options.text("--write-baseline", options_.write_baseline, "FILE",
                 "write all findings to this file, for --baseline");
    add_model_settings(options, settings);
  }

  std::span<const char* const> unbuilt_options() const override {
    static constexpr const char* kOptions[] = {"--torch-version"};
    return kOptions;
  }

  int run() override {
    if (placement_ != "explicit" && placement_ != "runtime")
      return refuse(fmt::format("--placement takes explicit or runtime, not `{}`", placement_));
    options_.runtime_placement = placement_ == "runtime";
    if (!options_.settings.providers.empty() && !options_.runtime_placement)
      return refuse("--provider goes with --placement runtime");
    return run_check(options_);
  }

 private:
  /// "text (default) or json"
  static std::string format_choice() {
    std::vector<std::string_view> names = format_names();
    const std::string first = fmt::format("{} (default)", names.front());
    names.front() = first;
    return listed(names, "or");
  }

  CheckOptions options_;
  std::string placement_ = "explicit";
};

const RegisterCommand<Check> kRegisterCheck;

}  // namespace
}  // namespace tensorlint::cli
