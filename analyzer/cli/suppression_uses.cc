#include "analyzer/cli/suppression_uses.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "analyzer/rules/rule.h"
#include "base/escape.h"

namespace tensorlint::cli {

std::size_t SuppressionUses::note(const InputSettings& settings, const rules::RuleResults& results) {
  std::size_t suppressed = 0;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < settings.suppressions.size(); ++i) {
    suppressed += results.suppressed[i];
    Use& use = uses_[settings.config.get()][settings.suppressions[i]];
    const auto& codes = settings.selection.suppressions()[i].codes;
    use.used = use.used || results.suppressed[i] > 0;
    // A rule that did not run tells nothing.
    use.asked =
        use.asked || std::ranges::all_of(codes, [&](std::string_view code) { return settings.selection.allows(code); });
  }
  are_reported_ = are_reported_ || settings.selection.allows(rules::find_rule("unused-suppression")->info());
  return suppressed;
}

void SuppressionUses::report_unused(const std::vector<std::shared_ptr<const config::Config>>& configs,
                                    std::vector<findings::InputReport>& reports) {
  const rules::RuleInfo& rule = rules::find_rule("unused-suppression")->info();
  if (!are_reported_) return;
  for (std::size_t input = 0; input < configs.size(); ++input) {
    const auto uses = uses_.find(configs[input].get());
    if (uses == uses_.end() || !reports[input].checked) continue;
    for (const auto& [index, use] : uses->second) {
      if (use.used || !use.asked) continue;
      const rules::Suppression& suppression = configs[input]->suppressions[index].suppression;
      findings::Finding finding;
      finding.rule = rule.name;
      finding.code = rule.code;
      finding.severity = rule.severity;
      for (const auto& [word, severity] : configs[input]->severities)
        if (word == rule.name || word == rule.code) finding.severity = severity;
      finding.path = suppression.place.file;
      finding.place = suppression.place;
      finding.message = fmt::format("the suppression of {} suppresses nothing", quoted_for_people(suppression.rules));
      finding.fixes.push_back({.message = "remove it", .applicability = findings::Applicability::kSafe});
      ++reports[input].counts[finding.severity];
      ++reports[input].places;
      reports[input].findings.push_back(std::move(finding));
    }
    uses_.erase(uses);
  }
}

}  // namespace tensorlint::cli
