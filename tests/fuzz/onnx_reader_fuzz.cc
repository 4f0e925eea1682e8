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
  const auto known = [&](ValueId id) { return id == ValueId::kAbsent || model->values.contains(id); };
  for (const NodeId id : model->nodes.ids()) {
    const Node& node = model->node(id);
    for (const ValueId operand : model->operands(node)) require(known(operand), "an operand is a value");
    for (const ValueId result : model->results(node)) {
      require(known(result), "a result is a value");
      if (result != ValueId::kAbsent)
        require(model->nodes.contains(model->value(result).producer), "a result has a producer");
    }
    for (const Attribute& attribute : model->attributes(node))
      if (attribute.graph != GraphId::kNone) require(model->graphs.contains(attribute.graph), "a body is a graph");
    if (model->provenance != nullptr && id < NodeId{64}) model->provenance->node_metadata(node);
  }
  for (const Value& value : model->values) {
    if (value.initializer == nullptr) continue;
    if (const auto integers = value.initializer->integers(1024))
      require(integers->size() <= 1024, "a tensor gives as many elements as asked for");
    if (const auto floats = value.initializer->floats(1024))
      require(floats->size() <= 1024, "a tensor gives as many elements as asked for");
  }
}

}  // namespace tensorlint::fuzz
