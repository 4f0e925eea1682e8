// tensorlint-run: executes a model. `tensorlint run` starts it with options of the form --name=value, after it has
// checked the model, and `tensorlint compare` for a device, with --command=compare; its own command line is no
// interface.
#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/escape.h"
#include "base/id_vector.h"
#include "base/output.h"
#include "base/text.h"
#include "base/time_limit.h"
#include "ir/readers/onnx/reader.h"
#include "ir/text/model_reader.h"
#include "ir/text/reader.h"
#include "passes/dataflow/analysis.h"
#include "runtime/device/device.h"
#include "runtime/executor/executor.h"
#include "runtime/files/agreement.h"
#include "runtime/files/value_file.h"
#include "runtime/interpreter/fact_check.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/run/compare.h"
#include "runtime/run/inputs.h"
#include "runtime/run/options.h"
#include "runtime/run/process.h"
#include "runtime/values/memory.h"
#include "runtime/values/parallel.h"

namespace tensorlint::runtime {
namespace {

constexpr std::size_t kShownElements = 64;
constexpr std::uint64_t kColdRuns = 2;  // which later ones are faster than

std::string shown(std::string_view name) { return fmt::format("`{}`", escape_for_display(name, 200)); }

/// Compares with `output_I` of a folder; how many outputs differ, or why that cannot be told.
Result<std::size_t> compare_outputs(const Model& model, const RunArguments& arguments,
                                    std::span<const HostValue> outputs, Memory& memory) {
  const Graph& main = model.graph(GraphId::kMain);
  std::size_t differing = 0, compared = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string path = numbered_file(arguments.expect, "output", i);
    if (path.empty()) continue;
    const Result<HostValue> expected = read_value_file(path, model.value(main.outputs[i]).type, memory);
    if (!expected) return expected.error();
    ++compared;
    const std::string wrong = disagreement(outputs[i], *expected, {arguments.rtol, arguments.atol});
    if (wrong.empty()) continue;
    ++differing;
    write_stderr(fmt::format("output {}: {}\n", shown(model.name_of(main.outputs[i])), wrong));
  }
  if (compared == 0) return Error{fmt::format("`{}` has no file output_0.pb or output_0.npy", arguments.expect), {}};
  return differing;
}

std::optional<Error> write_outputs(const Model& model, const std::string& folder, std::span<const HostValue> outputs,
                                   Memory& memory) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{fmt::format("`{}` cannot be made: {}", folder, error.message()), {}};
  const Graph& main = model.graph(GraphId::kMain);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (auto failed = write_value_file(fmt::format("{}/output_{}.pb", folder, i), outputs[i],
                                       model.name_of(main.outputs[i]), memory))
      return failed;
  return std::nullopt;
}

/// Each value once, however many outputs it is.
std::optional<Error> record_outputs(const Model& model, const std::string& folder, std::span<const HostValue> outputs,
                                    Memory& memory) {
  const Graph& main = model.graph(GraphId::kMain);
  IdVector<ValueId, bool> is_recorded(model.values.size());
  std::vector<NamedValue> values;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (is_recorded[main.outputs[i]]) continue;
    is_recorded[main.outputs[i]] = true;
    values.push_back({model.name_of(main.outputs[i]), &outputs[i]});
  }
  return write_value_models(folder, values, memory);
}

struct RunTime {
  double wall = 0, processor = 0;  ///< seconds
};

double seconds_of(::clockid_t clock) {
  ::timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

RunTime time_now() { return {seconds_of(CLOCK_MONOTONIC), seconds_of(CLOCK_PROCESS_CPUTIME_ID)}; }

/// Freed tensors stay in the heap for the next ones: pages that the system hands out anew cost more than most
/// operators.
void keep_memory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that glibc takes
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_TOP_PAD, 1 << 20);
#endif
}

std::string total_text(RunTime time, const Memory& memory) {
  return fmt::format("run: {:.9f} s, processor {:.9f} s; peak memory of tensors: {} bytes\n", time.wall, time.processor,
                     memory.peak());
}

std::string timings_text(const std::map<std::string, Interpreter::Timing>& timings) {
  std::vector<std::pair<std::string, Interpreter::Timing>> sorted(timings.begin(), timings.end());
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  std::string text = "operator                    calls    seconds\n";
  for (const auto& [name, timing] : sorted)
    text += fmt::format("{:<24} {:>8} {:>10.6f}\n", escape_for_display(name, 60), timing.calls, timing.seconds);
  return text;
}

