#include "analyzer/cli/check.h"

#include <sys/resource.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <set>

#include "analyzer/cli/batch.h"
#include "analyzer/cli/inputs.h"
#include "analyzer/cli/output.h"
#include "analyzer/cli/placement_file.h"
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

std::uint64_t peak_rss_bytes() {
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
    if (at != std::string::npos && output.file.empty()) return Error{fmt::format("--format {} names no file after `=`", text), {}};
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
  if (!options.output.empty()) {
    const auto plain = std::find_if(outputs.begin(), outputs.end(), [](const Output& output) { return output.file.empty(); });
    if (plain == outputs.end()) return Error{"-o has no format to write; each --format names its own file", {}};
    plain->file = options.output;
  }
  return outputs;
}

/// Checks one input after another; the threads share nothing but the list.
class Checker {
 public:
  Checker(const CheckOptions& options, const AnalysisOptions& analysis, const PlacementOptions& placement, const RuleSelection& selection)
      : options_(options), analysis_options_(analysis), placement_options_(placement), selection_(selection) {}

  /// Reports in the order of the files; after an interruption only of those that were checked.
  std::vector<InputReport> run(const std::vector<InputFile>& files) {
    std::vector<InputReport> reports(files.size());
    const BatchResult batch = run_batch({files.size(), options_.jobs}, [&](std::size_t i) { reports[i] = check(files[i]); });
    interrupted_ = batch.interrupted;
    if (batch.done_count() == files.size()) return reports;
    std::vector<InputReport> done;
    for (std::size_t i = 0; i < files.size(); ++i)
      if (batch.done[i]) done.push_back(std::move(reports[i]));
    return done;
  }

  bool was_interrupted() const { return interrupted_; }
  bool had_internal_error() const { return internal_error_; }
  /// A declared name that some model has.
  bool is_known(const std::string& name) const { return known_names_.contains(name); }

 private:
  InputReport check(const InputFile& file) {
    InputReport report;
    report.path = file.path;
    report.error = file.error;
    if (!file.error.empty()) return report;
    const Clock::time_point start = Clock::now();
    try {
      check_model(report);
    } catch (const std::exception& fault) {
      internal_error_ = true;
      report.checked = false;
      report.error = fmt::format("internal error: {}", fault.what());
    }
    report.seconds.total = seconds_since(start);
    report.peak_rss_bytes = peak_rss_bytes();
    return report;
  }

  void check_model(InputReport& report) {
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
    note_names(*model);
    const Analysis analysis = analyse(*model, analysis_options_);
    report.seconds.infer = lap();
    const Placement placement = place(analysis, placement_options_);
    std::optional<RuntimeCost> cost;
    if (options_.runtime_placement) {
      cost = runtime_cost(analysis, placement_options_);
      report.cost_unknown = cost->unknown;
      if (!cost->cases.empty())
        report.cost.emplace(to_transfer_cost(analysis, cost->cheapest(analysis.facts())), to_transfer_cost(analysis, cost->dearest(analysis.facts())));
    }
    RuleResults results = run_rules(analysis, selection_, &placement, cost ? &*cost : nullptr);
    report.seconds.rules = lap();
    report.nodes = model->nodes.size();
    report.counts = results.counts;
    report.findings = std::move(results.findings);
    if (report.findings.size() > options_.max_findings) keep_most_severe(report.findings);
    report.checked = true;
  }

  void keep_most_severe(std::vector<Finding>& findings) const {
    std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
    findings.resize(options_.max_findings);
    sort_and_deduplicate(findings);
  }

  void note_names(const Model& model) {
    if (analysis_options_.values.empty()) return;
    const std::vector<std::string> unknown = unknown_names(analysis_options_, model);
    const std::lock_guard lock(mutex_);
    for (const auto& [name, declaration] : analysis_options_.values)
      if (std::find(unknown.begin(), unknown.end(), name) == unknown.end()) known_names_.insert(name);
  }

  const CheckOptions& options_;
  const AnalysisOptions& analysis_options_;
  const PlacementOptions& placement_options_;
  const RuleSelection& selection_;
  std::atomic<bool> internal_error_{false};
  bool interrupted_ = false;
  std::mutex mutex_;
  std::set<std::string> known_names_;
};

