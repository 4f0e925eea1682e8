// tensorlint-run: executes a model. `tensorlint run` starts it with options of the form --name=value, after it has
// checked the model; its own command line is no interface.
#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/resource.h>
#include <sys/time.h>

#include "base/escape.h"
#include "base/output.h"
#include "ir/readers/onnx/reader.h"
#include "ir/text/model_reader.h"
#include "ir/text/reader.h"
#include "passes/dataflow/analysis.h"
#include "runtime/files/agreement.h"
#include "runtime/files/drawn_inputs.h"
#include "runtime/files/value_file.h"
#include "runtime/interpreter/concrete_facts.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/run/options.h"
#include "runtime/values/parallel.h"

namespace tensorlint::runtime {
namespace {

constexpr int kDone = 0, kDiffers = 1, kRefused = 2, kInternal = 3;
constexpr std::size_t kShownElements = 64;

int refuse(std::string_view message) {
  cli::write_stderr(fmt::format("tensorlint run: {}\n", message));
  return kRefused;
}

[[noreturn]] void out_of_time(int) {
  constexpr std::string_view kMessage = "tensorlint run: stopped: the time limit is over (--time-limit)\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  ::_exit(kRefused);
}

/// What takes memory beside tensors, rows of float64 for one, ends with an error too, before the system runs short.
void limit_process(std::uint64_t tensors) {
#ifndef __SANITIZE_ADDRESS__  // whose own memory would count
  ::rlimit limit{};
  if (::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  constexpr std::uint64_t kBeside = std::uint64_t{1} << 30;
  const std::uint64_t most = tensors < RLIM_INFINITY / 4 ? 2 * tensors + kBeside : RLIM_INFINITY;
  limit.rlim_cur = std::min<rlim_t>(most, limit.rlim_max);
  ::setrlimit(RLIMIT_DATA, &limit);
#else
  (void)tensors;
#endif
}

/// Whatever an evaluator is doing, the run ends then.
void start_clock(double seconds) {
  if (seconds <= 0) return;
  std::signal(SIGALRM, out_of_time);
  seconds = std::max(seconds, 1e-6);  // 0 would stop the clock
  ::itimerval timer{};
  timer.it_value.tv_sec = static_cast<::time_t>(seconds);
  timer.it_value.tv_usec = static_cast<::suseconds_t>((seconds - static_cast<double>(timer.it_value.tv_sec)) * 1e6);
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

std::string shown(std::string_view name) { return fmt::format("`{}`", escape_for_people(name, 200)); }

/// A file `PREFIX_INDEX` with one of the endings that are read; empty where there is none.
std::string numbered_file(const std::string& folder, std::string_view prefix, std::size_t index) {
  for (const std::string_view ending : {".pb", ".npy"}) {
    const std::string path = fmt::format("{}/{}_{}{}", folder, prefix, index, ending);
    if (std::filesystem::exists(path)) return path;
  }
  return {};
}

/// Which inputs the files of a folder are for: all, or, where there are as many files as inputs without a default,
/// these. Models of IR version 3 list constants among their inputs, and folders leave these out.
std::vector<std::size_t> numbered_inputs(const Model& model, std::size_t files) {
  const Graph& main = model.graph(GraphId::kMain);
  std::vector<std::size_t> all, without_default;
  for (std::size_t i = 0; i < main.inputs.size(); ++i) {
    const Value& value = model.value(main.inputs[i]);
    all.push_back(i);
    if (value.initializer == nullptr && value.sparse_initializer == nullptr) without_default.push_back(i);
  }
  return files == without_default.size() ? without_default : all;
}

Result<std::vector<HostValue>> read_inputs(const Model& model, const RunArguments& arguments, Memory& memory) {
  const Graph& main = model.graph(GraphId::kMain);
  std::vector<HostValue> inputs(main.inputs.size());
  const auto take = [&](std::size_t i, const std::string& path) -> std::optional<Error> {
    Result<HostValue> value = read_value_file(path, model.value(main.inputs[i]).type, memory);
    if (!value) return value.error();
    inputs[i] = *std::move(value);
    return std::nullopt;
  };
  for (const std::string& argument : arguments.inputs) {
    std::error_code ignored;
    if (std::filesystem::is_directory(argument, ignored)) {
      std::vector<std::string> files;
      for (std::string path; !(path = numbered_file(argument, "input", files.size())).empty();) files.push_back(path);
      const std::vector<std::size_t> numbered = numbered_inputs(model, files.size());
      if (files.size() > numbered.size())
        return Error{fmt::format("`{}` has {} inputs, the model {}", argument, files.size(), numbered.size()), {}};
      for (std::size_t k = 0; k < files.size(); ++k)
        if (auto error = take(numbered[k], files[k])) return *std::move(error);
      continue;
    }
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos) return Error{fmt::format("`{}` is neither a folder nor NAME=FILE", argument), {}};
    const ValueId id = model.find_value(GraphId::kMain, argument.substr(0, equals));
    const auto at = std::ranges::find(main.inputs, id);
    if (id == ValueId::kAbsent || at == main.inputs.end())
      return Error{fmt::format("the model has no input `{}`", argument.substr(0, equals)), {}};
    if (auto error = take(static_cast<std::size_t>(at - main.inputs.begin()), argument.substr(equals + 1)))
      return *std::move(error);
  }
  if (arguments.seed) {
    if (auto error = draw_inputs(model, *arguments.seed, memory, inputs)) return *std::move(error);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = model.value(main.inputs[i]);
    const bool has_default = value.initializer != nullptr || value.sparse_initializer != nullptr;
    if (inputs[i].is_absent() && value.type != nullptr && value.type->kind == TypeKind::kOptional)
      inputs[i] = HostValue::empty_optional(DType::kUndefined);
    if (inputs[i].is_absent() && !has_default)
      return Error{fmt::format("the input {} is missing: give it with --inputs, or let --seed draw it",
                               shown(model.name_of(main.inputs[i]))),
                   {}};
    if (auto error = check_input(model, main.inputs[i], inputs[i])) return *std::move(error);
  }
  return inputs;
}

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
    cli::write_stderr(fmt::format("output {}: {}\n", shown(model.name_of(main.outputs[i])), wrong));
  }
  if (compared == 0) return Error{fmt::format("`{}` has no file output_0.pb or output_0.npy", arguments.expect), {}};
  return differing;
}

std::optional<Error> write_outputs(const Model& model, const std::string& folder, std::span<const HostValue> outputs) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{fmt::format("`{}` cannot be made: {}", folder, error.message()), {}};
  const Graph& main = model.graph(GraphId::kMain);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (auto failed = cli::write_file(fmt::format("{}/output_{}.pb", folder, i),
                                      value_message(outputs[i], model.name_of(main.outputs[i]))))
      return failed;
  return std::nullopt;
}