/// Where each node ran and why, and what was copied.
std::string places_text(const Model& model, const Executor& executor) {
  const ExecutionPlan& plan = executor.plan();
  std::map<NodeId, double> seconds;
  for (std::size_t at = 0; at < plan.steps.size(); ++at) seconds[plan.steps[at].node] = executor.seconds()[at];
  std::string text = "where           seconds  node: why there\n";
  const auto add = [&](const std::string& where, const NodePlace& place) {
    const std::string_view op = model.text(model.op(model.node(place.node)).name);
    const auto took = seconds.find(place.node);
    text += fmt::format(
        "{:<12} {:>10}  {}{} ({}): {}\n",
        place.kind == NodePlace::Kind::kInterpreter ? "interpreter"
        : place.kind == NodePlace::Kind::kKernel    ? std::string_view(executor.devices()[place.device]->name())
                                                    : "not run",
        took == seconds.end() ? "" : fmt::format("{:.6f}", took->second), where, shown(model.label(place.node)),
        escape_for_display(op, 60), escape_for_display(place.reason, 300));
  };
  for (const NodePlace& place : plan.places) add("", place);
  for (const auto& [graph, body] : plan.bodies) {
    const std::string where = escape_for_display(model.graph_path(graph) + ": ", 200);
    for (const NodePlace& place : body.places) add(where, place);
  }
  const ExecutionPlan::Copies copies = executor.copies();
  std::string names, bytes;
  for (std::size_t at = 0; at < executor.devices().size(); ++at) {
    names += fmt::format("{}{}", at == 0 ? "" : ", ", executor.devices()[at]->name());
    bytes += fmt::format("{}{}", at == 0 ? "" : ", ", plan.device_bytes[at]);
  }
  text += fmt::format("copies, as planned: {} to {} ({} bytes), {} from it ({} bytes); memory there: {} bytes\n",
                      copies.in, names, copies.bytes_in, copies.out, copies.bytes_out, bytes);
  if (names.starts_with("emulated"))
    text += "emulated: these are times of the emulator on this processor, not of a GPU\n";
  return text;
}

std::string facts_text(const Model& model, const FactCheck& facts) {
  std::string text;
  for (const std::string& line : facts.outside()) text += fmt::format("outside its fact: {}\n", line);
  if (facts.contradiction() != ValueId::kAbsent) {
    text += fmt::format("{} is not as the model declares it: values after it were not compared with their facts\n",
                        shown(model.name_of(facts.contradiction())));
  } else if (text.empty()) {
    text = "every value lies inside its fact\n";
  }
  return text;
}

/// A name to dump that no node computes; empty where there is none.
std::string unknown_dump(const Model& model, std::span<const std::string> names) {
  std::set<std::string_view> computed;
  for (const NodeId node : model.nodes.ids())
    for (const ValueId value : model.results(model.node(node))) computed.insert(model.name_of(value));
  for (const std::string& name : names)
    if (!computed.contains(name)) return name;
  return {};
}

Result<std::vector<std::unique_ptr<Device>>> open_devices(const RunArguments& arguments) {
  std::vector<std::unique_ptr<Device>> devices;
  for (std::size_t first = 0, end = 0; !arguments.device.empty() && end != std::string::npos; first = end + 1) {
    end = arguments.device.find(',', first);
    const std::string name = arguments.device.substr(first, end == std::string::npos ? end : end - first);
    if (std::ranges::any_of(devices, [&](const auto& device) { return device->name() == name; }))
      return Error{fmt::format("{} names {} twice", arguments.device_option(), name), {}};
    Result<std::unique_ptr<Device>> opened = Device::open(name, arguments.memory_limit);
    if (!opened) return opened.error();
    devices.push_back(*std::move(opened));
    if (arguments.products != Products::kKernels)
      if (const auto failed =
              devices.back()->load_cublaslt(arguments.cublaslt, arguments.products == Products::kCublasLtTf32))
        return Error{fmt::format("{}; --cublaslt FILE names the library, and without --products our kernels compute "
                                 "matrix products",
                                 failed->message),
                     {}};
    (void)devices.back()->use_seed(arguments.seed.value_or(0));
  }
  return devices;
}

