#include "analyzer/cli/check.h"

#include <sys/resource.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "analyzer/cli/batch.h"
#include "analyzer/cli/inputs.h"
#include "analyzer/cli/output.h"
#include "analyzer/cli/settings.h"
#include "analyzer/config/config.h"
#include "analyzer/config/suggestion.h"
#include "analyzer/findings/escape.h"
#include "analyzer/findings/input_report.h"
#include "analyzer/reports/json.h"
#include "analyzer/reports/text.h"
#include "analyzer/rules/engine.h"
#include "analyzer/rules/placement/wording.h"

namespace tensorlint::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// getrusage's ru_maxrss would not fall below that of the process which started this one.
std::uint64_t peak_rss_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  struct ::rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

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
    if (output.file == "-") output.file.clear();  // standard output, as is the custom
    else if (at != std::string::npos && output.file.empty()) return Error{fmt::format("--format {} names no file after `=`", text), {}};
    if (output.format == "sarif" || output.format == "github" || output.format == "junit" || output.format == "html")
      return Error{fmt::format("the format {} is not built yet; there are text and json", output.format), {}};
    if (output.format != "text" && output.format != "json") return Error{fmt::format("unknown format `{}`; there are text and json", output.format), {}};
    if (output.file.empty()) ++without_file;
    outputs.push_back(std::move(output));
  }
  if (outputs.empty()) {
    outputs.push_back({"text", {}});
    without_file = 1;
  }
  if (without_file > 1) return Error{"two formats go to the same place; give one of them a file (--format json=FILE)", {}};
  if (!options.output.empty() && options.output != "-") {
    const auto plain = std::find_if(outputs.begin(), outputs.end(), [](const Output& output) { return output.file.empty(); });
    if (plain == outputs.end()) return Error{"-o has no format to write; each --format names its own file", {}};
    plain->file = options.output;
  }
  std::set<std::string> files;
  for (const Output& output : outputs) {
    if (output.file.empty()) continue;
    if (!files.insert(output.file).second) return Error{fmt::format("two reports go to {}", output.file), {}};
    if (is_model_name(output.file)) return Error{fmt::format("a report is not written to {}: that is the name of a model", output.file), {}};
  }
  if (files.contains(options.write_baseline)) return Error{fmt::format("report and baseline both go to {}", options.write_baseline), {}};
  if (is_model_name(options.write_baseline)) return Error{fmt::format("--write-baseline FILE wants a file of its own; {} is the name of a model", options.write_baseline), {}};
  return outputs;
}

/// A suppression of the configuration over all inputs.
struct SuppressionUse {
  bool asked = false;  ///< some input could have used it
  bool used = false;
};

/// Checks one input after another; the threads share nothing but the list.
class Checker {
 public:
  Checker(const CheckOptions& options, const Settings& settings, Baseline* written) : options_(options), settings_(settings), written_(written) {}

  /// Reports in the order of the files; after an interruption only of those that were checked. `configs`: of each file,
  /// null for none.
  std::vector<InputReport> run(const std::vector<InputFile>& files, const std::vector<std::shared_ptr<const Config>>& configs) {
    // Shared with threads that may be abandoned, which then write to inputs that are not done.
    const auto shared = std::make_shared<std::vector<InputReport>>(files.size());
    std::vector<InputReport>& reports = *shared;
    const BatchResult batch =
        run_batch({files.size(), options_.jobs}, [this, shared, &files, &configs](std::size_t i) { (*shared)[i] = check(files[i], configs[i]); });
    interrupted_ = batch.interrupted;
    abandoned_ = batch.abandoned;
    if (batch.done_count() == files.size()) {
      report_unused(configs, reports);
      return std::move(reports);
    }
    std::vector<InputReport> done;
    for (std::size_t i = 0; i < files.size(); ++i)
      if (batch.done[i]) done.push_back(std::move(reports[i]));
    return done;
  }

