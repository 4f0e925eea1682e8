#include "analyzer/cli/settings.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "analyzer/cli/placement_file.h"
#include "analyzer/cli/signature_file.h"
#include "analyzer/config/toml_file.h"
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

constexpr std::size_t kMaxProviderTable = std::size_t{1} << 20;  // built-in ones have 36 KB

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
void add_texts(const config::ConfigDeclarations& from, Declarations& to) {
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

}  // namespace

Result<Settings> Settings::make(const SettingsOptions& options) {
  Settings settings;
  settings.options_ = options;
  auto declared = parse_declarations(options.declarations, "");
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
    if (!unknown.empty()) return Error{rules::rule_names().unknown(unknown), {}};
  }
  std::error_code unknown;
  if (!options.source_root.empty() && !std::filesystem::is_directory(options.source_root, unknown))
    return Error{fmt::format("--source-root: {} is not a folder", options.source_root), {}};
  std::map<std::string_view, std::shared_ptr<const placement::ProviderTable>> providers;
  for (const std::string& name : options.providers) {
    std::shared_ptr<const placement::ProviderTable>& provider = providers[name];
    if (provider == nullptr) {
      auto read = provider_named(name);
      if (!read) return read.error();
      provider = std::move(*read);
    }
    settings.providers_.push_back(provider);
  }
  if (!options.signatures.empty()) {
    auto signatures = read_signature_file(options.signatures);
    if (!signatures) return signatures.error();
    settings.signatures_ = std::make_shared<const ops::Signatures>(std::move(*signatures));
  }
  for_each_word(options.select, [&](std::string_view word) { settings.of_command_line_.select(word); });
  for_each_word(options.ignore, [&](std::string_view word) { settings.of_command_line_.ignore(word); });
  config::Config files;  // those that options name; empty for none
  files.says = settings.says_nothing_;
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

std::optional<Error> Settings::check_declarations(const config::Config& config) const {
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
  return std::nullopt;
}

std::optional<Error> Settings::accept(const config::Config& config) {
  if (std::shared_ptr<const Ready>& ready = ready_[config.says.get()]; ready == nullptr) {
    if (auto error = check_declarations(config)) return error;
    ready = std::make_shared<const Ready>(make_ready(config.says));
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
    Result<Rules> read = read_placement_file(path, is_found);
    if (!read) return read.error();
    placement_files_.read[file] = read->empty() ? nullptr : std::make_shared<const Rules>(std::move(*read));
  }
  placement_files_.by_path[path] = placement_files_.read.at(file);
  return std::nullopt;
}

