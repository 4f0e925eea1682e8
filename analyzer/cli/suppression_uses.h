#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "analyzer/cli/settings.h"
#include "analyzer/config/config.h"
#include "analyzer/findings/input_report.h"
#include "analyzer/rules/engine.h"

namespace tensorlint::cli {

/// Which suppressions of configurations some input used. Threads may share one.
class SuppressionUses {
 public:
  /// What an input used; the number of findings that its configuration suppressed.
  std::size_t note(const InputSettings& settings, const rules::RuleResults& results);

  /// Suppressions of a configuration that no input used stand in the report of its first input. `configs`: of each
  /// report's input, null for none.
  void report_unused(const std::vector<std::shared_ptr<const config::Config>>& configs,
                     std::vector<findings::InputReport>& reports);

 private:
  struct Use {
    bool asked = false;  ///< some input could have used it
    bool used = false;
  };

  std::mutex mutex_;
  std::map<const config::Config*, std::map<std::size_t, Use>> uses_;  // by configuration and index
  bool are_reported_ = false;                                         // some input's selection allows the rule
};

}  // namespace tensorlint::cli
