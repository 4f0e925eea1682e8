#include "analyzer/pipeline/suppression_uses.h"

namespace tensorlint::pipeline {

void SuppressionUses::note(std::size_t input, const std::string& config, const Options& options,
                           const CheckResults& results) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = configs_.try_emplace(config, Config{input, options.selection});
  Config& known = at->second;
  if (!is_new && input < known.first_input) {
    known.first_input = input;
    known.selection = options.selection;
  }
  for (std::size_t i = 0; i < options.filter.suppressions.size(); ++i) {
    const std::shared_ptr<const findings::Suppression>& suppression = options.filter.suppressions[i];
    Use& use =
        known.uses.try_emplace({suppression->place.line, suppression->place.column}, Use{suppression}).first->second;
    use.used = use.used || results.suppressed[i] > 0;
    // Of an input that is checked in part nobody knows what it would have suppressed.
    use.asked = use.asked || (!results.is_partial && all_run(*suppression, options.selection));
  }
}

void SuppressionUses::report_unused(std::vector<findings::InputReport>& reports) {
  for (const auto& [path, config] : configs_) {
    if (!reports_unused_suppressions(config.selection)) continue;
    findings::InputReport& report = reports[config.first_input];
    for (const auto& [place, use] : config.uses) {
      if (use.used || !use.asked) continue;
      findings::Finding finding = unused_suppression(*use.suppression, config.selection);
      ++report.counts[finding.severity];
      ++report.places;
      report.findings.push_back(std::move(finding));
    }
  }
}

}  // namespace tensorlint::pipeline
