#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "analyzer/cli/check.h"
#include "analyzer/cli/declared_names.h"
#include "analyzer/cli/inputs.h"
#include "analyzer/cli/settings.h"
#include "analyzer/config/baseline.h"
#include "analyzer/config/config.h"
#include "analyzer/findings/input_report.h"
#include "analyzer/pipeline/suppression_uses.h"

namespace tensorlint::cli {

/// Checks one input after another; the threads share nothing but the list, and what is noted of all inputs.
class Checker {
 public:
  /// `written`: the baseline that takes all findings; null: none is written.
  Checker(const CheckOptions& options, const Settings& settings, config::Baseline* written)
      : options_(options), settings_(settings), written_(written) {}

  /// Reports in the order of the files; after an interruption only of those that were checked. `configs`: of each file,
  /// null for none.
  std::vector<findings::InputReport> run(const std::vector<InputFile>& files,
                                         const std::vector<std::shared_ptr<const config::Config>>& configs);

  bool was_interrupted() const { return interrupted_; }
  /// Threads still work for this checker, which therefore must not come to its end.
  bool was_abandoned() const { return abandoned_; }
  bool had_internal_error() const { return internal_error_; }
  const DeclaredNames& names() const { return names_; }

 private:
  findings::InputReport check(std::size_t input, const InputFile& file,
                              const std::shared_ptr<const config::Config>& config);
  void check_model(std::size_t input, const InputSettings& settings, findings::InputReport& report);
  void write_into_baseline(findings::InputReport& report);

  const CheckOptions& options_;
  const Settings& settings_;
  std::size_t inputs_ = 1;
  std::mutex written_mutex_;
  config::Baseline* written_;
  std::atomic<bool> internal_error_{false};
  bool interrupted_ = false;
  bool abandoned_ = false;
  DeclaredNames names_;
  pipeline::SuppressionUses suppressions_;
};

}  // namespace tensorlint::cli
