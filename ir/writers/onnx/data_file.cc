#include "ir/writers/onnx/data_file.h"

#include "ir/writers/onnx/wire.h"

namespace tensorlint {
namespace {

wire::Encoder head_of(std::string_view name, DType dtype, std::span<const std::int64_t> dims) {
  wire::Encoder encoder;
  for (const std::int64_t dim : dims) encoder.number(wire::kTensorDims, dim);
  encoder.number(wire::kTensorDataType, static_cast<std::int64_t>(dtype));
  if (!name.empty()) encoder.text(wire::kTensorName, name);
  return encoder;
}

}  // namespace

std::string tensor_head(std::string_view name, DType dtype, std::span<const std::int64_t> dims,
                        std::uint64_t raw_bytes) {
  wire::Encoder encoder = head_of(name, dtype, dims);
  encoder.head(wire::kTensorRawData, raw_bytes);
  return encoder.take();
}

std::string string_tensor_message(std::string_view name, std::span<const std::int64_t> dims,
                                  std::span<const std::pmr::string> strings) {
  wire::Encoder encoder = head_of(name, DType::kString, dims);
  for (const std::string_view text : strings) encoder.text(wire::kTensorStringData, text);
  return encoder.take();
}

std::string container_head(std::string_view name, std::int32_t element_kind) {
  // name = 1, elem_type = 2
  wire::Encoder encoder;
  if (!name.empty()) encoder.text(1, name);
  encoder.number(2, element_kind);
  return encoder.take();
}

std::string element_head(std::int32_t element_kind, std::uint64_t bytes) {
  // The values of kind k are field k + 2.
  wire::Encoder encoder;
  encoder.head(static_cast<std::uint32_t>(element_kind) + 2, bytes);
  return encoder.take();
}

std::string initializer_head(std::uint64_t bytes) {
  wire::Encoder encoder;
  encoder.head(wire::kGraphInitializer, bytes);
  return encoder.take();
}

std::string model_head(std::uint64_t graph_bytes) {
  constexpr std::int64_t kInitializersNeedNoInputs = 4;  // from this version of the IR on
  wire::Encoder encoder;
  encoder.number(wire::kModelIrVersion, kInitializersNeedNoInputs);
  encoder.head(wire::kModelGraph, graph_bytes);
  return encoder.take();
}

}  // namespace tensorlint