struct RunTime {
  double wall = 0, processor = 0;  ///< seconds
};

double seconds_of(::clockid_t clock) {
  ::timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Freed tensors stay in the heap for the next ones: pages that the system hands out anew cost more than most
/// operators.
void keep_memory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that glibc takes
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_TOP_PAD, 1 << 20);
#endif
}

std::string timings_text(const std::map<std::string, Interpreter::Timing>& timings, RunTime time, Memory& memory) {
  std::vector<std::pair<std::string, Interpreter::Timing>> sorted(timings.begin(), timings.end());
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  std::string text = "operator                    calls    seconds\n";
  for (const auto& [name, timing] : sorted)
    text += fmt::format("{:<24} {:>8} {:>10.6f}\n", escape_for_people(name, 60), timing.calls, timing.seconds);
  return text + fmt::format("run: {:.6f} s, processor {:.6f} s; peak memory of tensors: {} bytes\n", time.wall,
                            time.processor, memory.peak());
}

int run_model(const RunArguments& arguments) {
  start_clock(arguments.time_limit);
  set_thread_count(arguments.threads > 0 ? arguments.threads : default_thread_count());
  limit_process(arguments.memory_limit);
  Result<Model> read = arguments.is_text ? read_onnx_text_file(arguments.model) : read_onnx_file(arguments.model);
  if (!read) return refuse(fmt::format("{}: {}", arguments.model, read.error().message));
  const Model& model = *read;
  Memory memory(arguments.memory_limit);
  Result<std::vector<HostValue>> inputs = read_inputs(model, arguments, memory);
  if (!inputs) return refuse(inputs.error().message);

  std::optional<dataflow::Analysis> analysis;
  if (arguments.check_facts) analysis.emplace(dataflow::analyse(model, {}));
  std::vector<std::string> outside, dumped;
  const bool watches = analysis || !arguments.dump.empty();
  const NodeObserver observer = [&](NodeId node, std::span<const HostValue> results) {
    const std::span<const ValueId> names = model.results(model.node(node));
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (names[r] == ValueId::kAbsent || results[r].is_absent()) continue;
      const std::string_view name = model.name_of(names[r]);
      if (std::ranges::find(arguments.dump, name) != arguments.dump.end())
        dumped.push_back(fmt::format("{}: {} = {}\n", shown(name), type_text(results[r]),
                                     elements_text(results[r], kShownElements)));
      std::string why;
      if (analysis && !contains(analysis->facts(), analysis->fact_id(names[r]), results[r], why))
        outside.push_back(fmt::format("{} of node {}: {}\n", shown(name), shown(model.label(node)), why));
    }
  };
  Interpreter interpreter(model, memory,
                          {.seed = arguments.seed.value_or(0), .observer = watches ? observer : nullptr});
  RunTime time;
  Result<std::vector<HostValue>> outputs = std::vector<HostValue>{};
  for (std::uint64_t left = arguments.repeat; left > 0; --left) {
    *outputs = {};
    const RunTime start{seconds_of(CLOCK_MONOTONIC), seconds_of(CLOCK_PROCESS_CPUTIME_ID)};
    outputs = interpreter.run(*inputs);
    time = {seconds_of(CLOCK_MONOTONIC) - start.wall, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - start.processor};
    if (!outputs) break;
  }
  std::string text;
  for (const std::string& line : dumped) text += line;
  if (!outputs) {
    if (!text.empty()) (void)cli::write_stdout(text);
    return refuse(fmt::format("{}: {}", arguments.model, escape_for_people(outputs.error().message, 2000)));
  }
  if (arguments.expect.empty() && arguments.outputs.empty() && arguments.dump.empty()) {
    const Graph& main = model.graph(GraphId::kMain);
    for (std::size_t i = 0; i < outputs->size(); ++i)
      text += fmt::format("{}: {} = {}\n", shown(model.name_of(main.outputs[i])), type_text((*outputs)[i]),
                          elements_text((*outputs)[i], kShownElements));
  }
  if (!arguments.outputs.empty())
    if (const auto failed = write_outputs(model, arguments.outputs, *outputs)) return refuse(failed->message);
  std::size_t differing = 0;
  if (!arguments.expect.empty()) {
    const Result<std::size_t> compared = compare_outputs(model, arguments, *outputs, memory);
    if (!compared) return refuse(compared.error().message);
    differing = *compared;
    if (differing == 0) text += "all outputs agree\n";
  }
  if (arguments.timings) text += timings_text(interpreter.timings(), time, memory);
  if (!outside.empty()) {
    for (const std::string& line : outside) text += "outside its fact: " + line;
  } else if (analysis) {
    text += "every value lies inside its fact\n";
  }
  if (const auto failed = cli::write_stdout(text)) return refuse(failed->message);
  if (!outside.empty()) return kInternal;
  return differing == 0 ? kDone : kDiffers;
}

}  // namespace
}  // namespace tensorlint::runtime

int main(int argc, char** argv) {
  using namespace tensorlint;
  cli::reserve_standard_streams();
  runtime::keep_memory();
  try {
    const Result<runtime::RunArguments> arguments = runtime::parse_arguments({argv + 1, argv + argc});
    if (!arguments) return runtime::refuse(arguments.error().message);
    return runtime::run_model(*arguments);
  } catch (const std::bad_alloc&) {
    return runtime::refuse("the system has no memory left");
  } catch (const std::exception& fault) {
    cli::write_stderr(fmt::format("tensorlint run: internal error: {}\n", fault.what()));
    return runtime::kInternal;
  }
}
