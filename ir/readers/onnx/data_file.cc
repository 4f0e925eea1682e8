#include "ir/readers/onnx/data_file.h"

#include <fmt/format.h>

#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <utility>

#include "ir/protobuf/onnx_fields.h"
#include "ir/readers/onnx/reader.h"

namespace tensorlint {
namespace {

constexpr int kMaxDepth = 16;
constexpr std::int64_t kIrVersion = 10;
// onnx.SequenceProto and OptionalProto: elem_type, then one field for each kind of value.
constexpr std::uint32_t kElementKind = 2, kTensors = 3, kSequences = 5, kOptionals = 7;

std::string_view view_of(protozero::data_view data) { return {data.data(), data.size()}; }

Result<ValueMessage> read(std::string_view message, TypeKind kind, int depth) {
  ValueMessage value{.kind = kind, .tensor = {}, .elements = {}};
  if (kind == TypeKind::kTensor) {
    value.tensor = message;
    return value;
  }
  if (depth == kMaxDepth) return Error{"sequences and optionals are nested too deep", {}};
  protozero::pbf_reader reader(message.data(), message.size());
  while (reader.next()) {
    TypeKind element = TypeKind::kNone;
    switch (reader.tag()) {
      case kElementKind:
        value.element_kind = reader.get_int32();
        continue;
      case kTensors:
        element = TypeKind::kTensor;
        break;
      case kSequences:
        element = TypeKind::kSequence;
        break;
      case kOptionals:
        element = TypeKind::kOptional;
        break;
      case 1:  // the name
        reader.skip();
        continue;
      default:
        return Error{"sparse tensors and maps are not read from files", {}};
    }
    Result<ValueMessage> part = read(view_of(reader.get_view()), element, depth + 1);
    if (!part) return part.error();
    value.elements.push_back(*std::move(part));
  }
  return value;
}

}  // namespace

Result<Model> read_tensor_message(std::string_view message, std::string path) {
  auto bytes = std::make_shared<std::string>();
  std::string tensor, graph;
  protozero::pbf_writer(tensor).add_string(wire::kTensorName, "value");  // for those without one: a later one counts
  tensor.append(message);
  protozero::pbf_writer(graph).add_message(wire::kGraphInitializer, tensor);
  protozero::pbf_writer model(*bytes);
  model.add_int64(wire::kModelIrVersion, kIrVersion);
  model.add_message(wire::kModelGraph, graph);
  const std::string_view view = *bytes;
  Result<Model> read = read_onnx_bytes(view, std::move(path), std::move(bytes));
  if (!read) return read;
  for (const StructureFault& fault : read->faults)
    if (fault.kind == StructureFault::Kind::kMalformedTensor) return Error{fault.message, {}};
  return read;
}

Result<ValueMessage> read_value_message(std::string_view message, TypeKind kind) {
  try {
    return read(message, kind, 0);
  } catch (const protozero::exception& fault) {
    return Error{fmt::format("not a value: {}", fault.what()), {}};
  }
}

}  // namespace tensorlint
