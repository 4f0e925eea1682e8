#include "runtime/compare/reproduction.h"

#include <deque>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/output.h"
#include "ir/writers/onnx/model_writer.h"
#include "runtime/files/value_file.h"

namespace tensorlint::compare {

using runtime::HostValue;

namespace {

/// Types of values, to which a model refers.
class Declarations {
 public:
  const TypeDecl* of(const HostValue& value) {
    TypeDecl type;
    if (value.is_tensor()) {
      std::vector<DimDecl>& dims = dims_.emplace_back();
      for (const std::int64_t extent : value.tensor().extents()) dims.push_back({.extent = extent, .has_extent = true});
      type = tensor(value.dtype());
      type.ranked = true;
      type.dims = dims;
    } else {
      const std::vector<HostValue>& elements = value.elements();
      const bool is_nested = !elements.empty() && !elements.front().is_tensor();
      type.kind = value.kind() == ValueKind::kSequence ? TypeKind::kSequence : TypeKind::kOptional;
      type.element = is_nested ? of(elements.front()) : &types_.emplace_back(tensor(value.dtype()));
    }
    return &types_.emplace_back(type);
  }

 private:
  static TypeDecl tensor(DType dtype) {
    TypeDecl type;
    type.kind = TypeKind::kTensor;
    type.element_code = static_cast<std::int32_t>(dtype);
    return type;
  }

  std::deque<TypeDecl> types_;
  std::deque<std::vector<DimDecl>> dims_;
};

/// The node becomes all of the main graph.
void isolate(Model& model, const Reproduction& what, Declarations& declarations) {
  Graph& main = model.graphs[GraphId::kMain];
  main.nodes = {};
  main.nodes.append(what.node);
  main.inputs.clear();
  main.outputs.clear();
  main.initializers.clear();
  main.outer_output_types.clear();
  // These speak of other nodes and values.
  model.metadata.clear();
  model.device_configurations.clear();
  model.provenance = nullptr;
  for (const auto& [id, read] : what.read) {
    Value& value = model.values[id];
    value.type = declarations.of(read);
    value.is_output = false;
    const bool is_weight =
        value.origin == ValueOrigin::kInitializer && value.initializer != nullptr && !value.initializer->external;
    if (is_weight) {
      main.initializers.push_back(id);
      continue;
    }
    value.origin = ValueOrigin::kInput;
    value.initializer = nullptr;
    value.sparse_initializer = nullptr;
    main.inputs.push_back(id);
  }
  for (const auto& [id, expected] : what.expected) {
    Value& value = model.values[id];
    value.type = declarations.of(expected);
    value.is_output = true;
    main.outputs.push_back(id);
  }
}

}  // namespace

std::optional<Error> write_reproduction(Model model, const Reproduction& what, const std::string& folder,
                                        runtime::Memory& memory) {
  const std::string data = folder + "/test_data_set_0", recorded = folder + "/recorded";
  for (const std::string& each : {data, recorded}) {
    std::error_code error;
    std::filesystem::create_directories(each, error);
    if (error) return Error{fmt::format("`{}` cannot be made: {}", each, error.message()), {}};
  }
  Declarations declarations;
  isolate(model, what, declarations);
  const Result<EditedBytes> bytes = write_onnx(model);
  if (!bytes) return bytes.error();
  if (auto failed = write_file_in_folder(folder + "/model.onnx", bytes->parts())) return failed;
  const auto write = [&](const std::string& path, const HostValue& value, ValueId id) {
    return runtime::write_value_file(path, value, model.name_of(id), memory);
  };
  const Graph& main = model.graph(GraphId::kMain);
  for (std::size_t i = 0; i < main.inputs.size(); ++i) {
    const ValueId id = main.inputs[i];
    const HostValue& read = what.read.at(id);
    if (auto failed = write(fmt::format("{}/input_{}.pb", data, i), read, id)) return failed;
    if (!read.is_tensor()) continue;
    if (auto failed = write(fmt::format("{}/input_{}.pb", recorded, i), read, id)) return failed;
  }
  for (std::size_t i = 0; i < main.outputs.size(); ++i) {
    const ValueId id = main.outputs[i];
    if (auto failed = write(fmt::format("{}/output_{}.pb", data, i), what.expected.at(id), id)) return failed;
    const auto other = what.recorded.find(id);
    if (other == what.recorded.end()) continue;
    if (auto failed = write(fmt::format("{}/output_{}.pb", recorded, i), other->second, id)) return failed;
  }
  return std::nullopt;
}

}  // namespace tensorlint::compare
