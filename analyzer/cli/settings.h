#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/cli/declarations.h"
#include "analyzer/config/baseline.h"
#include "analyzer/config/config.h"
#include "analyzer/pipeline/pipeline.h"
#include "analyzer/rules/engine.h"
#include "base/result.h"
#include "passes/dataflow/analysis.h"
#include "passes/placement/placement.h"

namespace tensorlint::cli {

/// What the command line says where the configuration may say it too.
struct SettingsOptions {
  Declarations declarations;
  std::vector<std::string> select, ignore;
  std::optional<std::string> fail_on;
  std::optional<std::size_t> max_findings;
  std::string config, baseline, placement_file, signatures;  ///< files; empty: not given
  std::string source_root;                                   ///< folder; empty: not given
  std::vector<std::string> providers;                        ///< names of built-in tables, or files
  std::string target = "onnxruntime";                        ///< or onnx: whose rules hold
  bool quiet = false;                                        ///< a configuration that was found is not named
  bool keep_all = false;  ///< all findings are wanted, since a baseline is written of them; none is read then
};

/// What holds for one input.
struct InputSettings : pipeline::Options {
  findings::FailOn fail_on;
  std::size_t max_findings = 1000;
  std::shared_ptr<const config::Config> config;  ///< null: none
  /// Rows [[models]] that name values of this input, as numbers of the configuration's declarations.
  std::shared_ptr<const std::vector<std::uint32_t>> rows;
  bool baseline_is_configured = false;  ///< the configuration names it, not an option
};

using DeclaredValues = SharedMap<std::string, dataflow::InputDeclaration>;

/// The command line over the configuration: `--select` replaces the configuration's, `--ignore` adds to it, a
/// declaration of the same value and the other options win.
class Settings {
 public:
  /// Errors: options that cannot be understood, files that cannot be read.
  static Result<Settings> make(const SettingsOptions& options);

  /// Reads the input's configuration, once per file. Errors as of read_config, and declarations that are of no known
  /// form. A file that no option names is named on standard error: it may come with the model.
  Result<std::shared_ptr<const config::Config>> config_for(const std::string& input);
  /// `config`: what config_for gave. Errors: globs that take too long for the path (PathMatcher).
  Result<InputSettings> of(const std::string& input, const std::shared_ptr<const config::Config>& config) const;

  /// Values that options declare.
  const DeclaredValues& declared_values() const { return declared_.values; }

 private:
  /// What a configuration says and the command line adds, ready for any input: thousands of inputs may have one, and
  /// hundreds of configurations be links to one file.
  struct Ready {
    std::shared_ptr<const config::ConfigContent> says;
    std::vector<dataflow::AnalysisOptions>
        declared;  ///< by declarations; a default device is empty where none is given
    /// Those with a glob that declare something, and suppressions with one: numbers that follow those of declarations.
    std::vector<std::uint32_t> with_glob;
    rules::RuleSelection selection;
  };
  Ready make_ready(const std::shared_ptr<const config::ConfigContent>& says) const;

  /// What holds for all inputs that the same rows apply to.
  struct Applied {
    std::shared_ptr<const std::vector<std::uint32_t>> rows;
    dataflow::AnalysisOptions analysis;
    placement::PlacementOptions placement;
    std::shared_ptr<const pipeline::FilterOptions::Suppressions> suppressions;
    std::size_t memory = 0;
  };
  /// `matching`: of with_glob.
  std::shared_ptr<const Applied> applied(const Ready& ready, std::vector<std::uint32_t> matching) const;
  Applied apply(const Ready& ready, const std::vector<std::uint32_t>& matching) const;
  struct Known {
    std::mutex mutex;
    std::map<std::pair<const Ready*, std::vector<std::uint32_t>>, std::shared_ptr<const Applied>> applied;
    std::size_t memory = 0;
  };

  /// Declarations, and the files that the configuration names.
  std::optional<Error> accept(const config::Config& config);
  std::optional<Error> read_baseline(const std::string& path, bool is_found);
  std::optional<Error> read_placement(const std::string& path, bool is_found);
  std::optional<Error> check_declarations(const config::Config& config) const;
  void leave_out(rules::RuleSelection& selection) const;
  void announce(const config::Config& config);

  SettingsOptions options_;
  dataflow::AnalysisOptions declared_;    ///< the default device is empty where no option names one
  rules::RuleSelection of_command_line_;  ///< what the options alone select
  std::optional<findings::FailOn> fail_on_;
  std::shared_ptr<const config::Config> given_;
  std::shared_ptr<const config::ConfigContent> says_nothing_ = std::make_shared<const config::ConfigContent>();
  std::map<const config::ConfigContent*, std::shared_ptr<const Ready>> ready_;
  config::ConfigFinder finder_{rules::rule_names()};
  std::shared_ptr<Known> known_ = std::make_shared<Known>();  ///< shared by threads that ask for settings
  std::set<std::shared_ptr<const config::Config>> accepted_;
  std::set<std::string> announced_;  ///< by path
  /// Files that the configurations of many folders name may be links to one.
  template <typename Content>
  struct Files {
    std::map<std::string, std::shared_ptr<const Content>> by_path;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::shared_ptr<const Content>> read;  ///< by device and inode
  };
  Files<config::Baseline> baselines_;
  Files<std::vector<placement::PlacementRule>> placement_files_;  ///< null: empty ones
  std::vector<std::shared_ptr<const placement::ProviderTable>> providers_;
  std::shared_ptr<const ops::Signatures> signatures_;
};

/// The settings of a command about one model.
Result<InputSettings> settings_of(const std::string& input, const SettingsOptions& options);

}  // namespace tensorlint::cli
