#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "analyzer/config/config.h"
#include "analyzer/findings/input_report.h"
#include "analyzer/pipeline/filter.h"
#include "analyzer/pipeline/pipeline.h"

namespace tensorlint::pipeline {

/// Which suppressions of configurations some input used. Threads may share one.
class SuppressionUses {
 public:
  /// What one input, with the configuration `config`, did with its suppressions.
  void note(std::size_t input, const config::Config& config, const Options& options, const CheckResults& results);

  /// Suppressions of a configuration that no input used are in the report of its first input that was checked, as many
  /// as there is room for; the others are counted. `reports`: by input.
  void report_unused(std::vector<findings::InputReport>& reports);

 private:
  /// Of a row: hundreds of configurations may be links to one of ten thousand rows.
  enum class Use : std::uint8_t {
    kNotAsked,  ///< no input could have used it
    kNotUsed,
    kUsed,
  };
  struct Config {
    std::size_t first_input = 0;
    rules::RuleSelection selection;  ///< of that input
    std::shared_ptr<const config::ConfigContent> says;
    std::vector<Use> uses;
    /// Of the last input that was checked completely: all that follows from its rows having been asked is noted.
    std::shared_ptr<const FilterOptions::Suppressions> asked;
  };

  std::mutex mutex_;
  std::map<std::string, Config> configs_;  ///< by path
};

}  // namespace tensorlint::pipeline