  bool was_interrupted() const { return interrupted_; }
  /// Threads still work for this checker, which therefore must not come to its end.
  bool was_abandoned() const { return abandoned_; }
  bool had_internal_error() const { return internal_error_; }
  /// A name that an option declares and that some model has.
  bool is_known(const std::string& name) const { return known_names_.contains(name); }
  /// What a row [[models]] declares that none of its models has; empty for none.
  std::string unknown_in_config() const {
    for (const auto& [where, known] : config_names_)
      if (!known) return fmt::format("{}: no model that the row is about has a value `{}` in its main graph", where.first, where.second);
    return {};
  }

 private:
  InputReport check(const InputFile& file, const std::shared_ptr<const Config>& config) {
    InputReport report;
    report.path = file.path;
    report.error = file.error;
    if (!file.error.empty()) return report;
    const Clock::time_point start = Clock::now();
    try {
      check_model(settings_.of(file.path, config), report);
    } catch (const std::exception& fault) {
      internal_error_ = true;
      report.checked = false;
      report.error = fmt::format("internal error: {}", fault.what());
    }
    report.seconds.total = seconds_since(start);
    if (options_.timings) report.peak_rss_bytes = peak_rss_bytes();
    return report;
  }

  void check_model(const InputSettings& settings, InputReport& report) {
    Clock::time_point start = Clock::now();
    const auto lap = [&start] {
      const double seconds = seconds_since(start);
      start = Clock::now();
      return seconds;
    };
    const Result<Model> model = load_model(report.path);
    report.seconds.load = lap();
    if (!model) {
      report.error = model.error().message;
      return;
    }
    note_names(*model, settings);
    const Analysis analysis = analyse(*model, settings.analysis);
    report.seconds.infer = lap();
    const Placement placement = place(analysis, settings.placement);
    std::optional<RuntimeCost> cost;
    if (options_.runtime_placement) {
      cost = runtime_cost(analysis, settings.placement);
      report.cost_unknown = cost->unknown;
      if (!cost->cases.empty())
        report.cost.emplace(to_transfer_cost(analysis, cost->cheapest(analysis.facts())), to_transfer_cost(analysis, cost->dearest(analysis.facts())));
    }
    RuleResults results = run_rules(analysis, settings.selection, &placement, cost ? &*cost : nullptr);
    report.seconds.rules = lap();
    report.nodes = model->nodes.size();
    report.counts = results.counts;
    report.fail_on = settings.fail_on;
    report.findings = std::move(results.findings);
    note_suppressions(settings, results, report);
    compare_with_baseline(settings, report);
    if (report.findings.size() > settings.max_findings) keep_most_severe(report.findings, settings.max_findings);
    report.checked = true;
  }