/// Shows the values to dump, and holds all against `facts`; null where nothing watches.
NodeObserver observer_of(const Model& model, const std::vector<std::string>& dump, FactCheck* facts) {
  if (facts == nullptr && dump.empty()) return nullptr;
  return [&model, &dump, facts](NodeId node, std::span<const HostValue> results) {
    const std::span<const ValueId> names = model.results(model.node(node));
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (names[r] == ValueId::kAbsent || results[r].is_absent()) continue;
      const std::string_view name = model.name_of(names[r]);
      if (std::ranges::find(dump, name) == dump.end()) continue;
      // At once: a loop may compute it any number of times, and a limit may end the run.
      if (const auto failed = write_stdout(fmt::format("{}: {} = {}\n", shown(name), type_text(results[r]),
                                                       elements_text(results[r], kShownElements))))
        throw RunFault{failed->message};
    }
    if (facts != nullptr) facts->hold(node, results);
  };
}

/// The outputs of the last of `repeat` runs. `mean` gets the time of one that is warm.
Result<std::vector<HostValue>> run_times(std::uint64_t repeat, RunTime& mean,
                                         const std::function<Result<std::vector<HostValue>>()>& run) {
  RunTime start;
  Result<std::vector<HostValue>> outputs = std::vector<HostValue>{};
  const std::uint64_t first_timed = std::min(repeat - 1, kColdRuns);
  for (std::uint64_t i = 0; i < repeat && outputs; ++i) {
    *outputs = {};
    if (i == first_timed) start = time_now();
    outputs = run();
  }
  const RunTime end = time_now();
  const auto timed = static_cast<double>(repeat - first_timed);
  mean = {(end.wall - start.wall) / timed, (end.processor - start.processor) / timed};
  return outputs;
}

// A value may be any number of outputs, and a model may have any number of values.
constexpr std::size_t kMostShown = 1000, kMostText = std::size_t{1} << 20;

/// The lines that fit into kMostText, and how many of them there are.
template <typename Line>
std::pair<std::string, std::size_t> lines_text(std::size_t count, const Line& line) {
  std::string text;
  std::size_t i = 0;
  for (; i < count && text.size() < kMostText; ++i) text += line(i);
  return {std::move(text), i};
}

std::string outputs_text(const Model& model, std::span<const HostValue> outputs) {
  const Graph& main = model.graph(GraphId::kMain);
  auto [text, shown_lines] = lines_text(std::min(outputs.size(), kMostShown), [&](std::size_t i) {
    return fmt::format("{}: {} = {}\n", shown(model.name_of(main.outputs[i])), type_text(outputs[i]),
                       elements_text(outputs[i], kShownElements));
  });
  if (const std::size_t left = outputs.size() - shown_lines; left > 0)
    text += fmt::format("{}: --outputs DIR writes all of them\n", counted(left, "more output"));
  return text;
}

std::string gradients_text(const Model& model, const Executor& executor) {
  const std::span<const Executor::Gradient> gradients = executor.gradients();
  auto [text, shown_lines] = lines_text(gradients.size(), [&](std::size_t i) {
    const HostValue value(gradients[i].tensor);
    return fmt::format("gradient of {} by {}: {} = {}\n", shown(model.label(gradients[i].loss)),
                       shown(model.name_of(gradients[i].by)), type_text(value), elements_text(value, kShownElements));
  });
  if (const std::size_t left = gradients.size() - shown_lines + executor.gradients_left_out(); left > 0)
    text += fmt::format("{}\n", counted(left, "more gradient"));
  return text;
}

