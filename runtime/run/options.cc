#include "runtime/run/options.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/escape.h"

namespace tensorlint::runtime {
namespace {

constexpr OptionForm kRunForms[] = {
    {"device", "cpu, cuda:N or emulated:N"},
    {"sides", "cost or kernels"},
    {"products", "kernels, cublaslt or cublaslt-tf32"},
    {"cublaslt", "the file of a library"},
    {"memory-limit", "a number of bytes"},
    {"rtol", "a finite number of at least 0"},
    {"atol", "a finite number of at least 0"},
    {"repeat", "a number of runs, at least 1"},
    kSeedForm,
    kTimeLimitForm,
    kThreadsForm,
};

bool read_tolerance(std::string_view text, double& tolerance) {
  return read_number(text, tolerance) && tolerance >= 0 && std::isfinite(tolerance);
}

bool set(RunArguments& to, std::string_view name, std::string_view value) {
  if (name == "command") return to.command = value, value == "run" || value == "compare";
  if (name == "model") return to.model = value, true;
  if (name == "text") return to.is_text = true;
  if (name == "expensive") return to.is_expensive = true;
  if (name == "inputs") return to.inputs.emplace_back(value), true;
  if (name == "dump") return to.dump.emplace_back(value), true;
  if (name == "expect") return to.expect = value, true;
  if (name == "outputs") return to.outputs = value, true;
  if (name == "record") return to.record = value, true;
  if (name == "device") return to.device = value, !value.empty();
  if (name == "sides") {
    to.sides = value == "cost" ? Sides::kCost : Sides::kKernels;
    return value == "cost" || value == "kernels";
  }
  if (name == "products") {
    to.products = value == "cublaslt"        ? Products::kCublasLt
                  : value == "cublaslt-tf32" ? Products::kCublasLtTf32
                                             : Products::kKernels;
    return to.products != Products::kKernels || value == "kernels";
  }
  if (name == "cublaslt") return to.cublaslt = value, !value.empty();
  if (name == "seed") return read_number(value, to.seed.emplace());
  if (name == "memory-limit") return read_number(value, to.memory_limit);
  if (name == "time-limit") return read_seconds(value, to.time_limit);
  if (name == "rtol") return read_tolerance(value, to.rtol);
  if (name == "atol") return read_tolerance(value, to.atol);
  if (name == "check-facts") return to.check_facts = true;
  if (name == "gradient") return to.gradient = true;
  if (name == "threads") return read_thread_count(value, to.threads);
  if (name == "repeat") return read_number(value, to.repeat) && to.repeat > 0;
  if (name == "timings") return to.timings = value == "total" ? Timings::kTotal : Timings::kByOperator, true;
  return false;
}

}  // namespace

bool read_seconds(std::string_view text, double& seconds) {
  return read_number(text, seconds) && seconds >= 0 && seconds < 1e9;
}

bool read_thread_count(std::string_view text, int& count) {
  return read_number(text, count) && count > 0 && count <= 256;
}

std::optional<Error> parse_options(const std::vector<std::string>& arguments, std::string_view command,
                                   const std::function<bool(std::string_view name, std::string_view value)>& set,
                                   std::span<const OptionForm> forms) {
  for (const std::string_view argument : arguments) {
    const std::size_t equals = argument.find('=');
    const bool is_option = argument.starts_with("--") && equals != std::string_view::npos;
    const std::string_view name = is_option ? argument.substr(2, equals - 2) : std::string_view();
    if (is_option && set(name, argument.substr(equals + 1))) continue;
    const auto found = std::ranges::find(forms, name, &OptionForm::option);
    return found != forms.end()
               ? Error{fmt::format("{}: expected {}", quoted_for_people(argument), found->form), {}}
               : Error{fmt::format("{} is not a valid option; `tensorlint {} --help` lists the options",
                                   quoted_for_people(argument), command),
                       {}};
  }
  return std::nullopt;
}

Result<RunArguments> parse_arguments(const std::vector<std::string>& arguments) {
  RunArguments result;
  const auto set_one = [&](std::string_view name, std::string_view value) { return set(result, name, value); };
  if (auto error = parse_options(arguments, "run", set_one, kRunForms)) return *std::move(error);
  if (!result.device.empty() && (result.check_facts || !result.dump.empty()))
    return Error{"--check-facts and --dump need every value on the host: they run on the cpu, without --device", {}};
  if (result.sides && result.device.empty())
    return Error{"--sides chooses between a device and the interpreter: it needs --device", {}};
  if (result.sides && result.device.find(',') != std::string::npos)
    return Error{"--sides works with one device: with several, the placement of the model says where nodes run", {}};
  if (result.gradient && result.device.empty())
    return Error{"--gradient asks the kernels of losses for it: it needs --device", {}};
  if (result.products != Products::kKernels && result.device.empty())
    return Error{"--products chooses what multiplies matrices on a device: it needs --device", {}};
  if (!result.cublaslt.empty() && result.products == Products::kKernels)
    return Error{"--cublaslt is the file of a library: it needs --products cublaslt or cublaslt-tf32", {}};
  if (result.model.empty()) return Error{"`tensorlint run MODEL` starts this program", {}};
  return result;
}

}  // namespace tensorlint::runtime
