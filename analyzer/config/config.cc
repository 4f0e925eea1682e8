#include "analyzer/config/config.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <limits>
#include <span>
#include <string_view>

#include "analyzer/config/toml_file.h"
#include "base/descriptor.h"
#include "base/did_you_mean.h"
#include "base/paths.h"
#include "base/small_file.h"

namespace tensorlint::config {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFileName = "tensorlint.toml";

using MaybeError = std::optional<Error>;

/// Reads one file; every method gives the first thing that is wrong.
class ConfigReader {
 public:
  ConfigReader(const std::string& path, const findings::RuleNames& rules) : path_(path), rules_(rules) {}

  Result<ConfigContent> read(std::size_t most_bytes) {
    const Result<toml::table> file = read_toml_file(path_, most_bytes);
    if (!file) return file.error();
    if (const MaybeError error = read_file(*file)) return *error;
    return std::move(out_);
  }

 private:
  Error wrong(const toml::source_region& source, std::string_view message) const {
    return toml_error(path_, source, message);
  }

  Error unknown_key(const toml::key& key, std::span<const std::string_view> known, std::string_view where) const {
    return wrong(key.source(), fmt::format("unknown key `{}`{}{}", key.str(), where, did_you_mean(key.str(), known)));
  }

  MaybeError read_file(const toml::table& file) {
    static constexpr std::array<std::string_view, 13> kKeys{
        "select", "ignore", "fail-on", "max-findings", "baseline", "placement-file", "severity",
        "inputs", "ranges", "devices", "device",       "models",   "suppress"};
    out_.declarations.emplace_back();
    MaybeError error;
    for (const auto& [key, node] : file) {
      if (key == "select") {
        error = read_rules(node, out_.select);
      } else if (key == "ignore") {
        error = read_rules(node, out_.ignore);
      } else if (key == "fail-on") {
        error = read_fail_on(node, out_.fail_on.emplace());
      } else if (key == "max-findings") {
        error = read_count(node, out_.max_findings.emplace());
      } else if (key == "baseline") {
        error = read_text(node, out_.baseline);
      } else if (key == "placement-file") {
        error = read_text(node, out_.placement_file);
      } else if (key == "severity") {
        error = read_severities(node);
      } else if (key == "models") {
        error = read_rows(node, [this](const toml::table& row) { return read_model(row); });
      } else if (key == "suppress") {
        error = read_rows(node, [this](const toml::table& row) { return read_suppression(row); });
      } else if (!read_declaration(key.str(), node, out_.declarations.front(), error)) {
        error = unknown_key(key, kKeys, "");
      }
      if (error) return error;
    }
    return std::nullopt;
  }

  MaybeError read_text(const toml::node& node, std::string& out) const {
    const auto* text = node.as_string();
    if (text == nullptr || text->get().empty()) return wrong(node.source(), "expected a string");
    out = text->get();
    return std::nullopt;
  }

  MaybeError read_count(const toml::node& node, std::size_t& out) const {
    const auto* number = node.as_integer();
    if (number == nullptr || number->get() < 0) return wrong(node.source(), "expected a non-negative number");
    out = static_cast<std::size_t>(number->get());
    return std::nullopt;
  }

  MaybeError read_severity(const toml::node& node, findings::Severity& out) const {
    std::string text;
    if (const MaybeError error = read_text(node, text)) return error;
    const auto severity = findings::severity_named(text);
    if (!severity)
      return wrong(node.source(), fmt::format("`{}` is not a severity: expected error, warning or info", text));
    out = *severity;
    return std::nullopt;
  }

  MaybeError read_fail_on(const toml::node& node, findings::FailOn& out) const {
    std::string text;
    if (const MaybeError error = read_text(node, text)) return error;
    const auto fail_on = findings::FailOn::named(text);
    if (!fail_on)
      return wrong(node.source(), fmt::format("fail-on is one of error, warning, info and never, not `{}`", text));
    out = *fail_on;
    return std::nullopt;
  }

  MaybeError check_rule(const toml::node& node, std::string_view word) const {
    if (!rules_.codes_of(word).empty()) return std::nullopt;
    return wrong(node.source(), rules_.unknown(word));
  }

  /// One rule, or a list of them.
  MaybeError read_rules(const toml::node& node, std::vector<std::string>& out) const {
    const toml::array* list = node.as_array();
    const std::size_t count = list == nullptr ? 1 : list->size();
    for (std::size_t i = 0; i < count; ++i) {
      const toml::node& word = list == nullptr ? node : *list->get(i);
      if (const MaybeError error = read_text(word, out.emplace_back())) return error;
      if (const MaybeError error = check_rule(word, out.back())) return error;
    }
    return std::nullopt;
  }

