#include "analyzer/pipeline/suppression_uses.h"

#include <algorithm>
#include <utility>

#include "base/meter.h"

namespace tensorlint::pipeline {

void SuppressionUses::note(std::size_t input, const config::Config& config, const Options& options,
                           const CheckResults& results) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = configs_.try_emplace(config.path);
  Config& known = at->second;
  if (is_new) known.says = config.says;
  if (is_new || input < known.first_input) {
    known.first_input = input;
    known.selection = options.selection;
  }
  const auto& rows = options.filter.suppressions;
  if (rows == nullptr) return;
  // Thousands of inputs may have the same rows, and none of them anything to suppress.
  const bool is_told = results.is_partial || known.asked == rows;
  if (is_told && std::ranges::all_of(results.suppressed, [](std::size_t findings) { return findings == 0; })) return;
  if (!results.is_partial) known.asked = rows;
  known.uses.resize(known.says->suppressions.size());
  for (std::size_t i = 0; i < rows->size(); ++i) {
    const findings::Suppression& suppression = *(*rows)[i];
    Use& use = known.uses[suppression.row];
    // Of an input that is checked in part nobody knows what it would have suppressed.
    if (results.suppressed[i] > 0)
      use = Use::kUsed;
    else if (use == Use::kNotAsked && !results.is_partial && all_run(suppression, options.selection))
      use = Use::kNotUsed;
  }
}

void SuppressionUses::report_unused(std::vector<findings::InputReport>& reports) {
  // Each configuration its share of half of what findings may take: those of all are there when reports are written.
  const std::size_t share = Meter::kMemoryAtLeast / 2 / std::max<std::size_t>(configs_.size(), 1);
  for (const auto& [path, config] : configs_) {
    if (!reports_unused_suppressions(config.selection)) continue;
    findings::InputReport& report = reports[config.first_input];
    std::size_t bytes = 0;
    findings::Severity severity{};
    for (std::size_t row = 0; row < config.uses.size(); ++row) {
      if (config.uses[row] != Use::kNotUsed) continue;
      if (bytes <= share) {
        findings::Finding finding = unused_suppression(*config.says->suppressions[row].suppression, config.selection);
        finding.path = finding.place.file = path;  // files that are links to one share its suppressions
        severity = finding.severity;
        bytes += findings::memory_of(finding);
        report.findings.push_back(std::move(finding));
      }
      ++report.counts[severity];
      ++report.places;
    }
  }
}

}  // namespace tensorlint::pipeline