  void note_suppressions(const InputSettings& settings, const RuleResults& results, InputReport& report) {
    report.suppressed = results.suppressed_by_comments;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < settings.suppressions.size(); ++i) {
      report.suppressed += results.suppressed[i];
      SuppressionUse& use = uses_[settings.config.get()][settings.suppressions[i]];
      const auto& codes = settings.selection.suppressions()[i].codes;
      use.used = use.used || results.suppressed[i] > 0;
      // A rule that did not run tells nothing.
      use.asked = use.asked || std::ranges::all_of(codes, [&](std::string_view code) { return settings.selection.allows(code); });
    }
    report_unused_ = report_unused_ || settings.selection.allows(find_rule("unused-suppression")->info());
  }

  void compare_with_baseline(const InputSettings& settings, InputReport& report) {
    const SeverityCounts before = count(report.findings);
    if (written_ != nullptr) {
      const std::lock_guard lock(mutex_);
      written_->add(report.path, report.findings);
      report.in_baseline = report.findings.size();
      report.findings.clear();
    } else if (settings.baseline != nullptr) {
      const Baseline::Known known = settings.baseline->take_out(report.path, report.findings);
      report.in_baseline = known.found;
      report.gone = known.gone;
    }
    report.counts -= before;
    report.counts += count(report.findings);
  }

  /// Suppressions of a configuration that no input used stand in the report of its first input.
  void report_unused(const std::vector<std::shared_ptr<const Config>>& configs, std::vector<InputReport>& reports) {
    const RuleInfo& rule = find_rule("unused-suppression")->info();
    if (!report_unused_) return;
    for (std::size_t input = 0; input < configs.size(); ++input) {
      const auto uses = uses_.find(configs[input].get());
      if (uses == uses_.end() || !reports[input].checked) continue;
      for (const auto& [index, use] : uses->second) {
        if (use.used || !use.asked) continue;
        const Suppression& suppression = configs[input]->suppressions[index].suppression;
        Finding finding;
        finding.rule = rule.name;
        finding.code = rule.code;
        finding.severity = rule.severity;
        for (const auto& [word, severity] : configs[input]->severities)
          if (word == rule.name || word == rule.code) finding.severity = severity;
        finding.path = suppression.place.file;
        finding.place = suppression.place;
        finding.message = fmt::format("the suppression of {} suppresses nothing", quoted_for_people(suppression.rules));
        finding.fixes.push_back({.message = "remove it", .applicability = Applicability::kSafe});
        ++reports[input].counts[finding.severity];
        reports[input].findings.push_back(std::move(finding));
      }
      uses_.erase(uses);
    }
  }

  static void keep_most_severe(std::vector<Finding>& findings, std::size_t limit) {
    std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
    findings.resize(limit);
    sort_and_deduplicate(findings);
  }

  void note_names(const Model& model, const InputSettings& settings) {
    const AnalysisOptions& declared = settings_.declared();
    if (declared.values.empty() && settings.names.empty()) return;
    const auto has = [&](const std::string& name) { return model.find_value(GraphId::kMain, name) != ValueId::kAbsent; };
    const std::lock_guard lock(mutex_);
    for (const auto& [name, declaration] : declared.values)
      if (has(name)) known_names_.insert(name);
    for (const ConfigName& entry : settings.names) {
      bool& known = config_names_[{fmt::format("{}:{}", settings.config->path, entry.line), entry.name}];
      known = known || has(entry.name);
    }
  }

  const CheckOptions& options_;
  const Settings& settings_;
  Baseline* written_;  // null: none is written
  std::atomic<bool> internal_error_{false};
  bool interrupted_ = false;
  bool abandoned_ = false;
  std::mutex mutex_;
  std::set<std::string> known_names_;
  std::map<std::pair<std::string, std::string>, bool> config_names_;  // by place and name: some model has it
  std::map<const Config*, std::map<std::size_t, SuppressionUse>> uses_;
  bool report_unused_ = false;
};

int exit_code(const std::vector<InputReport>& reports) {
  int code = kExitClean;
  for (const InputReport& report : reports) {
    if (!report.checked) return kExitNotChecked;
    const auto worst = report.counts.worst();
    if (worst && *worst >= report.fail_on) code = kExitFindings;
  }
  return code;
}

/// Writes the reports of `files` inputs, and the baseline; the exit code.
int conclude(const CheckOptions& options, const std::vector<Output>& outputs, const Settings& settings, const Checker& checker, std::size_t files,
             const std::vector<InputReport>& reports, const std::optional<Baseline>& written) {
  for (const Output& output : outputs) {
    const bool colour = output.file.empty() && wants_colour();
    const std::string text = output.format == "json" ? check_json(reports, options.timings) : check_text(reports, options.timings, colour);
    const auto error = output.file.empty() ? write_stdout(text) : write_file(output.file, text);
    if (error) return refuse(error->message);
  }
  if (checker.had_internal_error()) return kExitInternal;
  if (checker.was_interrupted()) {
    fmt::print(stderr, "tensorlint: interrupted: {} of {} inputs were checked\n", reports.size(), files);
    return kExitInterrupted;
  }
  const int code = exit_code(reports);
  if (code == kExitNotChecked) return written ? refuse("the baseline is not written, since some input could not be checked") : code;
  for (const auto& [name, declaration] : settings.declared().values)
    if (!checker.is_known(name)) return refuse(fmt::format("no model has a value `{}` in its main graph, which an option declares", name));
  if (const std::string unknown = checker.unknown_in_config(); !unknown.empty()) return refuse(unknown);
  if (written)
    if (const auto error = write_file(written->path(), written->to_json())) return refuse(error->message);
  return code;
}

}  // namespace

int refuse(std::string_view message) {
  fmt::print(stderr, "tensorlint: {}\n", escape_for_people(message, 2000));
  return kExitNotChecked;
}

