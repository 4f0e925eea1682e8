#include "analyzer/cli/settings.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "analyzer/cli/placement_file.h"
#include "analyzer/cli/signature_file.h"
#include "analyzer/config/toml_file.h"
#include "base/did_you_mean.h"
#include "base/escape.h"
#include "base/glob.h"
#include "base/output.h"
#include "base/paths.h"
#include "base/small_file.h"

namespace tensorlint::cli {
namespace {

/// Findings kept of one rule where all of them are compared or suppressed: enough for any model that people look at.
constexpr std::size_t kAllFindings = 100'000;

/// Configuration files that are named: few, where each of many folders has its own.
constexpr std::size_t kMaxAnnounced = 10;

/// `a,b` given once or in several options.
template <typename Visit>
void for_each_word(const std::vector<std::string>& texts, Visit visit) {
  for (const std::string& text : texts) {
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t comma = rest.find(',');
      if (const std::string_view word = rest.substr(0, comma); !word.empty()) visit(word);
      rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    }
  }
}

constexpr std::size_t kMaxProviderTable = std::size_t{4} << 20;

Result<std::shared_ptr<const placement::ProviderTable>> provider_named(const std::string& name) {
  if (auto known = placement::built_in_provider(name)) return known;
  const auto text = read_small_file(name, kMaxProviderTable);
  if (!text)
    return Error{fmt::format("--provider: there is no provider `{}`, and no table of that name: {}; there are {}", name,
                             text.error().message, placement::built_in_providers()),
                 {}};
  auto table = placement::parse_provider(*text, name);
  if (!table) return table.error();
  return std::make_shared<const placement::ProviderTable>(std::move(*table));
}

std::string assigned(const config::ConfigEntry& entry) {
  return entry.name.empty() ? entry.text : fmt::format("{}={}", entry.name, entry.text);
}

/// What the options of the same names would say.
void add_declarations(const config::ConfigDeclarations& from, Declarations& to) {
  for (const config::ConfigEntry& entry : from.inputs) to.inputs.push_back(assigned(entry));
  for (const config::ConfigEntry& entry : from.ranges) to.ranges.push_back(assigned(entry));
  if (from.device) to.devices.push_back(assigned(*from.device));
  for (const config::ConfigEntry& entry : from.devices) to.devices.push_back(assigned(entry));
}

/// Device and inode; zeros where there is no file, which is then said when it is read.
std::pair<std::uint64_t, std::uint64_t> file_at(const std::string& path) {
  struct ::stat status{};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

Result<Settings> Settings::make(const SettingsOptions& options) {
  Settings settings;
  settings.options_ = options;
  auto declared = parse_declarations(options.declarations);
  if (!declared) return declared.error();
  settings.declared_ = std::move(*declared);
  if (options.fail_on) {
    settings.fail_on_ = findings::FailOn::named(*options.fail_on);
    if (!settings.fail_on_)
      return Error{fmt::format("--fail-on takes error, warning, info or never, not `{}`", *options.fail_on), {}};
  }
  if (options.target != "onnx" && options.target != "onnxruntime")
    return Error{fmt::format("--target takes onnx or onnxruntime, not `{}`", options.target), {}};
  if (!options.select.empty()) {
    bool any = false;
    for_each_word(options.select, [&](std::string_view) { any = true; });
    if (!any) return Error{"--select is empty", {}};
  }
  for (const auto* words : {&options.select, &options.ignore}) {
    std::string unknown;
    for_each_word(*words, [&](std::string_view word) {
      if (unknown.empty() && rules::rule_names().codes_of(word).empty()) unknown = word;
    });
    if (!unknown.empty()) {
      const std::string meant = did_you_mean(unknown, rules::rule_names().words());
      return Error{
          fmt::format("no rule is called `{}`{}", unknown, meant.empty() ? "; `tensorlint rules` lists them" : meant),
          {}};
    }
  }
  std::error_code unknown;
  if (!options.source_root.empty() && !std::filesystem::is_directory(options.source_root, unknown))
    return Error{fmt::format("--source-root: {} is not a folder", options.source_root), {}};
  for (const std::string& name : options.providers) {
    auto provider = provider_named(name);
    if (!provider) return provider.error();
    settings.providers_.push_back(std::move(*provider));
  }
  if (!options.signatures.empty()) {
    auto signatures = read_signature_file(options.signatures);
    if (!signatures) return signatures.error();
    settings.signatures_ = std::make_shared<const ops::Signatures>(std::move(*signatures));
  }
  config::Config files;  // those that options name; empty for none
  files.baseline = options.baseline;
  files.placement_file = options.placement_file;
  if (auto error = settings.accept(files)) return std::move(*error);
  if (!options.config.empty()) {
    auto config = config::read_config(options.config, rules::rule_names());
    if (!config) return config.error();
    settings.given_ = std::make_shared<const config::Config>(std::move(*config));
    if (auto error = settings.accept(*settings.given_)) return std::move(*error);
  }
  return settings;
}

std::optional<Error> Settings::accept(const config::Config& config) {
  const auto check = [&](const config::ConfigEntry& entry, std::vector<std::string> Declarations::* list,
                         std::string_view form) -> std::optional<Error> {
    Declarations one;
    (one.*list).push_back(assigned(entry));
    if (parse_declarations(one)) return std::nullopt;
    return Error{fmt::format("{}:{}: `{}` is not of the form {}", config.path, entry.line, entry.text, form), {}};
  };
  for (const config::ConfigDeclarations& declarations : config.says->declarations) {
    for (const config::ConfigEntry& entry : declarations.inputs)
      if (auto error = check(entry, &Declarations::inputs, "dtype[dims]")) return error;
    for (const config::ConfigEntry& entry : declarations.ranges)
      if (auto error = check(entry, &Declarations::ranges, "lo:hi with lo <= hi")) return error;
    for (const config::ConfigEntry& entry : declarations.devices)
      if (auto error = check(entry, &Declarations::devices, "of a device, such as cpu or cuda:0")) return error;
    if (declarations.device)
      if (auto error = check(*declarations.device, &Declarations::devices, "of a device, such as cpu or cuda:0"))
        return error;
  }
  if (!config.baseline.empty() && !options_.keep_all)
    if (auto error = read_baseline(config.baseline, config.is_found)) return error;
  if (!config.placement_file.empty()) return read_placement(config.placement_file, config.is_found);
  return std::nullopt;
}

std::optional<Error> Settings::read_baseline(const std::string& path, bool is_found) {
  if (baselines_.by_path.contains(path)) return std::nullopt;
  const auto file = file_at(path);
  if (const auto known = baselines_.read.find(file); known != baselines_.read.end()) {
    baselines_.by_path[path] = std::make_shared<const config::Baseline>(known->second->at(path));
    return std::nullopt;
  }
  auto read = config::Baseline::read(path, is_found ? config::Baseline::kMaxFoundBytes : config::Baseline::kMaxBytes);
  if (!read) {
    std::error_code unknown;
    const auto bytes = is_found ? std::filesystem::file_size(path, unknown) : 0;
    return !unknown && bytes > config::Baseline::kMaxFoundBytes
               ? Error{read.error().message + ": a larger one is given with --baseline", {}}
               : read.error();
  }
  baselines_.by_path[path] = baselines_.read[file] = std::make_shared<const config::Baseline>(std::move(*read));
  return std::nullopt;
}

std::optional<Error> Settings::read_placement(const std::string& path, bool is_found) {
  if (placement_files_.by_path.contains(path)) return std::nullopt;
  const auto file = file_at(path);
  const auto known = placement_files_.read.find(file);
  if (known == placement_files_.read.end()) {
    using Rules = std::vector<placement::PlacementRule>;
    Result<Rules> read = read_placement_file(path, is_found ? config::kMaxFoundTomlBytes : config::kMaxTomlBytes);
    if (!read) return read.error();
    placement_files_.read[file] = read->empty() ? nullptr : std::make_shared<const Rules>(std::move(*read));
  }
  placement_files_.by_path[path] = placement_files_.read.at(file);
  return std::nullopt;
}

/// Rules that the command line allows and the configuration does not run all the same, to count what it hides.
void Settings::leave_out(rules::RuleSelection& selection) const {
  rules::RuleSelection command_line;
  for_each_word(options_.select, [&](std::string_view word) { command_line.select(word); });
  for_each_word(options_.ignore, [&](std::string_view word) { command_line.ignore(word); });
  for (const rules::Rule* rule : rules::all_rules())
    if (command_line.allows(rule->info()) && !selection.allows(rule->info()))
      selection.count_left_out(rule->info().code);
}

Result<std::shared_ptr<const config::Config>> Settings::config_for(const std::string& input) {
  if (given_ != nullptr) return given_;
  auto config = finder_.config_for(input);
  // Inputs of one folder have one configuration.
  if (config && *config != nullptr && !accepted_.contains(*config)) {
    if (auto error = accept(**config)) return std::move(*error);
    announce(**config);
    accepted_.insert(*config);
  }
  return config;
}

void Settings::announce(const config::Config& config) {
  if (options_.quiet || !announced_.insert(config.path).second || announced_.size() > kMaxAnnounced + 1) return;
  write_stderr(announced_.size() > kMaxAnnounced
                   ? std::string("tensorlint: more configuration files are used\n")
                   : fmt::format("tensorlint: using {}\n", escape_for_display(config.path, 2000)));
}

std::shared_ptr<const Settings::Declared> Settings::declared_by(const std::shared_ptr<const config::Config>& config,
                                                                std::vector<std::size_t> parts) const {
  const std::lock_guard lock(known_->mutex);
  if (const auto& last = known_->last; last != nullptr && last->config == config && last->parts == parts) return last;
  Declared declared;
  Declarations declarations;
  for (const std::size_t i : parts) {
    const config::ConfigDeclarations& part = config->says->declarations[i];
    add_declarations(part, declarations);
    if (part.path.empty()) continue;
    for (const auto* entries : {&part.inputs, &part.ranges, &part.devices})
      for (const config::ConfigEntry& entry : *entries) declared.names.push_back({entry.name, entry.line});
  }
  append(declarations.inputs, options_.declarations.inputs);
  append(declarations.ranges, options_.declarations.ranges);
  append(declarations.devices, options_.declarations.devices);
  // Every part was parsed before.
  declared.analysis = parse_declarations(declarations).value();
  declared.placement = placement_options(declared.analysis);
  declared.config = config;
  declared.parts = std::move(parts);
  return known_->last = std::make_shared<const Declared>(std::move(declared));
}

InputSettings Settings::of(const std::string& input, const std::shared_ptr<const config::Config>& config) const {
  InputSettings settings;
  settings.config = config;
  const config::Config none;
  const config::Config& at = config != nullptr ? *config : none;
  const config::ConfigContent& file = *at.says;
  const std::string path = config != nullptr ? relative_path(input, at.folder) : input;

  std::vector<std::size_t> parts;
  for (std::size_t i = 0; i < file.declarations.size(); ++i)
    if (matches_path(file.declarations[i].path, path)) parts.push_back(i);
  const std::shared_ptr<const Declared> declared = declared_by(config, std::move(parts));
  settings.names = declared->names;
  settings.analysis = declared->analysis;
  settings.analysis.signatures = signatures_;
  settings.placement = declared->placement;
  settings.placement.providers = providers_;
  const std::string& placement_file = options_.placement_file.empty() ? at.placement_file : options_.placement_file;
  if (!placement_file.empty()) settings.placement.rules = placement_files_.by_path.at(placement_file);

  settings.selection.read_sources_below(options_.source_root);
  const auto& select = options_.select.empty() ? file.select : options_.select;
  for_each_word(select, [&](std::string_view word) { settings.selection.select(word); });
  for (const auto* ignore : {&file.ignore, &options_.ignore})
    for_each_word(*ignore, [&](std::string_view word) { settings.selection.ignore(word); });
  leave_out(settings.selection);
  // ONNX requires sorted nodes and imported domains; onnxruntime sorts the nodes, which its own converter to half
  // precision leaves unsorted, and takes its newest version of a domain that it knows.
  if (options_.target == "onnx")
    for (const std::string_view rule : {"use-before-definition", "missing-opset-import"})
      settings.selection.set_severity(rule, findings::Severity::kError);
  for (const auto& [rule, severity] : file.severities) settings.selection.set_severity(rule, severity);
  for (const auto& [glob, suppression] : file.suppressions) {
    if (!matches_path(glob, path)) continue;
    settings.filter.suppressions.push_back(suppression);
  }

  settings.fail_on = fail_on_ ? *fail_on_ : file.fail_on.value_or(settings.fail_on);
  settings.max_findings =
      options_.max_findings ? *options_.max_findings : file.max_findings.value_or(settings.max_findings);
  const std::string& baseline = options_.baseline.empty() ? at.baseline : options_.baseline;
  if (!baseline.empty() && !options_.keep_all) settings.filter.baseline = baselines_.by_path.at(baseline);
  settings.baseline_is_configured = options_.baseline.empty();
  if (options_.keep_all || settings.filter.baseline != nullptr || !settings.filter.suppressions.empty())
    settings.selection.keep(kAllFindings);
  return settings;
}

Result<InputSettings> settings_of(const std::string& input, const SettingsOptions& options) {
  auto settings = Settings::make(options);
  if (!settings) return settings.error();
  const auto config = settings->config_for(input);
  if (!config) return config.error();
  return settings->of(input, *config);
}

}  // namespace tensorlint::cli
