#include "ir/readers/onnx/schema_function.h"

#include <fmt/format.h>

#include <memory>
#include <protozero/pbf_writer.hpp>
#include <string>

#include "ir/protobuf/onnx_fields.h"
#include "ir/readers/onnx/reader.h"

namespace tensorlint {
namespace {

constexpr std::int64_t kFunctionIrVersion = 10;  // knows functions and everything in them

}  // namespace

Result<Model> read_schema_function(const OpSchema& schema) {
  if (schema.function_body.empty()) return Error{fmt::format("ONNX does not define {} by a function", schema.name), {}};
  auto bytes = std::make_shared<std::string>();
  protozero::pbf_writer model(*bytes);
  model.add_int64(wire::kModelIrVersion, kFunctionIrVersion);
  std::string import, graph;
  protozero::pbf_writer opset(import);
  opset.add_string(wire::kOpsetDomain, "");
  opset.add_int64(wire::kOpsetVersion, schema.function_opset);
  model.add_message(wire::kModelOpsetImport, import);
  protozero::pbf_writer(graph).add_string(wire::kGraphName, "empty");
  model.add_message(wire::kModelGraph, graph);
  model.add_message(wire::kModelFunction, schema.function_body.data(), schema.function_body.size());
  return read_onnx_bytes(*bytes, fmt::format("<{}>", schema.name), bytes);
}

}  // namespace tensorlint