/// Rules that the command line allows and the configuration does not run all the same, to count what it hides.
void Settings::leave_out(rules::RuleSelection& selection) const {
  for (const rules::Rule* rule : rules::all_rules())
    if (of_command_line_.allows(rule->info()) && !selection.allows(rule->info()))
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

Settings::Ready Settings::make_ready(const std::shared_ptr<const config::ConfigContent>& says) const {
  Ready ready{.says = says, .declared = {}, .with_glob = {}, .selection = {}};
  const config::ConfigContent& file = *says;
  for (std::uint32_t i = 0; i < file.declarations.size(); ++i) {
    Declarations texts;
    add_texts(file.declarations[i], texts);
    // Each was parsed before.
    const dataflow::AnalysisOptions& declared = ready.declared.emplace_back(parse_declarations(texts, "").value());
    const bool says_something = !declared.values.empty() || !declared.default_device.empty();
    if (says_something && !file.declarations[i].path.empty()) ready.with_glob.push_back(i);
  }
  for (std::size_t i = 0; i < file.suppressions.size(); ++i)
    if (!file.suppressions[i].path.empty())
      ready.with_glob.push_back(static_cast<std::uint32_t>(file.declarations.size() + i));

  rules::RuleSelection& selection = ready.selection;
  selection.read_sources_below(options_.source_root);
  const auto& select = options_.select.empty() ? file.select : options_.select;
  for_each_word(select, [&](std::string_view word) { selection.select(word); });
  for (const auto* ignore : {&file.ignore, &options_.ignore})
    for_each_word(*ignore, [&](std::string_view word) { selection.ignore(word); });
  leave_out(selection);
  // ONNX requires sorted nodes and imported domains; onnxruntime sorts the nodes, which its own converter to half
  // precision leaves unsorted, and takes its newest version of a domain that it knows.
  if (options_.target == "onnx")
    for (const std::string_view rule : {"use-before-definition", "missing-opset-import"})
      selection.set_severity(rule, findings::Severity::kError);
  for (const auto& [rule, severity] : file.severities) selection.set_severity(rule, severity);
  return ready;
}

Settings::Applied Settings::apply(const Ready& ready, const std::vector<std::uint32_t>& matching) const {
  constexpr std::size_t kEntry = 256;  // of a declared value, beside texts of any length
  const config::ConfigContent& file = *ready.says;
  Applied applied;
  const auto applies = [&](const std::string& glob, std::size_t number) {
    return glob.empty() || std::ranges::binary_search(matching, number);
  };
  std::vector<std::uint32_t> rows;
  for (std::uint32_t i = 0; i < file.declarations.size(); ++i) {
    if (!applies(file.declarations[i].path, i)) continue;
    add_declarations(ready.declared[i], applied.analysis);
    if (!file.declarations[i].path.empty()) rows.push_back(i);
  }
  add_declarations(declared_, applied.analysis);
  applied.placement = placement_options(applied.analysis);
  pipeline::FilterOptions::Suppressions suppressions;
  for (std::size_t i = 0; i < file.suppressions.size(); ++i)
    if (applies(file.suppressions[i].path, file.declarations.size() + i))
      suppressions.push_back(file.suppressions[i].suppression);
  applied.memory =
      sizeof applied + 2 * matching.size() * sizeof(std::uint32_t) + suppressions.size() * sizeof(suppressions[0]);
  for (const auto& [name, declared] : applied.analysis.values) applied.memory += kEntry + 2 * name.size();
  applied.rows = std::make_shared<const std::vector<std::uint32_t>>(std::move(rows));
  if (!suppressions.empty())
    applied.suppressions = std::make_shared<const pipeline::FilterOptions::Suppressions>(std::move(suppressions));
  return applied;
}

std::shared_ptr<const Settings::Applied> Settings::applied(const Ready& ready,
                                                           std::vector<std::uint32_t> matching) const {
  constexpr std::size_t kMostMemory = std::size_t{4} << 20;  // each input may be one that other rows apply to
  const std::lock_guard lock(known_->mutex);
  std::pair key(&ready, std::move(matching));
  if (const auto found = known_->applied.find(key); found != known_->applied.end()) return found->second;
  auto made = std::make_shared<const Applied>(apply(ready, key.second));
  if (known_->memory + made->memory > kMostMemory) {
    known_->applied.clear();
    known_->memory = 0;
  }
  known_->memory += made->memory;
  known_->applied.emplace(std::move(key), made);
  return made;
}

Result<InputSettings> Settings::of(const std::string& input,
                                   const std::shared_ptr<const config::Config>& config) const {
  InputSettings settings;
  settings.config = config;
  const Ready& ready = *ready_.at(config != nullptr ? config->says.get() : says_nothing_.get());
  const config::ConfigContent& file = *ready.says;
  std::vector<std::uint32_t> matching;
  if (!ready.with_glob.empty()) {
    const std::string path = relative_path(input, config->folder);
    PathMatcher matcher(path);
    for (const std::uint32_t row : ready.with_glob) {
      const std::size_t declared = file.declarations.size();
      if (matcher.matches(row < declared ? file.declarations[row].path : file.suppressions[row - declared].path))
        matching.push_back(row);
    }
    if (matcher.is_spent())
      return Error{
          fmt::format("{}: its globs of `path` are too long for a path of {} bytes", config->path, path.size()), {}};
  }
  const std::shared_ptr<const Applied> applies = applied(ready, std::move(matching));
  settings.rows = applies->rows;
  settings.analysis = applies->analysis;
  settings.analysis.signatures = signatures_;
  settings.placement = applies->placement;
  settings.placement.providers = providers_;
  settings.filter.suppressions = applies->suppressions;
  const auto path_of = [&](const std::string& of_option,
                           std::string config::Config::* of_config) -> const std::string& {
    return of_option.empty() && config != nullptr ? (*config).*of_config : of_option;
  };
  const std::string& placement_file = path_of(options_.placement_file, &config::Config::placement_file);
  if (!placement_file.empty()) settings.placement.rules = placement_files_.by_path.at(placement_file);

  settings.selection = ready.selection;
  settings.fail_on = fail_on_ ? *fail_on_ : file.fail_on.value_or(settings.fail_on);
  settings.max_findings =
      options_.max_findings ? *options_.max_findings : file.max_findings.value_or(settings.max_findings);
  const std::string& baseline = path_of(options_.baseline, &config::Config::baseline);
  if (!baseline.empty() && !options_.keep_all) settings.filter.baseline = baselines_.by_path.at(baseline);
  settings.baseline_is_configured = options_.baseline.empty();
  if (options_.keep_all || settings.filter.baseline != nullptr || settings.filter.suppressions != nullptr)
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
