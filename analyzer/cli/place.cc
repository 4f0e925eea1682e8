#include <fmt/format.h>

#include <functional>
#include <string>

#include "analyzer/cli/command.h"
#include "analyzer/cli/edited_model.h"
#include "analyzer/cli/inputs.h"
#include "analyzer/cli/model_data.h"
#include "analyzer/rules/placement/wording.h"
#include "base/escape.h"
#include "base/file_bytes.h"
#include "base/output.h"
#include "ir/readers/onnx/reader.h"
#include "passes/placement/explicit_transfers.h"
#include "passes/placement/runtime_cost.h"

namespace tensorlint::cli {
namespace {

struct PlaceOptions {
  std::string input, output;  ///< no output: only said what it would be
  bool copy_data = false;
  SettingsOptions settings;
};

std::string copies_text(const dataflow::Analysis& analysis, const placement::RuntimeCost& cost) {
  if (!cost.unknown.empty()) return "copies not counted: " + cost.unknown;
  const placement::CopyCost& most = cost.dearest(analysis.facts()).cost;
  const std::string bytes = rules::bytes_text(analysis, most.bytes);
  return fmt::format("{} {} a run, {}", most.copies, most.copies == 1 ? "copy" : "copies",
                     bytes.empty() ? "of unknown sizes" : bytes + " bytes");
}

/// Lets go of the pages of a piece of the file; what is not of the file stays.
void release(const onnx::FileBytes& file, std::string_view piece) {
  const std::string_view whole = file.bytes();
  if (std::less_equal<>()(whole.data(), piece.data()) &&
      std::less_equal<>()(piece.data() + piece.size(), whole.data() + whole.size()))
    file.release(piece);
}

/// Splits a model between the cpu and a device of a provider and writes it with every copy as a Transfer node.
int run_place(const PlaceOptions& options) {
  if (options.input == "-" || options.output == "-")
    return refuse("place reads and writes files, not standard streams");
  if (is_text_model(options.input)) return refuse("placing models in text is not built yet");
  const auto settings = settings_of(options.input, options.settings);
  if (!settings) return refuse(settings.error().message);
  const auto bytes = onnx::FileBytes::open(options.input);
  if (!bytes) return refuse(bytes.error().message);
  const Result<Model> model = read_onnx_bytes((*bytes)->bytes(), options.input, *bytes);
  if (!model) return refuse(fmt::format("{}: {}", options.input, model.error().message));

  if (const auto unknown = unknown_names(options.settings.declarations, *model); !unknown.empty())
    return refuse(fmt::format("{} has no value `{}` in its main graph", options.input, unknown.front()));
  const dataflow::Analysis analysis = dataflow::analyse(*model, settings->analysis);
  const Result<placement::TransferPlan> plan = placement::make_transfers_explicit(analysis, settings->placement);
  if (!plan) return refuse(fmt::format("{}: {}", options.input, plan.error().message));
  // The result is held against what `check --placement explicit` asks for before anybody gets it.
  const Result<EditedModel> placed = check_edits((*bytes)->bytes(), *model, plan->edits, settings->analysis);
  if (!placed) return refuse(fmt::format("{}: {}", options.input, placed.error().message));
  placement::PlacementOptions explicit_options = settings->placement;
  explicit_options.providers.clear();
  const placement::Placement placement = placement::place(*placed->analysis, explicit_options);
  const dataflow::NodeViolation* const violation = placed->analysis->fatal_violation();
  if (violation != nullptr || !placement.violations().empty()) {
    const NodeId node = violation != nullptr ? violation->node : placement.violations()[0].node;
    return refuse(fmt::format("{}: node `{}` would fail in the placed model; nothing is written", options.input,
                              escape_for_people(placed->model->label(node), 200)));
  }
  if (const auto changed = (*bytes)->check_unchanged()) return refuse(changed->message);

  const placement::RuntimeCost chosen = placement::runtime_cost(*placed->analysis, explicit_options),
                               usual = placement::runtime_cost(analysis, settings->placement);
  std::string text = fmt::format("{} nodes on {}, {} on cpu: {}\n", plan->on_accelerator, plan->accelerator,
                                 plan->on_cpu, copies_text(*placed->analysis, chosen));
  text += fmt::format("with every node that has a kernel there, as onnxruntime places them: {}\n",
                      copies_text(analysis, usual));
  if (!options.output.empty()) {
    const Result<std::string> copied =
        write_model(*placed->model, placed->edited.parts(), options.output, options.copy_data,
                    [&](std::string_view piece) { release(**bytes, piece); });
    if (!copied) return refuse(copied.error().message);
    text += *copied;
    text += fmt::format("wrote {} with {} Transfer{}\n", escape_for_people(options.output, 2000), plan->transfers,
                        plan->transfers == 1 ? "" : "s");
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
                 "provider whose kernels the nodes may use: cuda (default), or the file of a table");
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

const RegisterCommand<PlaceCommand> kRegister;

}  // namespace
}  // namespace tensorlint::cli