  MaybeError read_severities(const toml::node& node) {
    const toml::table* table = node.as_table();
    if (table == nullptr) return wrong(node.source(), "expected a table `rule = \"severity\"`");
    for (const auto& [rule, value] : *table) {
      if (rules_.codes_of(rule.str()).empty()) return wrong(rule.source(), rules_.unknown(rule.str()));
      findings::Severity severity{};
      if (const MaybeError error = read_severity(value, severity)) return error;
      out_.severities.emplace_back(rule.str(), severity);
    }
    return std::nullopt;
  }

  template <typename Read>
  MaybeError read_rows(const toml::node& node, Read read) {
    const toml::array* rows = node.as_array();
    if (rows == nullptr) return wrong(node.source(), "expected tables in double brackets: [[...]]");
    for (const toml::node& row : *rows) {
      if (!row.is_table()) return wrong(row.source(), "expected tables in double brackets: [[...]]");
      if (const MaybeError error = read(*row.as_table())) return error;
    }
    return std::nullopt;
  }

  MaybeError read_entries(const toml::node& node, std::vector<ConfigEntry>& out) {
    // Each is looked up in each model that it applies to.
    constexpr std::size_t kMaxDeclared = 1000;
    const toml::table* table = node.as_table();
    if (table == nullptr) return wrong(node.source(), "expected a table `value = \"...\"`");
    for (const auto& [name, value] : *table) {
      ConfigEntry entry{.name = std::string(name.str()), .text = {}, .line = value.source().begin.line};
      if (++declared_ > kMaxDeclared)
        return wrong(value.source(), fmt::format("more than {} declarations of inputs, ranges and devices; patterns of "
                                                 "a placement file place many values",
                                                 kMaxDeclared));
      if (const MaybeError error = read_text(value, entry.text)) return error;
      out.push_back(std::move(entry));
    }
    return std::nullopt;
  }

  /// False when the key is none of a declaration's.
  bool read_declaration(std::string_view key, const toml::node& node, ConfigDeclarations& out, MaybeError& error) {
    if (key == "inputs") {
      error = read_entries(node, out.inputs);
    } else if (key == "ranges") {
      error = read_entries(node, out.ranges);
    } else if (key == "devices") {
      error = read_entries(node, out.devices);
    } else if (key == "device") {
      out.device = ConfigEntry{.name = {}, .text = {}, .line = node.source().begin.line};
      error = read_text(node, out.device->text);
    } else {
      return false;
    }
    return true;
  }

  MaybeError read_model(const toml::table& row) {
    static constexpr std::array<std::string_view, 5> kKeys{"path", "inputs", "ranges", "devices", "device"};
    ConfigDeclarations declarations;
    for (const auto& [key, node] : row) {
      MaybeError error;
      if (key == "path") {
        error = read_text(node, declarations.path);
      } else if (!read_declaration(key.str(), node, declarations, error)) {
        error = unknown_key(key, kKeys, " of a row [[models]]");
      }
      if (error) return error;
    }
    if (declarations.path.empty())
      return wrong(row.source(), "a [[models]] entry needs `path`: the models that it applies to");
    // A row that declares nothing says nothing.
    if (!declarations.inputs.empty() || !declarations.ranges.empty() || !declarations.devices.empty() ||
        declarations.device)
      out_.declarations.push_back(std::move(declarations));
    return std::nullopt;
  }

  MaybeError read_suppression(const toml::table& row) {
    static constexpr std::array<std::string_view, 5> kKeys{"rule", "path", "node", "graph", "reason"};
    ConfigSuppression found;
    findings::Suppression suppression;
    std::vector<std::string> rules;
    for (const auto& [key, node] : row) {
      MaybeError error;
      if (key == "rule") {
        error = read_rules(node, rules);
      } else if (key == "path") {
        error = read_text(node, found.path);
      } else if (key == "node") {
        error = read_text(node, suppression.node);
      } else if (key == "graph") {
        error = read_text(node, suppression.graph);
      } else if (key == "reason") {
        error = read_text(node, suppression.reason);
      } else {
        error = unknown_key(key, kKeys, " of a row [[suppress]]");
      }
      if (error) return error;
    }
    if (rules.empty()) return wrong(row.source(), "a [[suppress]] entry needs `rule`: what not to report");
    if (suppression.reason.empty())
      return wrong(row.source(), fmt::format("the suppression of `{}` gives no `reason`", rules.front()));
    suppression.rules = fmt::format("{}", fmt::join(rules, ", "));
    suppression.row = static_cast<std::uint32_t>(out_.suppressions.size());
    for (const std::string& rule : rules) suppression.codes |= rules_.codes_of(rule);
    suppression.place = {.file = {},
                         .line = row.source().begin.line,
                         .column = static_cast<std::uint32_t>(row.source().begin.column),
                         .source = {}};
    found.suppression = std::make_shared<const findings::Suppression>(std::move(suppression));
    out_.suppressions.push_back(std::move(found));
    return std::nullopt;
  }

