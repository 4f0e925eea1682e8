#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/cli/command.h"
#include "analyzer/cli/executed_model.h"
#include "analyzer/cli/inputs.h"
#include "analyzer/cli/other_program.h"
#include "analyzer/cli/recorder.h"
#include "analyzer/cli/time_limit.h"
#include "analyzer/findings/source_location.h"
#include "base/escape.h"

namespace tensorlint::cli {
namespace {

constexpr std::string_view kComparisonFormats[] = {"text", "json", "html"};

struct CompareOptions {
  std::string model, against, contract, format = "text", output, reproduce;
  std::vector<std::string> inputs;
  std::string python = "python3", seed, window, time_limit, threads;  ///< empty: not given
  bool is_isolated = false, is_chained = false, force = false;
  SettingsOptions settings;
};

/// One field of a line for the program that compares, which parts them at tabs.
std::string field(std::string text) {
  for (char& each : text)
    if (each == '\t' || each == '\n') each = ' ';
  return text;
}

/// Where the nodes were written, a line each: `NODE\tFILE\tLINE\tCOLUMN\tSOURCE`. FILE is empty where it is that of the
/// line before, and so is SOURCE: any number of nodes may stand in one line of a file with a long path.
std::string locations_of(const Model& model, const std::string& source_root) {
  findings::LocationResolver locations(model, source_root);
  std::string text;
  findings::SourceLocation before;
  for (const NodeId node : model.graph(GraphId::kMain).nodes) {
    findings::SourceLocation place = locations.find(node).place;
    if (!place.known()) continue;
    const std::string file = place.file == before.file ? "" : field(place.file);
    // A blank stands for no source.
    const std::string source = place.source == before.source ? "" : place.source.empty() ? " " : field(place.source);
    text +=
        fmt::format("{}\t{}\t{}\t{}\t{}\n", static_cast<std::uint32_t>(node), file, place.line, place.column, source);
    before = std::move(place);
  }
  return text;
}

/// What is known of the model before anything runs.
struct Known {
  std::string locations;      ///< where its nodes were written
  bool is_expensive = false;  ///< CheckedModel::is_expensive
};

/// Refuses a model with errors, unless they are ignored.
int learn(const std::string& path, const CompareOptions& options, Known& known) {
  const auto use = [&](const CheckedModel& checked) {
    known = {locations_of(checked.model, options.settings.source_root), checked.is_expensive};
  };
  if (!options.force) return refuse_errors(path, options.settings, use);
  if (const auto settings = Settings::make(options.settings); !settings) return refuse(settings.error().message);
  const Result<Model> model = load_model(path);
  if (!model) return refuse(fmt::format("{}: {}", path, model.error().message));
  use({*model});
  return kExitClean;
}

/// For the program that compares. `values`: the folder in which they are recorded.
Arguments comparison(const std::string& path, const std::string& values, const CompareOptions& options,
                     const TimeLimit& limit) {
  Arguments arguments({"compare", fmt::format("--model={}", path)});
  arguments.add_flag("text", is_text_model(path));
  arguments.add_each("inputs", options.inputs);
  arguments.add("seed", options.seed);
  arguments.add("against", values);
  arguments.add("engine", options.against == values ? "" : options.against);
  arguments.add("contract", options.contract);
  arguments.add("format", options.format);
  arguments.add("output", options.output);
  arguments.add("reproduce", options.reproduce);
  arguments.add("window", options.window);
  arguments.add("time-limit", limit.left());
  arguments.add("threads", options.threads);
  arguments.add_flag("chained", options.is_chained);
  return arguments;
}

/// Numbers and the contract are read by the program that compares, which is asked before another one runs for long.
int refuse_values(const std::string& path, const CompareOptions& options, const TimeLimit& limit) {
  return in_child([&] {
    Arguments arguments = comparison(path, options.against, options, limit);
    arguments.add_flag("only-options", true);
    return start_runtime(arguments.take());
  });
}

int start_comparison(const std::string& path, const std::string& values, const Known& known,
                     const CompareOptions& options, const TimeLimit& limit) {
  Arguments arguments = comparison(path, values, options, limit);
  arguments.add_flag("expensive", known.is_expensive);
  const Descriptor lines = memory_file(known.locations, Inherited::kYes);
  if (lines.ok()) arguments.add("locations", fmt::format("{}", lines.number()));
  return start_runtime(arguments.take());
}

/// Kernels on a device, which say nothing of what is between the model's outputs.
int compare_with_device(const std::string& path, const Known& known, CompareOptions options, const TimeLimit& limit) {
  if (options.seed.empty()) options.seed = "0";
  if (options.contract.empty()) options.contract = "tensorlint-cuda";
  Arguments run({"--command=compare", fmt::format("--model={}", path)});
  run.add_flag("text", is_text_model(path));
  run.add_flag("expensive", known.is_expensive);
  run.add_each("inputs", options.inputs);
  run.add("seed", options.seed);
  run.add("device", options.against);
  run.add("memory-limit", options.window);
  run.add("time-limit", limit.left());
  run.add("threads", options.threads);
  const Result<int> code = with_outputs(run.take(), [&](const std::string& outputs) {
    return in_child([&] { return start_comparison(path, outputs, known, options, limit); });
  });
  return code ? *code : refuse(code.error().message);
}

int compare_model(const CompareOptions& options) {
  const TimeLimit limit("compare", options.time_limit);
  if (options.is_isolated && options.is_chained) return refuse("--isolated and --chained exclude each other");
  if (std::ranges::find(kComparisonFormats, options.format) == std::end(kComparisonFormats))
    return refuse(unknown_format(options.format, kComparisonFormats));
  const bool is_live = options.against == "onnxruntime";
  const bool is_device = options.against.starts_with("cuda:") || options.against.starts_with("emulated:");
  std::error_code ignored;
  if (!is_live && !is_device && !std::filesystem::is_directory(options.against, ignored))
    return refuse(
        fmt::format("--against {}: expected `onnxruntime`, cuda:N, emulated:N or a folder with recorded values",
                    quoted_for_people(options.against)));
  if (!is_live && !is_device && !options.seed.empty())
    return refuse("--seed works with --against onnxruntime and devices: here the inputs are recorded");
  const std::string path = input_path(options.model);
  if (path == kStandardInput) return refuse("compare reads the model from a file, not from standard input");
  if (is_live && is_text_model(path)) return refuse("onnxruntime reads binary models, not ONNX text");
  if (const int refused = refuse_values(path, options, limit); refused != kExitClean) return refused;
  Known known;
  const int refused = limit.within([&] { return learn(path, options, known); });
  if (refused != kExitClean) return refused;
  if (is_device) return compare_with_device(path, known, options, limit);
  if (!is_live) return start_comparison(path, options.against, known, options, limit);
  const Result<int> code =
      with_recorded_values({options.python, path, options.seed, options.inputs}, limit, [&](const std::string& values) {
        CompareOptions given = options;
        given.inputs.clear();  // they are recorded
        given.seed.clear();
        return in_child([&] { return start_comparison(path, values, known, given, limit); });
      });
  return code ? *code : refuse(code.error().message);
}

class Compare : public Command {
 public:
  Compare() : Command("compare", "find the first node that diverges, and say whether rounding explains it") {}

