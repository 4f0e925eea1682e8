#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/findings/fail_on.h"
#include "analyzer/findings/finding.h"
#include "analyzer/findings/rule_names.h"
#include "analyzer/findings/suppression.h"
#include "base/result.h"

namespace tensorlint::config {

/// What a table [inputs], [ranges] or [devices] says of one value: checked by whoever knows the form.
struct ConfigEntry {
  std::string name, text;
  std::uint32_t line = 0;
};

/// What is declared of the values of some models.
struct ConfigDeclarations {
  std::string path;  ///< glob (matches_path) relative to the configuration's folder; empty: every model
  std::vector<ConfigEntry> inputs, ranges, devices;
  std::optional<ConfigEntry> device;  ///< where everything else lives; its name is empty
};

struct ConfigSuppression {
  std::string path;                                          ///< glob, as above
  std::shared_ptr<const findings::Suppression> suppression;  ///< shared by all inputs
};

/// A tensorlint.toml (docs/configuration.md). Rules named in it are known to exist.
struct Config {
  std::string path;    ///< of the file
  std::string folder;  ///< that its globs and paths are relative to
  std::vector<std::string> select, ignore;
  std::vector<std::pair<std::string, findings::Severity>> severities;
  std::optional<findings::FailOn> fail_on;
  std::optional<std::size_t> max_findings;
  std::string baseline, placement_file;  ///< paths, empty for none
  std::vector<ConfigDeclarations> declarations;
  std::vector<ConfigSuppression> suppressions;
};

/// `rules`: that may be named. Errors, as PATH:LINE:COLUMN: what cannot be read, is not TOML, has an unknown key, rule
/// or severity (with what was probably meant), or a suppression without a reason.
Result<Config> read_config(const std::string& path, const findings::RuleNames& rules);

/// Finds the configuration of inputs: `tensorlint.toml` in the input's folder or the nearest one above it, up to and
/// with the one that holds `.git`.
class ConfigFinder {
 public:
  /// `rules`: that may be named; outlive this.
  explicit ConfigFinder(const findings::RuleNames& rules) : rules_(&rules) {}
  /// Null where there is none. Each file is read once.
  Result<std::shared_ptr<const Config>> config_for(const std::string& input);

 private:
  const findings::RuleNames* rules_;
  std::map<std::string, std::shared_ptr<const Config>> folders_;
};

}  // namespace tensorlint::config
