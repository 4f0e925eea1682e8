#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/findings/input_report.h"
#include "analyzer/pipeline/filter.h"
#include "analyzer/pipeline/pipeline.h"

namespace tensorlint::pipeline {

/// Which suppressions of configurations some input used. Threads may share one.
class SuppressionUses {
 public:
  /// What one input, with the configuration `config`, did with its suppressions.
  void note(std::size_t input, const std::string& config, const Options& options, const CheckResults& results);

  /// Suppressions of a configuration that no input used are in the report of its first input that was checked.
  /// `reports`: by input.
  void report_unused(std::vector<findings::InputReport>& reports);

 private:
  struct Use {
    std::shared_ptr<const findings::Suppression> suppression;
    bool asked = false;  ///< some input could have used it
    bool used = false;
  };
  struct Config {
    std::size_t first_input = 0;
    rules::RuleSelection selection;                                 ///< of that input
    std::map<std::pair<std::uint32_t, std::uint32_t>, Use> uses{};  ///< by line and column
  };

  std::mutex mutex_;
  std::map<std::string, Config> configs_;  ///< by path
};

}  // namespace tensorlint::pipeline
