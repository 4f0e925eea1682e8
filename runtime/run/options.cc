#include "runtime/run/options.h"

#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace tensorlint::runtime {
namespace {

bool set(RunArguments& to, std::string_view name, std::string_view value) {
  if (name == "model") return to.model = value, true;
  if (name == "text") return to.is_text = true;
  if (name == "inputs") return to.inputs.emplace_back(value), true;
  if (name == "dump") return to.dump.emplace_back(value), true;
  if (name == "expect") return to.expect = value, true;
  if (name == "outputs") return to.outputs = value, true;
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
  if (name == "time-limit") return read_number(value, to.time_limit) && to.time_limit >= 0 && to.time_limit < 1e9;
  if (name == "rtol") return read_number(value, to.rtol);
  if (name == "atol") return read_number(value, to.atol);
  if (name == "check-facts") return to.check_facts = true;
  if (name == "gradient") return to.gradient = true;
  if (name == "threads") return read_number(value, to.threads) && to.threads > 0 && to.threads <= 256;
  if (name == "repeat") return read_number(value, to.repeat) && to.repeat > 0;
  if (name == "timings") return to.timings = value == "total" ? Timings::kTotal : Timings::kByOperator, true;
  return false;
}

}  // namespace

Result<RunArguments> parse_arguments(const std::vector<std::string>& arguments) {
  RunArguments result;
  for (const std::string_view argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (!argument.starts_with("--") || equals == std::string_view::npos ||
        !set(result, argument.substr(2, equals - 2), argument.substr(equals + 1)))
      return Error{fmt::format("`{}` is not a valid option; `tensorlint run --help` lists the options", argument), {}};
  }
  for (const double tolerance : {result.rtol, result.atol})
    if (!(tolerance >= 0 && std::isfinite(tolerance)))
      return Error{fmt::format("a tolerance has to be a number of at least 0, not {}", tolerance), {}};
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