/// `a,b` given once or in several options.
template <typename Visit>
void for_each_word(const std::vector<std::string>& texts, Visit visit) {
  for (const std::string& text : texts) {
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t comma = rest.find(',');
      if (const std::string_view word = rest.substr(0, comma); !word.empty()) visit(word);
      rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    }
  }
}

Result<RuleSelection> parse_selection(const CheckOptions& options) {
  RuleSelection selection;
  std::string unknown;
  for_each_word(options.select, [&](std::string_view word) {
    if (!selection.select(word)) unknown = word;
  });
  for_each_word(options.ignore, [&](std::string_view word) {
    if (!selection.ignore(word)) unknown = word;
  });
  if (!unknown.empty()) return Error{fmt::format("no rule is called `{}`; `tensorlint rules` lists them", unknown), {}};
  return selection;
}

int exit_code(const std::vector<InputReport>& reports, Severity fail_on) {
  int code = kExitClean;
  for (const InputReport& report : reports) {
    if (!report.checked) return kExitNotChecked;
    const auto worst = report.counts.worst();
    if (worst && *worst >= fail_on) code = kExitFindings;
  }
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
  const auto analysis_options = parse_declarations(options.declarations);
  if (!analysis_options) return refuse(analysis_options.error().message);
  const auto selection = parse_selection(options);
  if (!selection) return refuse(selection.error().message);
  const auto fail_on = severity_named(options.fail_on);
  if (!fail_on) return refuse(fmt::format("--fail-on takes error, warning or info, not `{}`", options.fail_on));

  PlacementOptions placement = placement_options(*analysis_options);
  if (!options.placement_file.empty()) {
    auto rules = read_placement_file(options.placement_file);
    if (!rules) return refuse(rules.error().message);
    placement.rules = std::move(*rules);
  }
  Checker checker(options, *analysis_options, placement, *selection);
  const std::vector<InputFile> files = expand_inputs(options.inputs);
  const std::vector<InputReport> reports = checker.run(files);

  for (const Output& output : *outputs) {
    const bool colour = output.file.empty() && wants_colour();
    const std::string text = output.format == "json" ? check_json(reports, options.timings) : check_text(reports, options.timings, colour);
    const auto error = output.file.empty() ? write_stdout(text) : write_file(output.file, text);
    if (error) return refuse(error->message);
  }
  if (checker.had_internal_error()) return kExitInternal;
  if (checker.was_interrupted()) {
    fmt::print(stderr, "tensorlint: interrupted: {} of {} inputs were checked\n", reports.size(), files.size());
    return kExitInterrupted;
  }
  const int code = exit_code(reports, *fail_on);
  if (code == kExitNotChecked) return code;
  for (const auto& [name, declaration] : analysis_options->values)
    if (!checker.is_known(name)) return refuse(fmt::format("no model has a value `{}` in its main graph, which an option declares", name));
  return code;
}

int run_show(const ShowOptions& options) {
  if (options.format != "text" && options.format != "json") return refuse(fmt::format("unknown format `{}`; there are text and json", options.format));
  const auto analysis_options = parse_declarations(options.declarations);
  if (!analysis_options) return refuse(analysis_options.error().message);
  const Result<Model> model = load_model(options.model);
  if (!model) return refuse(fmt::format("{}: {}", options.model, model.error().message));
  if (const auto unknown = unknown_names(*analysis_options, *model); !unknown.empty())
    return refuse(fmt::format("{} has no value `{}` in its main graph", options.model, unknown.front()));
  const Analysis analysis = analyse(*model, *analysis_options);
  const Placement placement = place(analysis, placement_options(*analysis_options));
  const auto error = write_stdout(options.format == "json" ? show_json(analysis, placement) : show_text(analysis, placement));
  return error ? refuse(error->message) : kExitClean;
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
  if (rule == nullptr) return refuse(fmt::format("no rule is called `{}`; `tensorlint rules` lists them", name));
  const auto error = write_stdout(rule_page(rule->info().name));
  return error ? refuse(error->message) : kExitClean;
}

}  // namespace tensorlint::cli
