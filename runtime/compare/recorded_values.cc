#include "runtime/compare/recorded_values.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/did_you_mean.h"
#include "base/escape.h"
#include "base/file_bytes.h"
#include "ir/readers/onnx/data_file.h"
#include "ir/readers/onnx/reader.h"
#include "runtime/compare/floats.h"
#include "runtime/files/value_file.h"
#include "runtime/interpreter/constants.h"
#include "runtime/values/codec.h"

namespace tensorlint::compare {

using runtime::HostTensor;

namespace {

/// Regular files of a folder in the order of their names.
Result<std::vector<std::string>> files_of(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (std::error_code ignored; at->is_regular_file(ignored)) paths.push_back(at->path().string());
  if (error) return Error{fmt::format("`{}` cannot be read: {}", folder, error.message()), {}};
  std::ranges::sort(paths);
  return paths;
}

/// The name in an onnx.TensorProto.
Result<std::string> name_in(const std::string& path) {
  const auto file = FileBytes::open(path);
  if (!file) return Error{fmt::format("{}: {}", path, file.error().message), {}};
  const Result<Model> model = read_tensor_message((*file)->bytes(), path);
  if (!model) return Error{fmt::format("{}: {}", path, model.error().message), {}};
  for (const ValueId value : ids_below<ValueId>(model->values.size()))
    if (model->value(value).initializer != nullptr) return std::string(model->name_of(value));
  return Error{fmt::format("{}: the tensor has no name", path), {}};
}

/// Of the values in the main graph.
std::vector<std::string_view> names_of(const Model& model) {
  std::vector<std::string_view> names;
  for (const ValueId value : ids_below(model.values.size(), static_cast<ValueId>(1)))
    if (model.value(value).graph == GraphId::kMain && !model.name_of(value).empty())
      names.push_back(model.name_of(value));
  return names;
}

/// The elements in a narrower float that has all of them; an absent tensor where it has not, or is not narrower.
HostTensor narrowed(const HostTensor& tensor, DType dtype, runtime::Memory& memory) {
  if (!runtime::is_float(tensor.dtype()) || !runtime::is_float(dtype)) return {};
  if (float_format(tensor.dtype()).digits < float_format(dtype).digits) return {};
  const HostTensor wide = runtime::to_float64(tensor, memory);
  HostTensor narrow(dtype, tensor.extents(), memory);
  runtime::store(narrow, 0, wide.size(), wide.as<double>().data(), false);
  const HostTensor again = runtime::to_float64(narrow, memory);
  const auto same = [](double a, double b) { return a == b || (a != a && b != b); };
  return std::ranges::equal(wide.as<double>(), again.as<double>(), same) ? narrow : HostTensor();
}

}  // namespace

std::optional<Error> RecordedValues::add(const Model& model, std::string_view name, Source source) {
  const ValueId value = model.find_value(GraphId::kMain, name);
  if (value == ValueId::kAbsent)
    return Error{fmt::format("{}: the model has no value {}{}", source.path, quoted_for_people(name),
                             did_you_mean(name, names_of(model))),
                 {}};
  const std::string path = source.path;
  if (!sources_.try_emplace(value, std::move(source)).second)
    return Error{fmt::format("{}: {} is recorded twice", path, quoted_for_people(name)), {}};
  return std::nullopt;
}

Result<RecordedValues> RecordedValues::open(const std::string& folder, const Model& model) {
  const Result<std::vector<std::string>> files = files_of(folder);
  if (!files) return files.error();
  RecordedValues result;
  for (const std::string& path : *files) {
    const std::filesystem::path file(path);
    std::optional<Error> error;
    if (file.extension() == ".npz") {
      Result<runtime::NpzFile> archive = runtime::NpzFile::open(path);
      if (!archive) return archive.error();
      result.archives_.push_back(*std::move(archive));
      const auto& members = result.archives_.back().members();
      for (std::size_t i = 0; i < members.size() && !error; ++i)
        error = result.add(model, members[i].name, {members[i].name, path, result.archives_.size(), i});
    } else if (file.extension() == ".npy") {
      error = result.add(model, file.stem().string(), {file.stem().string(), path});
    } else if (file.extension() == ".pb") {
      const Result<std::string> name = name_in(path);
      if (!name) return name.error();
      error = result.add(model, *name, {*name, path});
    } else if (file.extension() == ".initializers") {
      Result<Model> read = read_onnx_file(path);
      if (!read) return Error{fmt::format("{}: {}", path, read.error().message), {}};
      if (!read->faults.empty()) return Error{fmt::format("{}: {}", path, read->faults.front().message), {}};
      const auto values = std::make_shared<const Model>(*std::move(read));
      for (const ValueId value : values->graph(GraphId::kMain).initializers) {
        if (error) break;
        const std::string name(values->name_of(value));
        error = result.add(model, name, {name, path, 0, 0, values, values->value(value).initializer});
      }
    }
    if (error) return *std::move(error);
  }
  if (result.sources_.empty())
    return Error{fmt::format("`{}` has no recorded values: no .npz, .npy or .pb file; record.py writes them", folder),
                 {}};
  return result;
}

Result<HostTensor> RecordedValues::read(ValueId value, DType dtype, runtime::Memory& memory) const {
  const Source& source = sources_.at(value);
  const auto fail = [&](std::string_view why) { return Error{fmt::format("{}: {}", source.path, why), {}}; };
  HostTensor tensor;
  if (source.archive > 0) {
    const runtime::NpzFile& archive = archives_[source.archive - 1];
    Result<HostTensor> read = archive.read(archive.members()[source.member], memory);
    if (!read) return fail(read.error().message);
    tensor = *std::move(read);
  } else if (source.tensor != nullptr) {
    try {
      tensor = runtime::load_constant(*source.tensor, source.path, source.model, memory);
    } catch (const runtime::RunFault& fault) {
      return fail(fault.message);
    }
  } else {
    Result<runtime::HostValue> read = runtime::read_value_file(source.path, nullptr, memory);
    if (!read) return read.error();
    if (!read->is_tensor()) return fail("not a tensor");
    tensor = read->tensor();
  }
  if (tensor.dtype() == dtype || dtype == DType::kUndefined) return tensor;
  try {
    const HostTensor narrow = narrowed(tensor, dtype, memory);
    if (!narrow.is_absent()) return narrow;
  } catch (const runtime::RunFault& fault) {
    return fail(fault.message);
  }
  const std::string dtypes = fmt::format("{} is recorded as {}, and {} in the model", quoted_for_people(source.name),
                                         to_text(tensor.dtype()), to_text(dtype));
  if (!runtime::is_float(tensor.dtype()) || !runtime::is_float(dtype))
    return fail(dtypes + ": record it in the dtype of the model");
  const bool is_narrow = float_format(tensor.dtype()).digits < float_format(dtype).digits;
  return fail(dtypes + (is_narrow ? ": record it in its own dtype, since a narrower one hides what was computed"
                                  : ", which lacks some of its numbers"));
}

}  // namespace tensorlint::compare
