#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/cli/command.h"
#include "analyzer/cli/inputs.h"
#include "analyzer/reports/contract.h"
#include "base/escape.h"
#include "base/output.h"
#include "passes/contract/contract.h"

namespace tensorlint::cli {
namespace {

constexpr std::string_view kContractFormats[] = {"text", "json"};

struct ContractOptions {
  std::string model, format = "text";
  SettingsOptions settings;
};

class ContractCommand : public Command {
 public:
  ContractCommand() : Command("contract", "print what a model requires of its inputs") {}

  void add_options(Options& options) override {
    options.argument("MODEL", options_.model, "a model, or - for standard input");
    options.text("--format", options_.format, "text|json", "text (default) or json");
    add_source_root(options, options_.settings);
    add_model_settings(options, options_.settings);
  }

  int run() override {
    if (std::ranges::find(kContractFormats, options_.format) == std::end(kContractFormats))
      return refuse(unknown_format(options_.format, kContractFormats));
    const std::string path = input_path(options_.model);
    const auto settings = settings_of(path, options_.settings);
    if (!settings) return refuse(settings.error().message);
    Result<pipeline::Pipeline> pipeline = load(path, *settings, options_.settings.declarations);
    if (!pipeline) return refuse(pipeline.error().message);
    const passes::PassResults& known = pipeline->run({passes::Pass::kAnalysis});
    if (const std::optional<NodeId> failing = contract::certain_failure(known.analysis()))
      return refuse(fmt::format("{} fails for all inputs at node `{}`: `tensorlint check` says why", path,
                                *failing == NodeId::kNone ? "" : known.model().label(*failing)));
    const contract::Contract contract = contract::find_contract(known.analysis(), known.options().analysis);
    const auto report = options_.format == "json" ? reports::contract_json : reports::contract_text;
    const auto error = write_stdout(report(known.analysis(), contract, options_.settings.source_root));
    return error ? refuse(error->message) : kExitClean;
  }

 private:
  ContractOptions options_;
};

const RegisterCommand<ContractCommand> kRegisterContractCommand;

}  // namespace
}  // namespace tensorlint::cli