  const std::string& path_;
  const findings::RuleNames& rules_;
  std::size_t declared_ = 0;
  ConfigContent out_;
};

/// What the file at `path` says, for the models beside it.
Config config_of(const std::string& path, std::shared_ptr<const ConfigContent> says, bool is_found) {
  Config config{.path = path,
                .folder = folder_of(path),
                .is_found = is_found,
                .baseline = {},
                .placement_file = {},
                .says = std::move(says)};
  const auto beside = [&](const std::string& file) {
    return file.empty() ? file : (fs::path(config.folder) / file).lexically_normal().string();
  };
  config.baseline = beside(config.says->baseline);
  config.placement_file = beside(config.says->placement_file);
  return config;
}

}  // namespace

Result<Config> read_config(const std::string& path, const findings::RuleNames& rules) {
  Result<ConfigContent> read = ConfigReader(path, rules).read(kMaxTomlBytes);
  if (!read) return read.error();
  return config_of(path, std::make_shared<const ConfigContent>(std::move(*read)), false);
}

/// The number of a folder. All on the way to it get theirs, from the root of the file system down: each is opened in
/// the one above, since the system goes through all of a path each time that it gets one.
std::size_t ConfigFinder::number_of(const std::string& whole_folder) {
  if (last_.first == whole_folder) return last_.second;
  const auto note = [](Folder& folder, int open) {
    folder.has_config = ::faccessat(open, std::string(kFileName).c_str(), F_OK, 0) == 0;
    folder.has_git = ::faccessat(open, ".git", F_OK, 0) == 0;
  };
  std::size_t number = 0;
  std::string_view rest = whole_folder, known = rest.substr(0, 0);
  Descriptor open;  // the folder of this number, once one is new
  if (numbers_.empty()) {
    open = Descriptor(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    note(folders_.front(), open.number());
  }
  while (!rest.empty()) {
    std::string name(take_component(rest));
    if (name.empty()) break;
    const auto [at, is_new] = numbers_.try_emplace({number, std::move(name)}, folders_.size());
    if (is_new) {
      if (!open.ok())
        open = Descriptor(::open(known.empty() ? "/" : std::string(known).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      open = Descriptor(::openat(open.number(), at->first.second.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      Folder& folder = folders_.emplace_back(Folder{.above = number, .config = {}});
      if (open.ok()) note(folder, open.number());
    }
    number = at->second;
    known = std::string_view(whole_folder).substr(0, whole_folder.size() - rest.size());
  }
  last_ = {whole_folder, number};
  return number;
}

/// What the file in `folder` says; the folder's path ends in no slash.
Result<std::shared_ptr<const Config>> ConfigFinder::config_at(const std::string& folder) {
  const std::string candidate = fmt::format("{}/{}", folder, kFileName), shown = relative_path(candidate, ".");
  const std::string& path = shown.starts_with("../../..") ? candidate : shown;
  struct ::stat status{};
  const bool is_there = ::stat(path.c_str(), &status) == 0;
  const std::pair<std::uint64_t, std::uint64_t> file{status.st_dev, status.st_ino};
  if (const auto known = read_.find(file); is_there && known != read_.end())
    return std::make_shared<const Config>(config_of(path, known->second, true));
  Result<ConfigContent> read = ConfigReader(path, *rules_).read(kMaxFoundTomlBytes);
  if (!read) return read.error();
  const auto says = std::make_shared<const ConfigContent>(std::move(*read));
  if (is_there) read_.emplace(file, says);
  return std::make_shared<const Config>(config_of(path, says, true));
}

Result<std::shared_ptr<const Config>> ConfigFinder::config_for(const std::string& input) {
  std::string folder = whole_path(folder_of(input));
  std::vector<std::size_t> passed;
  std::shared_ptr<const Config> found;
  for (std::size_t number = number_of(folder);; number = folders_[number].above) {
    const Folder& at = folders_[number];
    if (at.config) {
      found = *at.config;
      break;
    }
    passed.push_back(number);
    if (folder == "/") folder.clear();
    if (at.has_config) {
      auto config = config_at(folder);
      if (!config) return config;
      found = std::move(*config);
      break;
    }
    if (at.has_git || number == 0) break;
    folder.resize(folder.rfind('/'));
  }
  for (const std::size_t number : passed) folders_[number].config = found;
  return found;
}

}  // namespace tensorlint::config
