#include "ir/readers/onnx/reader.h"
#include "tests/fuzz/fuzz_target.h"

namespace tensorlint::fuzz {

void onnx_reader(std::string_view bytes) {
  const Result<Model> model = read_onnx_bytes(bytes, "model.onnx");
  if (!model) {
    require(!model.error().message.empty(), "an error says something");
    require(model.error().position.offset <= bytes.size(), "an error lies within the file");
    return;
  }
  const std::size_t values = model->values.size();
  const auto known = [&](ValueId id) { return id == ValueId::kAbsent || static_cast<std::size_t>(id) < values; };
  for (std::size_t n = 0; n < model->nodes.size(); ++n) {
    const Node& node = model->nodes[n];
    for (const ValueId operand : model->operands(node)) require(known(operand), "an operand is a value");
    for (const ValueId result : model->results(node)) {
      require(known(result), "a result is a value");
      if (result != ValueId::kAbsent)
        require(static_cast<std::size_t>(model->value(result).producer) < model->nodes.size(),
                "a result has a producer");
    }
    for (const Attribute& attribute : model->attributes(node))
      if (attribute.graph != GraphId::kNone)
        require(static_cast<std::size_t>(attribute.graph) < model->graphs.size(), "a body is a graph");
    if (model->provenance != nullptr && n < 64) model->provenance->node_metadata(node);
  }
  for (std::size_t v = 0; v < values; ++v) {
    const Value& value = model->values[v];
    if (value.initializer == nullptr) continue;
    if (const auto integers = value.initializer->integers(1024))
      require(integers->size() <= 1024, "a tensor gives as many elements as asked for");
    if (const auto floats = value.initializer->floats(1024))
      require(floats->size() <= 1024, "a tensor gives as many elements as asked for");
  }
}

}  // namespace tensorlint::fuzz

TENSORLINT_FUZZER(tensorlint::fuzz::onnx_reader)
