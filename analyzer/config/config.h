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

/// What a tensorlint.toml says (docs/configuration.md), wherever it is. Rules named in it are known to exist.
struct ConfigContent {
  std::vector<std::string> select, ignore;
  std::vector<std::pair<std::string, findings::Severity>> severities;
  std::optional<findings::FailOn> fail_on;
  std::optional<std::size_t> max_findings;
  std::string baseline, placement_file;  ///< as written, empty for none
  std::vector<ConfigDeclarations> declarations;
  std::vector<ConfigSuppression> suppressions;  ///< their places name no file
};

/// A tensorlint.toml. Files that are links to one share what it says.
struct Config {
  std::string path;                      ///< of the file
  std::string folder;                    ///< that its globs and paths are relative to
  bool is_found = false;                 ///< nobody named it: it may come with a model
  std::string baseline, placement_file;  ///< paths, empty for none
  std::shared_ptr<const ConfigContent> says = std::make_shared<const ConfigContent>();
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
  /// Null where there is none. Each file is read once, whatever links lead to it.
  Result<std::shared_ptr<const Config>> config_for(const std::string& input);

 private:
  /// One on the way to an input. A path may have two thousand: none is kept, or asked for, by its whole path.
  struct Folder {
    std::size_t above = 0;
    bool has_config = false, has_git = false;
    std::optional<std::shared_ptr<const Config>> config;  ///< what holds for files in it, once some input has asked
  };
  std::size_t number_of(const std::string& whole_folder);
  Result<std::shared_ptr<const Config>> config_at(const std::string& folder);

  const findings::RuleNames* rules_;
  std::vector<Folder> folders_{Folder{}};                               ///< the first is the root
  std::map<std::pair<std::size_t, std::string>, std::size_t> numbers_;  ///< by the folder above and the name
  std::pair<std::string, std::size_t> last_;                            ///< the folder of the last input
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::shared_ptr<const ConfigContent>>
      read_;  ///< by device and inode
};

}  // namespace tensorlint::config
