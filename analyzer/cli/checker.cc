#include "analyzer/cli/checker.h"

#include <sys/resource.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "analyzer/cli/batch.h"
#include "analyzer/rules/engine.h"
#include "analyzer/rules/placement/wording.h"

namespace tensorlint::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// Memory that the findings of one of many inputs may always take.
constexpr std::uint64_t kLeastShare = std::uint64_t{2} << 10;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// getrusage's ru_maxrss would not fall below that of the process which started this one.
std::uint64_t peak_rss_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  struct ::rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

/// One finding may be about all that is wrong with an input.
void keep_first_places(findings::Finding& finding, std::size_t memory) {
  std::size_t bytes = findings::memory_of(finding);
  if (bytes <= memory) return;
  while (bytes > memory && !finding.also.empty()) {
    bytes -= findings::memory_of(finding.also.back());
    finding.also.pop_back();
  }
  finding.also.shrink_to_fit();
}

/// As many as are asked for, and as fit in `memory`: the most severe ones. What repairs them has been of use until
/// here.
void keep_most_severe(std::vector<findings::Finding>& findings, std::size_t limit, std::size_t memory) {
  std::size_t bytes = 0;
  for (findings::Finding& finding : findings) {
    finding.causes = {};
    finding.also.shrink_to_fit();
    for (findings::Fix& fix : finding.fixes) fix.edits = {};
    bytes += findings::memory_of(finding);
  }
  findings.shrink_to_fit();  // what is said twice, or is suppressed, has left its room
  if (findings.size() <= limit && bytes <= memory) return;
  findings::sort_in_place(
      findings, [](const findings::Finding& a, const findings::Finding& b) { return a.severity > b.severity; });
  std::size_t kept = 0;
  for (bytes = 0; kept < std::min(findings.size(), limit); ++kept) {
    if (kept == 0) keep_first_places(findings[kept], memory);
    bytes += findings::memory_of(findings[kept]);
    if (bytes > memory && kept > 0) break;
  }
  findings.resize(kept);
  findings.shrink_to_fit();
  findings::sort_and_deduplicate(findings);
}

void note_cost(const passes::PassResults& known, findings::InputReport& report) {
  const placement::RuntimeCost& cost = known.runtime_cost();
  const dataflow::Analysis& analysis = known.analysis();
  report.is_cost_unknown = !cost.unknown.empty();
  if (!cost.cases.empty())
    report.cost.emplace(rules::to_transfer_cost(analysis, cost.cheapest(analysis.facts())),
                        rules::to_transfer_cost(analysis, cost.dearest(analysis.facts())));
}

}  // namespace

std::vector<findings::InputReport> Checker::run(const std::vector<InputFile>& files,
                                                const std::vector<std::shared_ptr<const config::Config>>& configs) {
  // Shared with threads that may be abandoned, which then write to inputs that are not done.
  const auto shared = std::make_shared<std::vector<findings::InputReport>>(files.size());
  std::vector<findings::InputReport>& reports = *shared;
  inputs_ = std::max<std::size_t>(files.size(), 1);
  const BatchResult batch =
      run_batch({files.size(), options_.jobs, options_.quiet},
                [this, shared, &files, &configs](std::size_t i) { (*shared)[i] = check(i, files[i], configs[i]); });
  interrupted_ = batch.interrupted;
  abandoned_ = batch.abandoned;
  if (batch.done_count() == files.size()) {
    suppressions_.report_unused(reports);
    return std::move(reports);
  }
  std::vector<findings::InputReport> done;
  for (std::size_t i = 0; i < files.size(); ++i)
    if (batch.done[i]) done.push_back(std::move(reports[i]));
  return done;
}

findings::InputReport Checker::check(std::size_t input, const InputFile& file,
                                     const std::shared_ptr<const config::Config>& config) {
  findings::InputReport report;
  report.path = file.path;
  report.error = file.error;
  if (!file.error.empty()) return report;
  const Clock::time_point start = Clock::now();
  try {
    if (const Result<InputSettings> settings = settings_.of(file.path, config))
      check_model(input, *settings, report);
    else
      report.error = settings.error().message;
  } catch (const std::exception& fault) {
    internal_error_ = true;
    report.checked = false;
    report.error = fmt::format("internal error: {}", fault.what());
  }
  report.seconds.total = seconds_since(start);
  if (options_.timings) report.peak_rss_bytes = peak_rss_bytes();
  return report;
}

void Checker::check_model(std::size_t input, const InputSettings& settings, findings::InputReport& report) {
  Clock::time_point start = Clock::now();
  const auto lap = [&start] {
    const double seconds = seconds_since(start);
    start = Clock::now();
    return seconds;
  };
  Result<Model> model = load_model(report.path);
  report.seconds.load = lap();
  if (!model) {
    report.error = model.error().message;
    return;
  }
  names_.note(*model, settings_.declared_values(), settings);
  report.nodes = model->nodes.size();
  pipeline::Pipeline pipeline(std::move(*model), settings);
  pipeline.run({passes::Pass::kAnalysis});
  report.seconds.infer = lap();
  pipeline::CheckResults results = pipeline.check(options_.runtime_placement);
  if (options_.runtime_placement) note_cost(pipeline.run({passes::Pass::kRuntimeCost}), report);
  report.seconds.rules = lap();
  report.counts = results.counts;
  report.fail_on = settings.fail_on;
  report.findings = std::move(results.findings);
  const std::size_t suppressed = std::reduce(results.suppressed.begin(), results.suppressed.end());
  report.suppressed = results.suppressed_by_comments + suppressed;
  report.left_out = results.left_out;
  report.in_baseline = results.in_baseline;
  report.gone = results.gone;
  report.is_partial = results.is_partial;
  const Meter& meter = pipeline.results().meter();
  report.work = {.steps = meter.steps(),
                 .steps_allowed = meter.steps_allowed(),
                 .heap_steps = meter.heap_steps(),
                 .heap_steps_allowed = meter.heap_steps_allowed(),
                 .memory = meter.most_memory(),
                 .heap = meter.most_heap(),
                 .memory_allowed = meter.memory_allowed()};
  if (written_ != nullptr) write_into_baseline(report);
  if (settings.config != nullptr) {
    suppressions_.note(input, *settings.config, settings, results);
    report.config = settings.config->path;
    report.hidden = suppressed + results.left_out;
    if (settings.filter.baseline != nullptr && settings.baseline_is_configured) report.hidden += report.in_baseline;
  }
  report.places = findings::count_places(report.findings) + report.omitted() + results.omitted_places;
  // The findings of all inputs are there when the report is written.
  const std::uint64_t own = meter.memory_allowed() - Meter::kMemoryAtLeast;
  keep_most_severe(report.findings, settings.max_findings,
                   std::max(kLeastShare, Meter::kMemoryAtLeast / inputs_ + own));
  report.checked = true;
}

/// All that is found is known from now on.
void Checker::write_into_baseline(findings::InputReport& report) {
  const std::lock_guard lock(written_mutex_);
  written_->add(report.path, report.findings);
  report.in_baseline = findings::count_places(report.findings);
  report.counts -= findings::count(report.findings);
  report.findings.clear();
}

}  // namespace tensorlint::cli
