#pragma once

#include "onnx.pb.h"

namespace tensorlint {

/// Takes away what the protobuf of ONNX can say in two ways without a difference in meaning: a string that is there but
/// empty, the model version 0, a type of no kind, an output that is declared once more in the same words. Everything
/// else has to be equal.
class NormalForm {
 public:
  static std::string of(::onnx::ModelProto model) {
    if (model.domain().empty()) model.clear_domain();
    if (model.producer_name().empty()) model.clear_producer_name();
    if (model.producer_version().empty()) model.clear_producer_version();
    if (model.doc_string().empty()) model.clear_doc_string();
    if (model.model_version() == 0) model.clear_model_version();
    for (auto& import : *model.mutable_opset_import()) normalise(import);
    if (model.has_graph()) normalise(*model.mutable_graph());
    for (auto& function : *model.mutable_functions()) {
      if (function.domain().empty()) function.clear_domain();
      if (function.overload().empty()) function.clear_overload();
      if (function.doc_string().empty()) function.clear_doc_string();
      for (auto& import : *function.mutable_opset_import()) normalise(import);
      for (auto& node : *function.mutable_node()) normalise(node);
      for (auto& value : *function.mutable_value_info()) normalise(value);
      for (auto& attribute : *function.mutable_attribute_proto()) normalise(attribute);
    }
    return model.SerializeAsString();  // the lite runtime cannot compare messages; equal ones serialise to equal bytes
  }

 private:
  static void normalise(::onnx::OperatorSetIdProto& import) {
    if (import.domain().empty()) import.clear_domain();
  }
  static void normalise(::onnx::GraphProto& graph) {
    if (graph.name().empty()) graph.clear_name();
    if (graph.doc_string().empty()) graph.clear_doc_string();
    for (auto& node : *graph.mutable_node()) normalise(node);
    for (auto& tensor : *graph.mutable_initializer()) normalise(tensor);
    for (auto* values : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
      for (auto& value : *values) normalise(value);
    for (const auto& output : graph.output())
      for (int i = graph.value_info_size() - 1; i >= 0; --i)
        if (graph.value_info(i).SerializeAsString() == output.SerializeAsString())
          graph.mutable_value_info()->DeleteSubrange(i, 1);
  }
  static void normalise(::onnx::NodeProto& node) {
    if (node.name().empty()) node.clear_name();
    if (node.domain().empty()) node.clear_domain();
    if (node.overload().empty()) node.clear_overload();
    if (node.doc_string().empty()) node.clear_doc_string();
    for (auto& attribute : *node.mutable_attribute()) normalise(attribute);
  }
  static void normalise(::onnx::AttributeProto& attribute) {
    if (attribute.doc_string().empty()) attribute.clear_doc_string();
    if (attribute.ref_attr_name().empty()) attribute.clear_ref_attr_name();
    if (attribute.has_t()) normalise(*attribute.mutable_t());
    if (attribute.has_g()) normalise(*attribute.mutable_g());
    for (auto& tensor : *attribute.mutable_tensors()) normalise(tensor);
    for (auto& graph : *attribute.mutable_graphs()) normalise(graph);
  }
  static void normalise(::onnx::TensorProto& tensor) {
    if (tensor.name().empty()) tensor.clear_name();
    if (tensor.doc_string().empty()) tensor.clear_doc_string();
    if (tensor.data_location() == ::onnx::TensorProto::DEFAULT) tensor.clear_data_location();
  }
  static void normalise(::onnx::ValueInfoProto& value) {
    if (value.doc_string().empty()) value.clear_doc_string();
    if (value.has_type() && value.type().value_case() == ::onnx::TypeProto::VALUE_NOT_SET &&
        value.type().denotation().empty())
      value.clear_type();
  }
};

}  // namespace tensorlint