int run_check(const CheckOptions& options) {
  const auto outputs = parse_outputs(options);
  if (!outputs) return refuse(outputs.error().message);
  SettingsOptions settings_options = options.settings;
  settings_options.keep_all = !options.write_baseline.empty();
  auto settings = Settings::make(settings_options);
  if (!settings) return refuse(settings.error().message);
  std::optional<Baseline> written;
  if (!options.write_baseline.empty()) written.emplace(options.write_baseline);
  const std::vector<InputFile> files = expand_inputs(options.inputs);
  for (const InputFile& file : files) {
    const auto is_input = [&](const std::string& written_to) {
      std::error_code none;
      return !written_to.empty() && std::filesystem::equivalent(written_to, file.path, none) && std::filesystem::is_regular_file(file.path, none);
    };
    for (const Output& output : *outputs)
      if (is_input(output.file)) return refuse(fmt::format("a report is not written over the input {}", file.path));
    if (is_input(options.write_baseline)) return refuse(fmt::format("the baseline is not written over the input {}", file.path));
  }
  std::vector<std::shared_ptr<const Config>> configs;
  for (const InputFile& file : files) {
    auto config = settings->config_for(file.path);
    if (!config) return refuse(config.error().message);
    configs.push_back(std::move(*config));
  }
  const InterruptWatch watch;
  Checker checker(options, *settings, written ? &*written : nullptr);
  const std::vector<InputReport> reports = checker.run(files, configs);
  const int code = conclude(options, *outputs, *settings, checker, files.size(), reports, written);
  if (checker.was_abandoned()) std::_Exit(code);
  return code;
}

namespace {

/// The text of one model; what is wrong with it otherwise.
Result<std::string> show_one(const std::string& path, const ShowOptions& options) {
  const auto settings = settings_of(path, options.settings);
  if (!settings) return settings.error();
  const Result<Model> model = load_model(path);
  if (!model) return Error{fmt::format("{}: {}", path, model.error().message), {}};
  if (const auto unknown = unknown_names(options.settings.declarations, *model); !unknown.empty())
    return Error{fmt::format("{} has no value `{}` in its main graph", path, unknown.front()), {}};
  const Analysis analysis = analyse(*model, settings->analysis);
  const Placement placement = place(analysis, settings->placement);
  if (options.format != "json") return show_text(analysis, placement);
  return show_json(analysis, placement, {.one_line = options.models.size() > 1, .all_symbols = options.all_symbols});
}

}  // namespace

int run_show(const ShowOptions& options) {
  if (options.format != "text" && options.format != "json") return refuse(fmt::format("unknown format `{}`; there are text and json", options.format));
  int code = kExitClean;
  for (const std::string& path : options.models) {
    const Result<std::string> text = show_one(path, options);
    const std::string gap = &path == options.models.data() ? "" : "\n";
    const std::string heading = options.models.size() > 1 && options.format == "text" ? fmt::format("{}== {}\n", gap, escape_for_people(path, 2000)) : "";
    if (!text) {
      code = refuse(text.error().message);
    } else if (const auto error = write_stdout(heading + *text)) {
      return refuse(error->message);
    }
  }
  return code;
}

int run_rules() {
  std::string text;
  std::size_t width = 0;
  for (const Rule* rule : all_rules()) width = std::max(width, rule->info().name.size());
  for (const Rule* rule : all_rules()) {
    const RuleInfo& info = rule->info();
    text += fmt::format("{}  {:<{}}  {:<7}  {}\n", info.code, info.name, width, to_text(info.severity), info.summary);
  }
  const auto error = write_stdout(text);
  return error ? refuse(error->message) : kExitClean;
}

int run_explain(const std::string& name) {
  const Rule* rule = find_rule(name);
  if (rule == nullptr) {  // TL-D101 and tl-d101, since people write both
    std::string code = name;
    std::ranges::transform(code, code.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    rule = find_rule(code);
  }
  if (rule == nullptr) {
    const std::string meant = suggestion(name, rule_words());
    return refuse(fmt::format("no rule is called `{}`{}", name, meant.empty() ? "; `tensorlint rules` lists them" : meant));
  }
  const auto error = write_stdout(rule_page(rule->info().name));
  return error ? refuse(error->message) : kExitClean;
}

}  // namespace tensorlint::cli