/// The exit code.
Result<int> run_model(const RunArguments& arguments) {
  start_time_limit(arguments.command, arguments.time_limit, kRefused);
  set_thread_count(arguments.threads > 0 ? arguments.threads : default_thread_count());
  limit_process(arguments.memory_limit, arguments.threads);
  const Result<Model> read = arguments.is_text ? read_onnx_text_file(arguments.model) : read_onnx_file(arguments.model);
  if (!read) return Error{fmt::format("{}: {}", arguments.model, read.error().message), {}};
  const Model& model = *read;
  if (const std::string name = unknown_dump(model, arguments.dump); !name.empty())
    return Error{fmt::format("no node of the model computes {}, which --dump names", shown(name)), {}};
  const Result<std::vector<std::unique_ptr<Device>>> devices = open_devices(arguments);
  if (!devices) return devices.error();
  Memory memory(arguments.memory_limit, arguments.memory_option());
  dataflow::Allowances allowances(model, arguments.is_expensive);
  const Result<std::vector<HostValue>> inputs =
      read_inputs(model, {arguments.inputs, arguments.seed}, allowances, memory);
  if (!inputs) return inputs.error();

  std::optional<dataflow::Analysis> analysis;
  std::optional<FactCheck> facts;
  if (arguments.check_facts) {
    facts.emplace(analysis.emplace(dataflow::analyse(model, dataflow::options_with(&allowances))));
    facts->begin(*inputs);
  }
  std::optional<Interpreter> interpreter;  // without a device; an executor has its own
  std::optional<Executor> executor;
  if (devices->empty()) {
    interpreter.emplace(model, memory,
                        InterpreterOptions{.seed = arguments.seed.value_or(0),
                                           .measures_time = arguments.timings == Timings::kByOperator,
                                           .observer = observer_of(model, arguments.dump, facts ? &*facts : nullptr),
                                           .allowances = &allowances});
  } else {
    // The emulated device is there to run kernels; a GPU is there to be fast.
    const Sides otherwise = devices->front()->name().starts_with("emulated") ? Sides::kKernels : Sides::kCost;
    std::vector<Device*> all;
    for (const auto& device : *devices) all.push_back(device.get());
    executor.emplace(model, memory, std::move(all), arguments.seed.value_or(0), arguments.sides.value_or(otherwise));
    executor->set_allowances(allowances);
    executor->set_timed(arguments.timings == Timings::kByOperator);
    executor->set_with_gradients(arguments.gradient);
    executor->set_with_cublaslt(arguments.products != Products::kKernels);
  }
  RunTime time;
  const Result<std::vector<HostValue>> outputs =
      run_times(arguments.repeat, time, [&] { return executor ? executor->run(*inputs) : interpreter->run(*inputs); });
  if (!outputs) return Error{fmt::format("{}: {}", arguments.model, outputs.error().message), {}};

  std::string text;
  if (arguments.expect.empty() && arguments.outputs.empty() && arguments.record.empty() && arguments.dump.empty())
    text += outputs_text(model, *outputs);
  if (arguments.gradient) text += gradients_text(model, *executor);
  if (!arguments.outputs.empty())
    if (const auto failed = write_outputs(model, arguments.outputs, *outputs, memory)) return *failed;
  if (!arguments.record.empty())
    if (const auto failed = record_outputs(model, arguments.record, *outputs, memory)) return *failed;
  std::size_t differing = 0;
  if (!arguments.expect.empty()) {
    const Result<std::size_t> compared = compare_outputs(model, arguments, *outputs, memory);
    if (!compared) return compared.error();
    differing = *compared;
    if (differing == 0) text += "all outputs agree\n";
  }
  if (arguments.timings == Timings::kByOperator)
    text += executor ? places_text(model, *executor) : timings_text(interpreter->timings());
  if (arguments.timings != Timings::kNone) text += total_text(time, memory);
  if (facts) text += facts_text(model, *facts);
  if (const auto failed = write_stdout(text)) return *failed;
  if (facts && !facts->outside().empty()) return kInternal;
  return differing == 0 ? kDone : kDiffers;
}

}  // namespace
}  // namespace tensorlint::runtime

int main(int argc, char** argv) {
  using namespace tensorlint;
  reserve_standard_streams();
  runtime::keep_memory();
  std::string command = "run";
  try {
    if (argc > 1 && std::string_view(argv[1]) == "compare") {
      command = argv[1];
      return runtime::run_compare({argv + 2, argv + argc});
    }
    const Result<runtime::RunArguments> arguments = runtime::parse_arguments({argv + 1, argv + argc});
    if (!arguments) return runtime::refuse(command, arguments.error().message);
    command = arguments->command;
    const Result<int> code = runtime::run_model(*arguments);
    return code ? *code : runtime::refuse(command, code.error().message);
  } catch (const runtime::RunFault& fault) {
    return runtime::refuse(command, fault.message);
  } catch (const std::bad_alloc&) {
    return runtime::refuse(command, "out of memory");
  } catch (const std::exception& fault) {
    write_stderr(fmt::format("tensorlint {}: internal error: {}\n", command, fault.what()));
    return runtime::kInternal;
  }
}