  void add_options(Options& options) override {
    options.argument("MODEL", options_.model, "the model; refused while `check` reports errors in it");
    options.text(
        "--against", options_.against, "onnxruntime|cuda:N|emulated:N|DIR",
        "onnxruntime as Python's package, our kernels, or what was recorded: .npz, .npy or .pb files by name of value");
    options.texts("--inputs", options_.inputs, "DIR|NAME=FILE", "inputs that are not among the recorded values");
    options.text("--seed", options_.seed, "N",
                 "seed of the inputs that are not given, with --against onnxruntime or a device (default: 0)");
    options.text("--python", options_.python, "PROGRAM", "Python program for --against onnxruntime (default: python3)");
    options.text("--contract", options_.contract, "NAME|FILE",
                 "what the engine promises about rounding (default: onnxruntime-cpu)");
    options.flag("--isolated", options_.is_isolated, "each node reads what was recorded (default)");
    options.flag("--chained", options_.is_chained, "each node reads what the reference computed, with its noise");
    options.text("--window", options_.window, "BYTES", "limit on the memory of all tensors (default: 4294967296)");
    options.text("--format", options_.format, "text|json|html", "format of the report (default: text)");
    options.text("-o,--output", options_.output, "FILE", "write the report to this file");
    options.text("--reproduce", options_.reproduce, "DIR",
                 "write the node of the first bug there as a model by itself, with its inputs");
    options.text("--time-limit", options_.time_limit, "S", "seconds after which all of it is stopped (default: none)");
    options.text("--threads", options_.threads, "N", "number of threads (default: those of the machine, at most 8)");
    add_source_root(options, options_.settings);
    options.flag("--force", options_.force, "compare a model with errors as far as it goes");
    options.text("--config", options_.settings.config, "FILE", "configuration of the check that comes first");
  }

  int run() override { return compare_model(options_); }

 private:
  CompareOptions options_;
};

const RegisterCommand<Compare> kRegistered;

}  // namespace
}  // namespace tensorlint::cli
