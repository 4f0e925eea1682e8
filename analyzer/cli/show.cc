#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/cli/command.h"
#include "analyzer/cli/inputs.h"
#include "analyzer/reports/contract.h"
#include "analyzer/reports/show.h"
#include "base/escape.h"
#include "base/output.h"

namespace tensorlint::cli {
namespace {

using passes::Pass;

constexpr std::string_view kShowFormats[] = {"text", "json"}, kPlannedFormats[] = {"html"};

struct ShowOptions {
  std::vector<std::string> models;  ///< JSON of several models: one document a line
  std::string format = "text";
  SettingsOptions settings;
  std::string node, module;  ///< globs: only nodes that match; empty for all
  bool contract = false;     ///< what the model requires of its inputs, too
  bool all_symbols = false;  ///< JSON: names for extents that nothing names, so that equal ones can be recognised
};

bool matches_any(const Model& model, const reports::ShowFilter& filter) {
  findings::LocationResolver locations(model);
  for (std::size_t n = 0; n < model.nodes.size(); ++n)
    if (filter.matches(model, static_cast<NodeId>(n), locations)) return true;
  return false;
}

std::string no_match(const reports::ShowFilter& filter) {
  if (filter.module.empty()) return fmt::format("no node matches `{}`", filter.node);
  if (filter.node.empty()) return fmt::format("no node is in a module that matches `{}`", filter.module);
  return fmt::format("no node matches `{}` in a module that matches `{}`", filter.node, filter.module);
}

/// Writes one model below its heading; what is wrong with it otherwise.
std::optional<Error> show_one(const std::string& argument, const std::string& heading, const ShowOptions& options) {
  const std::string path = input_path(argument);
  const auto settings = settings_of(path, options.settings);
  if (!settings) return settings.error();
  Result<pipeline::Pipeline> pipeline = load(path, *settings, options.settings.declarations);
  if (!pipeline) return pipeline.error();
  const reports::ShowFilter filter{.node = options.node, .module = options.module};
  if (filter.any() && !matches_any(pipeline->model(), filter))
    return Error{fmt::format("{}: {}", path, no_match(filter)), {}};
  const passes::PassResults& known = pipeline->run({Pass::kAnalysis, Pass::kPlacement});
  std::optional<contract::Contract> contract;
  if (options.contract && !contract::certain_failure(known.analysis()))
    contract = contract::find_contract(known.analysis(), known.options().analysis);
  std::optional<Error> failed;
  const auto write = [&](std::string_view part) {
    if (!failed) failed = write_stdout(part);
  };
  if (options.format != "json") {
    write(heading);
    reports::show_text(known.analysis(), known.placement(), filter, write);
    std::string text;
    if (options.contract) text += "\ncontract\n";
    if (contract) text += reports::contract_text(known.analysis(), *contract, options.settings.source_root);
    if (options.contract && !contract) text += "none: the model fails for all inputs\n";
    write(text);
    return failed;
  }
  pipeline->run({Pass::kLosses});
  reports::show_json(known.analysis(), known.placement(), known.losses(),
                     {.one_line = options.models.size() > 1,
                      .all_symbols = options.all_symbols,
                      .filter = filter,
                      .contract = contract ? &*contract : nullptr},
                     write);
  return failed;
}

int run_show(const ShowOptions& options) {
  if (std::ranges::find(kShowFormats, options.format) == std::end(kShowFormats))
    return refuse(unknown_format(options.format, kShowFormats, kPlannedFormats));
  int code = kExitClean;
  for (const std::string& path : options.models) {
    const std::string gap = &path == options.models.data() ? "" : "\n";
    const std::string heading = options.models.size() > 1 && options.format == "text"
                                    ? fmt::format("{}== {}\n", gap, escape_for_display(path, 2000))
                                    : "";
    if (const auto error = show_one(path, heading, options)) code = refuse(error->message);
  }
  return code;
}

class Show : public Command {
 public:
  Show() : Command("show", "print a model with dtype, shape and range of every value") {}

  void add_options(Options& options) override {
    options.argument("MODEL", options_.models,
                     "models, or - for standard input; JSON of several is one document a line");
    options.text("--format", options_.format, "text|json", "text (default) or json");
    add_placement_file(options, options_.settings);
    add_model_settings(options, options_.settings);
    options.text("--node", options_.node, "GLOB", "only nodes whose name matches, `*` for any text");
    options.text("--module", options_.module, "GLOB",
                 "only nodes in a module that matches: 'encoder.layers.0', '*.attention'");
    options.flag("--contract", options_.contract, "what the model requires of its inputs, too: see `contract`");
    options.flag("--all-symbols", options_.all_symbols, "JSON: distinguish unnamed extents: \"?7\" instead of null");
  }

  int run() override { return run_show(options_); }

 private:
  ShowOptions options_;
};

const RegisterCommand<Show> kRegisterShow;

}  // namespace
}  // namespace tensorlint::cli
