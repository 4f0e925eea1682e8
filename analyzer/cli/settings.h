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

/// A value that a row [[models]] declares.
struct ConfigName {
  std::string name;
  std::uint32_t line = 0;
};

/// What holds for one input.
struct InputSettings : pipeline::Options {
  findings::FailOn fail_on;
  std::size_t max_findings = 1000;
  std::shared_ptr<const config::Config> config;  ///< null: none
  std::vector<ConfigName> names;                 ///< declared for this input in particular
  bool baseline_is_configured = false;           ///< the configuration names it, not an option
};

/// The command line over the configuration: `--select` replaces the configuration's, `--ignore` adds to it, a
/// declaration of the same value and the other options win.
class Settings {
 public:
  /// Errors: options that cannot be understood, files that cannot be read.
  static Result<Settings> make(const SettingsOptions& options);

  /// Reads the input's configuration, once per file. Errors as of read_config, and declarations that are of no known
  /// form. A file that no option names is named on standard error: it may come with the model.
  Result<std::shared_ptr<const config::Config>> config_for(const std::string& input);
  /// `config`: what config_for gave.
  InputSettings of(const std::string& input, const std::shared_ptr<const config::Config>& config) const;

  /// Values that options declare.
  const dataflow::AnalysisOptions& declared() const { return declared_; }

 private:
  /// What some parts of a configuration and the command line declare.
  struct Declared {
    std::shared_ptr<const config::Config> config;  ///< null: none
    std::vector<std::size_t> parts;
    std::vector<ConfigName> names;
    dataflow::AnalysisOptions analysis;
    placement::PlacementOptions placement;
  };
  /// For inputs that the same parts apply to, it is read once.
  std::shared_ptr<const Declared> declared_by(const std::shared_ptr<const config::Config>& config,
                                              std::vector<std::size_t> parts) const;
  struct Known {
    std::mutex mutex;
    std::shared_ptr<const Declared> last;
  };

  /// Declarations, and the files that the configuration names.
  std::optional<Error> accept(const config::Config& config);
  std::optional<Error> read_baseline(const std::string& path, bool is_found);
  std::optional<Error> read_placement(const std::string& path, bool is_found);
  void leave_out(rules::RuleSelection& selection) const;
  void announce(const config::Config& config);

  SettingsOptions options_;
  dataflow::AnalysisOptions declared_;
  std::optional<findings::FailOn> fail_on_;
  std::shared_ptr<const config::Config> given_;
  config::ConfigFinder finder_{rules::rule_names()};
  std::shared_ptr<Known> known_ = std::make_shared<Known>();  ///< of threads that ask for settings
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
