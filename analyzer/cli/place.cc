#include <fmt/format.h>

#include <string>
#include <utility>

#include "analyzer/cli/command.h"
#include "analyzer/cli/edited_model.h"
#include "analyzer/cli/inputs.h"
#include "analyzer/cli/model_data.h"
#include "analyzer/rules/placement/wording.h"
#include "base/escape.h"
#include "base/file_bytes.h"
#include "base/output.h"
#include "base/text.h"
#include "ir/readers/onnx/reader.h"
#include "passes/placement/explicit_transfers.h"
#include "passes/placement/runtime_cost.h"
#include "passes/results/pass_results.h"

namespace tensorlint::cli {
namespace {

using passes::Pass;

struct PlaceOptions {
  std::string input, output;  ///< no output: only said what it would be
  bool copy_data = false;
  SettingsOptions settings;
};

std::string copies_text(const dataflow::Analysis& analysis, const placement::RuntimeCost& cost) {
  constexpr std::size_t kMostOfText = 400;
  if (!cost.unknown.empty()) return "copies not counted: " + escape_for_display(cost.unknown, kMostOfText);
  const placement::CopyCost& most = cost.dearest(analysis.facts()).cost;
  const std::string bytes = escape_for_display(rules::bytes_text(analysis, most.bytes), kMostOfText);
  return fmt::format("{} a run, {}", counted(most.copies, "copy", "copies"),
                     bytes.empty() ? "of unknown sizes" : bytes + " bytes");
}

/// Splits a model between the cpu and a device of a provider and writes it with every copy as a Transfer node.
int run_place(const PlaceOptions& options) {
  if (options.input == "-" || options.output == "-")
    return refuse("place reads and writes files, not standard streams");
  if (is_text_model(options.input)) return refuse("placing models in text is not built yet");
  const auto settings = settings_of(options.input, options.settings);
  if (!settings) return refuse(settings.error().message);
  const auto bytes = FileBytes::open(options.input);
  if (!bytes) return refuse(bytes.error().message);
  Result<Model> read = read_onnx_bytes((*bytes)->bytes(), options.input, *bytes, {}, bytes->get());
  if (!read) return refuse(fmt::format("{}: {}", options.input, read.error().message));
  if (const auto unknown = check_names(options.settings.declarations, *read, options.input))
    return refuse(unknown->message);
  // One allowance for all that is found out about one input: before and after it is placed, with both costs.
  pipeline::Options usual_options = *settings;
  usual_options.analysis.meter = dataflow::meter_of(*read);
  pipeline::Options explicit_options = usual_options;
  explicit_options.placement.providers.clear();
  pipeline::Pipeline pipeline(std::move(*read), std::move(usual_options));
  const dataflow::Analysis& analysis = pipeline.run({Pass::kAnalysis}).analysis();
  const Result<placement::TransferPlan> plan = placement::make_transfers_explicit(analysis, settings->placement);
  if (!plan) return refuse(fmt::format("{}: {}", options.input, plan.error().message));
  // The result is held against what `check --placement explicit` asks for before anybody gets it.
  Result<EditedModel> placed =
      edit_model((*bytes)->bytes(), pipeline.model(), plan->edits, explicit_options, bytes->get());
  if (!placed) return refuse(fmt::format("{}: {}", options.input, placed.error().message));
  const passes::PassResults& known = placed->pipeline.run({Pass::kAnalysis, Pass::kPlacement});
  const dataflow::NodeViolation* const violation = known.analysis().fatal_violation();
  if (violation != nullptr || !known.placement().violations().empty()) {
    const NodeId node = violation != nullptr ? violation->node : known.placement().violations()[0].node;
    return refuse(fmt::format("{}: node `{}` would fail in the placed model; nothing is written", options.input,
                              escape_for_display(placed->model().label(node), 200)));
  }
  if (const auto changed = (*bytes)->check_unchanged()) return refuse(changed->message);

  const placement::RuntimeCost& chosen = placed->pipeline.run({Pass::kRuntimeCost}).runtime_cost();
  const placement::RuntimeCost& usual = pipeline.run({Pass::kRuntimeCost}).runtime_cost();
  std::string text = fmt::format("{} nodes on {}, {} on cpu: {}\n", plan->on_accelerator, plan->accelerator,
                                 plan->on_cpu, copies_text(known.analysis(), chosen));
  text += fmt::format("with every node that has a kernel there, as onnxruntime places them: {}\n",
                      copies_text(analysis, usual));
  if (!options.output.empty()) {
    const Result<std::string> copied =
        write_model(placed->model(), placed->edited.parts(), options.output, options.copy_data,
                    [&](std::string_view piece) { (*bytes)->release(piece); });
    if (!copied) return refuse(copied.error().message);
    text += *copied;
    text += fmt::format("wrote {} with {} Transfer{}\n", escape_for_display(options.output, 2000), plan->transfers,
                        plural(plan->transfers));
  }
  const auto error = write_stdout(text);
  return error ? refuse(error->message) : kExitClean;
}

class PlaceCommand : public Command {
 public:
  PlaceCommand() : Command("place", "split a model between CPU and accelerator, with a node for every copy") {}

  void add_options(Options& options) override {
    options.argument("INPUT", options_.input, "an .onnx file");
    options.text("-o", options_.output, "OUT", "write the placed model to this file; without it, only print the cost");
    add_copy_data(options, options_.copy_data, "to the folder of OUT");
    add_provider(options, options_.settings,
                 "provider whose kernels the nodes may use: cuda (default), tensorlint-cuda, or the file of a table");
    add_placement_file(options, options_.settings);
    add_model_settings(options, options_.settings);
  }

  int run() override {
    if (options_.settings.providers.empty()) options_.settings.providers.emplace_back("cuda");
    return run_place(options_);
  }

 private:
  PlaceOptions options_;
};

const RegisterCommand<PlaceCommand> kRegisterPlaceCommand;

}  // namespace
}  // namespace tensorlint::cli
