#include "runtime/run/compare.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/descriptor.h"
#include "base/escape.h"
#include "base/file_bytes.h"
#include "base/output.h"
#include "base/time_limit.h"
#include "ir/readers/onnx/reader.h"
#include "ir/text/model_reader.h"
#include "ir/text/reader.h"
#include "runtime/compare/comparison.h"
#include "runtime/compare/report.h"
#include "runtime/compare/report_facts.h"
#include "runtime/compare/reproduction.h"
#include "runtime/run/inputs.h"
#include "runtime/run/options.h"
#include "runtime/run/process.h"
#include "runtime/values/parallel.h"

namespace tensorlint::runtime {
namespace {

struct CompareArguments {
  std::string model, against, engine, contract, format = "text", output, locations, reproduce;
  bool is_text = false, is_chained = false;
  bool is_expensive = false;  ///< the check that came first was
  bool only_options = false;  ///< to say what is wrong with them
  InputArguments inputs{.inputs = {}, .seed = std::nullopt, .may_lack = true};
  std::uint64_t window = std::uint64_t{4} << 30;  ///< bytes of tensors
  double time_limit = 0;
  int threads = 0;
};

int refuse(std::string_view message) { return runtime::refuse("compare", message); }

constexpr OptionForm kCompareForms[] = {
    {"window", "a number of bytes, at least 1"},
    kSeedForm,
    kTimeLimitForm,
    kThreadsForm,
};

bool set(CompareArguments& to, std::string_view name, std::string_view value) {
  if (name == "model") return to.model = value, true;
  if (name == "text") return to.is_text = true;
  if (name == "expensive") return to.is_expensive = true;
  if (name == "inputs") return to.inputs.inputs.emplace_back(value), true;
  if (name == "seed") return read_number(value, to.inputs.seed.emplace());
  if (name == "against") return to.against = value, true;
  if (name == "engine") return to.engine = value, true;
  if (name == "contract") return to.contract = value, true;
  if (name == "format") return to.format = value, value == "text" || value == "json" || value == "html";
  if (name == "output") return to.output = value, true;
  if (name == "reproduce") return to.reproduce = value, true;
  if (name == "chained") return to.is_chained = true;
  if (name == "only-options") return to.only_options = true;
  if (name == "window") return read_number(value, to.window) && to.window > 0;
  if (name == "time-limit") return read_seconds(value, to.time_limit);
  if (name == "threads") return read_thread_count(value, to.threads);
  if (name == "locations") return to.locations = value, true;
  return false;
}

Result<CompareArguments> parse(const std::vector<std::string>& arguments) {
  CompareArguments result;
  const auto set_one = [&](std::string_view name, std::string_view value) { return set(result, name, value); };
  if (auto error = parse_options(arguments, "compare", set_one, kCompareForms)) return *std::move(error);
  if (result.model.empty() || result.against.empty())
    return Error{"`tensorlint compare MODEL --against DIR` starts this program", {}};
  return result;
}

std::string contract_name(const std::string& given) { return given.empty() ? "onnxruntime-cpu" : given; }

/// A contract that comes with the program, or a file.
Result<compare::Contract> contract_of(const std::string& name) {
  std::string_view text = compare::contract_text(contract_name(name));
  std::shared_ptr<const FileBytes> file;
  if (text.empty()) {
    const auto opened = FileBytes::open(name);
    if (!opened)
      return Error{fmt::format("the contract {}: {}; those that come with the program are {}", quoted_for_people(name),
                               opened.error().message, fmt::join(compare::contract_text_names(), ", ")),
                   {}};
    file = *opened;
    text = file->bytes();
  }
  Result<compare::Contract> contract = compare::parse_contract(text);
  if (!contract)
    return Error{fmt::format("the contract {}: {}", quoted_for_people(name), contract.error().message), {}};
  return contract;
}

/// What the program that started this one wrote: all of an inherited descriptor, from its beginning.
std::string text_of_descriptor(const std::string& number) {
  int descriptor = -1;
  if (number.empty() || !read_number(number, descriptor)) return {};
  std::string text(std::size_t{1} << 16, '\0');
  std::size_t size = 0;
  constexpr std::size_t kMost = std::size_t{1} << 28;
  while (size < kMost) {
    if (size == text.size()) text.resize(2 * size);
    const ::ssize_t got = ::pread(descriptor, text.data() + size, text.size() - size, static_cast<::off_t>(size));
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

std::string nothing_compared(const compare::Comparison& comparison, const Model& model) {
  constexpr std::size_t kShown = 3;
  const std::size_t shown = std::min(kShown, comparison.skipped.size());
  std::string text = "none of the recorded values could be compared with their nodes";
  for (std::size_t i = 0; i < shown; ++i)
    text +=
        fmt::format("{} node {}: {}", i == 0 ? ":" : ";", quoted_for_people(model.label(comparison.skipped[i].node)),
                    compare::reason_of(model, comparison.skipped[i]));
  return shown < comparison.skipped.size() ? text + fmt::format("; and {} more", comparison.skipped.size() - shown)
                                           : text;
}

int compare_model(const CompareArguments& arguments) {
  start_time_limit("compare", arguments.time_limit, kRefused);
  set_thread_count(arguments.threads > 0 ? arguments.threads : default_thread_count());
  limit_process(arguments.window, arguments.threads);
  if (std::error_code ignored; !arguments.reproduce.empty() && std::filesystem::exists(arguments.reproduce, ignored) &&
                               !std::filesystem::is_empty(arguments.reproduce, ignored))
    return refuse(
        fmt::format("--reproduce {}: expected a new or an empty folder", quoted_for_people(arguments.reproduce)));
  const Result<compare::Contract> contract = contract_of(arguments.contract);
  if (!contract) return refuse(contract.error().message);
  if (arguments.only_options) return kDone;
  Result<Model> read = arguments.is_text ? read_onnx_text_file(arguments.model) : read_onnx_file(arguments.model);
  if (!read) return refuse(fmt::format("{}: {}", arguments.model, read.error().message));
  const Model& model = *read;
  Memory memory(arguments.window, "--window");
  dataflow::Allowances allowances(model, arguments.is_expensive);
  Result<std::vector<HostValue>> inputs = read_inputs(model, arguments.inputs, allowances, memory);
  if (!inputs) return refuse(inputs.error().message);
  const Result<compare::RecordedValues> recorded = compare::RecordedValues::open(arguments.against, model);
  if (!recorded) return refuse(recorded.error().message);
  const Graph& main = model.graph(GraphId::kMain);
  for (std::size_t i = 0; i < inputs->size(); ++i) {
    const Value& value = model.value(main.inputs[i]);
    if ((*inputs)[i].is_absent() && !value.has_default() && !recorded->has(main.inputs[i]))
      return refuse(fmt::format("the input {} is missing: it is not recorded, and --inputs does not give it",
                                quoted_for_people(model.name_of(main.inputs[i]))));
  }
  const Result<compare::Comparison> comparison = compare::compare(model, *recorded, *std::move(inputs), *contract,
                                                                  {.is_chained = arguments.is_chained,
                                                                   .keeps_reproduction = !arguments.reproduce.empty(),
                                                                   .allowances = &allowances},
                                                                  memory);
  if (!comparison) return refuse(fmt::format("{}: {}", arguments.model, comparison.error().message));
  if (comparison->results.empty()) return refuse(nothing_compared(*comparison, model));
  const compare::ReportedModel reported{
      .model = model,
      .locations = compare::parse_locations(text_of_descriptor(arguments.locations)),
      .setting = {.against = arguments.engine.empty() ? arguments.against : arguments.engine,
                  .contract = contract_name(arguments.contract),
                  .is_chained = arguments.is_chained,
                  .reproduction = comparison->reproduction ? arguments.reproduce : ""}};
  const auto report = [&](const TextSink& out) {
    if (arguments.format == "json") return compare::json_report(*comparison, reported, out);
    if (arguments.format == "html") return compare::html_report(*comparison, reported, out);
    out(compare::text_report(*comparison, reported));
  };
  std::string text;
  if (comparison->reproduction) {
    text = text_of(report);  // before the model is given away
    const auto failed =
        compare::write_reproduction(*std::move(read), *comparison->reproduction, arguments.reproduce, memory);
    if (failed) return refuse(fmt::format("--reproduce: {}", failed->message));
  }
  const auto output = [&](const TextSink& out) { comparison->reproduction ? out(text) : report(out); };
  const auto failed = arguments.output.empty() ? write_stdout(output) : write_file(arguments.output, output);
  if (failed) return refuse(failed->message);
  return comparison->verdict() == compare::Verdict::kBug ? kDiffers : kDone;
}

}  // namespace

int run_compare(const std::vector<std::string>& arguments) {
  const Result<CompareArguments> parsed = parse(arguments);
  return parsed ? compare_model(*parsed) : refuse(parsed.error().message);
}

}  // namespace tensorlint::runtime
