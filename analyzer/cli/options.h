#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/cli/settings.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tensorlint::cli {

/// The arguments and options of one command, in the order of its help text. Names are "--option" or "-o,--option";
/// `kind` is what the help text calls the value.
class Options {
 public:
  explicit Options(CLI::App& app) : app_(app) {}

  /// A required argument without a name.
  void argument(const char* name, std::string& value, const std::string& help);
  void argument(const char* name, std::vector<std::string>& values, const std::string& help);
  void flag(const char* names, bool& value, const std::string& help);
  void text(const char* names, std::string& value, const char* kind, const std::string& help);
  void text(const char* names, std::optional<std::string>& value, const char* kind, const std::string& help);
  /// May be given several times.
  void texts(const char* names, std::vector<std::string>& values, const char* kind, const std::string& help);
  void number(const char* names, std::optional<std::size_t>& value, const char* kind, const std::string& help);
  void number(const char* names, unsigned& value, const char* kind, const std::string& help);

 private:
  CLI::App& app_;
};

/// What a command that reads models takes: configuration, signatures, declarations of inputs, ranges and devices.
void add_model_settings(Options& options, SettingsOptions& settings);
void add_placement_file(Options& options, SettingsOptions& settings);
void add_source_root(Options& options, SettingsOptions& settings);
/// `--provider`, which commands use differently: `help` says for what.
void add_provider(Options& options, SettingsOptions& settings, const std::string& help);
/// `--copy-data`; `where`: "to the folder of OUT".
void add_copy_data(Options& options, bool& copy_data, const std::string& where);

}  // namespace tensorlint::cli
