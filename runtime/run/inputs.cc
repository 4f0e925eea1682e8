#include "runtime/run/inputs.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/escape.h"
#include "runtime/files/drawn_inputs.h"
#include "runtime/files/runnable_inputs.h"
#include "runtime/files/value_file.h"

namespace tensorlint::runtime {

std::string numbered_file(const std::string& folder, std::string_view prefix, std::size_t index) {
  for (const std::string_view ending : {".pb", ".npy"}) {
    const std::string path = fmt::format("{}/{}_{}{}", folder, prefix, index, ending);
    std::error_code unknown;  // a link to itself, a name that is too long: who opens it says why
    if (std::filesystem::exists(path, unknown) || unknown) return path;
  }
  return {};
}

namespace {

/// Which inputs the files of a folder are for: all, or, where there are as many files as inputs without a default,
/// these. Models of IR version 3 list constants among their inputs, and folders leave these out.
std::vector<std::size_t> numbered_inputs(const Model& model, std::size_t files) {
  const Graph& main = model.graph(GraphId::kMain);
  std::vector<std::size_t> all, without_default;
  for (std::size_t i = 0; i < main.inputs.size(); ++i) {
    const Value& value = model.value(main.inputs[i]);
    all.push_back(i);
    if (!value.has_default()) without_default.push_back(i);
  }
  return files == without_default.size() ? without_default : all;
}

}  // namespace

Result<std::vector<HostValue>> read_inputs(const Model& model, const InputArguments& arguments,
                                           dataflow::Allowances& allowances, Memory& memory) {
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
      for (std::string path; !(path = numbered_file(argument, "input", files.size())).empty();) {
        files.push_back(path);
        if (!std::filesystem::exists(path, ignored)) break;
      }
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
    const InputPlan plan = runnable_inputs(model, *arguments.seed, inputs, allowances.next());
    if (auto error = draw_inputs(model, *arguments.seed, memory, inputs, plan)) return *std::move(error);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = model.value(main.inputs[i]);
    if (inputs[i].is_absent() && value.type != nullptr && value.type->kind == TypeKind::kOptional)
      inputs[i] = HostValue::empty_optional(DType::kUndefined);
    if (inputs[i].is_absent() && arguments.may_lack) continue;
    if (inputs[i].is_absent() && !value.has_default())
      return Error{fmt::format("the input {} is missing: give it with --inputs, or let --seed draw it",
                               quoted_for_people(model.name_of(main.inputs[i]))),
                   {}};
    if (auto error = check_input(model, main.inputs[i], inputs[i])) return *std::move(error);
  }
  return inputs;
}

}  // namespace tensorlint::runtime
