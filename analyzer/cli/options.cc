#include "analyzer/cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

namespace tensorlint::cli {
namespace {

const CLI::Validator& whole_number() {
  static const CLI::Validator validator(
      [](const std::string& text) {
        const bool good =
            !text.empty() && text.size() <= 9 && text.find_first_not_of("0123456789") == std::string::npos;
        return good ? std::string() : fmt::format("expected a number from 0 to 999999999, not `{}`", text);
      },
      "");
  return validator;
}

}  // namespace

void Options::argument(const char* name, std::string& value, const std::string& help) {
  app_.add_option(name, value, help)->required()->type_name("");
}

void Options::argument(const char* name, std::vector<std::string>& values, const std::string& help) {
  app_.add_option(name, values, help)->required()->type_name("");
}

void Options::flag(const char* names, bool& value, const std::string& help) { app_.add_flag(names, value, help); }

void Options::text(const char* names, std::string& value, const char* kind, const std::string& help) {
  app_.add_option(names, value, help)->type_name(kind);
}

void Options::text(const char* names, std::optional<std::string>& value, const char* kind, const std::string& help) {
  app_.add_option(names, value, help)->type_name(kind);
}

void Options::texts(const char* names, std::vector<std::string>& values, const char* kind, const std::string& help) {
  // One value each time, so that an argument after it is not taken for another one.
  app_.add_option(names, values, help)->allow_extra_args(false)->type_name(kind);
}

void Options::number(const char* names, std::optional<std::size_t>& value, const char* kind, const std::string& help) {
  app_.add_option(names, value, help)->check(whole_number())->type_name(kind);
}

void Options::number(const char* names, unsigned& value, const char* kind, const std::string& help) {
  app_.add_option(names, value, help)->check(whole_number())->type_name(kind);
}

void add_model_settings(Options& options, SettingsOptions& settings) {
  Declarations& declarations = settings.declarations;
  options.text("--config", settings.config, "FILE",
               "configuration (default: the nearest tensorlint.toml at or above the model)");
  options.text("--signatures", settings.signatures, "FILE", "TOML file with the signatures of custom operators");
  options.texts("--input", declarations.inputs, "NAME=TYPE", "type of an input: 'ids=int64[B, 512]', 'x=float32'");
  options.texts("--range", declarations.ranges, "NAME=lo:hi", "values of an input: labels=0:9, p=0:");
  options.texts("--device", declarations.devices, "[VALUE=]NAME",
                "device of all tensors, or of one value: cuda:0, mask=cpu");
}

void add_placement_file(Options& options, SettingsOptions& settings) {
  options.text("--placement-file", settings.placement_file, "FILE", "TOML file with the devices of nodes and values");
}

void add_source_root(Options& options, SettingsOptions& settings) {
  options.text("--source-root", settings.source_root, "DIR",
               "folder of the programs that the models were exported from, if neither the working folder nor theirs");
}

void add_provider(Options& options, SettingsOptions& settings, const std::string& help) {
  options.texts("--provider", settings.providers, "NAME|FILE", help);
}

void add_copy_data(Options& options, bool& copy_data, const std::string& where) {
  options.flag("--copy-data", copy_data, "copy the files that hold the model's weights " + where);
}

}  // namespace tensorlint::cli
