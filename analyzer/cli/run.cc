#include <fmt/format.h>

#include <string>
#include <vector>

#include "analyzer/cli/command.h"
#include "analyzer/cli/executed_model.h"
#include "analyzer/cli/inputs.h"
#include "analyzer/cli/other_program.h"
#include "analyzer/cli/time_limit.h"

namespace tensorlint::cli {
namespace {

struct RunOptions {
  std::string model;
  std::vector<std::string> inputs, dump;
  std::string expect, outputs, device = "cpu", sides, products, cublaslt;
  std::string seed, memory_limit, time_limit, rtol, atol, threads, repeat;  ///< empty: not given
  bool check_facts = false, gradient = false, timings = false, force = false;
  SettingsOptions settings;
};

std::vector<std::string> arguments_of(const std::string& path, bool is_expensive, const RunOptions& options,
                                      const TimeLimit& limit) {
  Arguments arguments({fmt::format("--model={}", path)});
  arguments.add_flag("text", is_text_model(path));
  arguments.add_flag("expensive", is_expensive);
  arguments.add_each("inputs", options.inputs);
  arguments.add_each("dump", options.dump);
  arguments.add("expect", options.expect);
  arguments.add("outputs", options.outputs);
  arguments.add("sides", options.sides);
  arguments.add("device", options.device == "cpu" ? std::string() : options.device);
  arguments.add("products", options.products);
  arguments.add("cublaslt", options.cublaslt);
  arguments.add("seed", options.seed);
  arguments.add("memory-limit", options.memory_limit);
  arguments.add("time-limit", limit.left());
  arguments.add("threads", options.threads);
  arguments.add("rtol", options.rtol);
  arguments.add("atol", options.atol);
  arguments.add("repeat", options.repeat);
  arguments.add_flag("check-facts", options.check_facts);
  arguments.add_flag("gradient", options.gradient);
  arguments.add_flag("timings", options.timings);
  return arguments.take();
}

int run_model(const RunOptions& options) {
  const TimeLimit limit("run", options.time_limit);
  const std::string path = input_path(options.model);
  if (path == kStandardInput) return refuse("run reads the model from a file, not from standard input");
  if (options.device.empty()) return refuse("`` is not a device: cpu, cuda:N or emulated:N");
  bool is_expensive = false;
  if (!options.force) {
    const auto use = [&](const CheckedModel& checked) { is_expensive = checked.is_expensive; };
    const int refused = limit.within([&] { return refuse_errors(path, options.settings, use); });
    if (refused != kExitClean) return refused;
  }
  return start_runtime(arguments_of(path, is_expensive, options, limit));
}

class Run : public Command {
 public:
  Run() : Command("run", "execute a model on the host with reference arithmetic") {}

  void add_options(Options& options) override {
    options.argument("MODEL", options_.model, "the model; refused while `check` reports errors in it");
    options.texts("--inputs", options_.inputs, "DIR|NAME=FILE",
                  "a folder with input_0.pb, input_1.npy, ..., or a file of one input");
    options.text("--seed", options_.seed, "N", "draw the inputs that are not given, the same ones for the same N");
    options.text("--expect", options_.expect, "DIR", "compare with output_0.pb, ... there: exit code 1 if one differs");
    options.text("--rtol", options_.rtol, "R", "relative tolerance of --expect (default: 1e-3)");
    options.text("--atol", options_.atol, "A", "absolute tolerance of --expect (default: 1e-7)");
    options.text("--outputs", options_.outputs, "DIR", "write the outputs there as output_0.pb, ...");
    options.texts("--dump", options_.dump, "VALUE", "print a value, of any node, each time it is computed");
    options.flag("--check-facts", options_.check_facts, "hold every value against what `show` says of it");
    options.flag("--gradient", options_.gradient, "with --device: show the gradient of each loss by its prediction");
    options.flag("--timings", options_.timings, "time of each operator, and peak memory");
    options.text("--memory-limit", options_.memory_limit, "BYTES",
                 "limit on the memory of all tensors (default: 4294967296)");
    options.text("--time-limit", options_.time_limit, "S", "seconds after which the run is stopped (default: none)");
    options.text("--threads", options_.threads, "N", "number of threads (default: those of the machine, at most 8)");
    options.text("--repeat", options_.repeat, "N", "run N times, and show and time the last run (default: 1)");
    options.text("--device", options_.device, "NAME",
                 "cpu (default), cuda:N or emulated:N, or several with commas: with its kernels where it has them");
    options.text("--sides", options_.sides, "cost|kernels",
                 "with --device: the kernels that are worth their copies (default with cuda:N), or all");
    options.text("--products", options_.products, "kernels|cublaslt|cublaslt-tf32",
                 "with --device: our kernels for matrix products (default), or cublasLt, in tf32 for float32");
    options.text("--cublaslt", options_.cublaslt, "FILE",
                 "library of --products (default: libcublasLt.so.13, else .12)");
    options.flag("--force", options_.force, "run a model with errors as far as it goes");
    options.text("--config", options_.settings.config, "FILE", "configuration of the check that comes first");
  }

  int run() override { return run_model(options_); }

 private:
  RunOptions options_;
};

const RegisterCommand<Run> kRegistered;

}  // namespace
}  // namespace tensorlint::cli
