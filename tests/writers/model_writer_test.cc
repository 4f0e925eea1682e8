// The writer of whole models against libprotobuf. All models of the onnx package: round_trip_test.py.
#include "ir/writers/onnx/model_writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "ir/readers/onnx/reader.h"
#include "ir/text/reader.h"
#include "tests/sanitized.h"
#include "tests/writers/normal_form.h"
#include "tests/writers/sample_bytes.h"

namespace tensorlint {
namespace {

namespace fs = std::filesystem;

void expect_equal(const ::onnx::ModelProto& original) {
  const std::string bytes = original.SerializeAsString();
  const Result<Model> model = read_onnx_bytes(bytes, "model.onnx");
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Result<EditedBytes> written = write_onnx(*model);
  ASSERT_TRUE(written.ok()) << written.error().message;
  ::onnx::ModelProto rebuilt;
  ASSERT_TRUE(rebuilt.ParseFromString(written->joined()));
  EXPECT_TRUE(NormalForm::of(original) == NormalForm::of(rebuilt)) << original.ShortDebugString() << "\n"
                                                                   << rebuilt.ShortDebugString();
}

::onnx::ModelProto small_model() {
  ::onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(21);
  ::onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("main");
  graph.add_input()->set_name("x");
  ::onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("Relu");
  node.add_input("x");
  node.add_output("y");
  graph.add_output()->set_name("y");
  return model;
}

void note(auto* entries, const std::string& key, const std::string& value) {
  auto& entry = *entries->Add();
  entry.set_key(key);
  entry.set_value(value);
}

TEST(ModelWriter, CarriesWhatTheGraphHasNoPlaceFor) {
  ::onnx::ModelProto model = small_model();
  model.set_domain("org.example");
  model.set_model_version(7);
  model.set_doc_string("the model");
  model.set_producer_name("somebody");
  note(model.mutable_metadata_props(), "k", "v");
  model.add_training_info()->mutable_algorithm()->set_name("step");
  ::onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_doc_string("the graph");
  note(graph.mutable_metadata_props(), "graph", "1");
  graph.add_quantization_annotation()->set_tensor_name("x");
  graph.mutable_node(0)->set_doc_string("the node");
  note(graph.mutable_node(0)->mutable_metadata_props(), "node", "2");
  model.mutable_unknown_fields()->append(
      "\xc2\x3e\x03"
      "new");  // field 1000, of some later version
  expect_equal(model);
}

/// As torch writes a branch that is no more than a constant.
TEST(ModelWriter, KeepsMetadataOfAnOutputThatIsAnInitializer) {
  ::onnx::ModelProto model = small_model();
  ::onnx::GraphProto& graph = *model.mutable_graph();
  ::onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name("zeros");
  tensor.set_data_type(::onnx::TensorProto::FLOAT);
  tensor.add_dims(1);
  tensor.add_float_data(0);
  ::onnx::ValueInfoProto& output = *graph.add_output();
  output.set_name("zeros");
  output.mutable_type()->mutable_tensor_type()->set_elem_type(::onnx::TensorProto::FLOAT);
  note(output.mutable_metadata_props(), "output", "1");
  expect_equal(model);
  graph.add_value_info()->CopyFrom(output);
  expect_equal(model);
}

TEST(ModelWriter, KeepsMetadataWhereTheyStand) {
  ::onnx::ModelProto model = small_model();
  ::onnx::GraphProto& graph = *model.mutable_graph();
  note(graph.mutable_input(0)->mutable_metadata_props(), "input", "1");
  for (const char* name : {"x", "w"}) {  // x: the input's default
    ::onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(::onnx::TensorProto::FLOAT);
    tensor.add_dims(1);
    tensor.add_float_data(0.5F);
    tensor.set_doc_string("a tensor");
    note(tensor.mutable_metadata_props(), "tensor", name);
  }
  ::onnx::ValueInfoProto& info = *graph.add_value_info();
  info.set_name("w");
  note(info.mutable_metadata_props(), "declaration", "3");
  expect_equal(model);
}

TEST(ModelWriter, KeepsTheTypeOfAnOuterValueThatABodyHandsOut) {
  ::onnx::ModelProto model = small_model();
  ::onnx::GraphProto& graph = *model.mutable_graph();
  graph.add_input()->set_name("flag");
  ::onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("If");
  node.add_input("flag");
  node.add_output("z");
  for (const char* name : {"then_branch", "else_branch"}) {
    ::onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(::onnx::AttributeProto::GRAPH);
    ::onnx::ValueInfoProto& output = *attribute.mutable_g()->add_output();
    output.set_name("y");
    output.mutable_type()->mutable_tensor_type()->set_elem_type(::onnx::TensorProto::FLOAT);
    output.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_param("N");
    attribute.mutable_g()->set_doc_string("a body");
  }
  expect_equal(model);
}

TEST(ModelWriter, KeepsEveryKindOfAttributeTypeAndTensor) {
  ::onnx::ModelProto model = small_model();
  ::onnx::GraphProto& graph = *model.mutable_graph();
  ::onnx::NodeProto& node = *graph.mutable_node(0);
  const auto attribute = [&](const char* name, ::onnx::AttributeProto::AttributeType type) -> ::onnx::AttributeProto& {
    ::onnx::AttributeProto& made = *node.add_attribute();
    made.set_name(name);
    made.set_type(type);
    return made;
  };
  attribute("f", ::onnx::AttributeProto::FLOAT).set_f(-0.0F);
  attribute("i", ::onnx::AttributeProto::INT).set_i(-1);
  attribute("s", ::onnx::AttributeProto::STRING).set_s(std::string("\0\xff", 2));
  attribute("fs", ::onnx::AttributeProto::FLOATS).add_floats(1);
  attribute("no_ints", ::onnx::AttributeProto::INTS);
  attribute("ss", ::onnx::AttributeProto::STRINGS).add_strings("");
  ::onnx::TensorProto& strings = *attribute("t", ::onnx::AttributeProto::TENSOR).mutable_t();
  strings.set_data_type(::onnx::TensorProto::STRING);
  strings.add_dims(1);
  strings.add_string_data("one");
  ::onnx::TensorProto& empty = *attribute("ts", ::onnx::AttributeProto::TENSORS).add_tensors();
  empty.set_data_type(::onnx::TensorProto::DOUBLE);
  empty.add_dims(0);
  empty.set_raw_data("");
  ::onnx::TypeProto& map = *attribute("tp", ::onnx::AttributeProto::TYPE_PROTO).mutable_tp();
  map.mutable_map_type()->set_key_type(::onnx::TensorProto::INT64);
  map.mutable_map_type()
      ->mutable_value_type()
      ->mutable_sequence_type()
      ->mutable_elem_type()
      ->mutable_tensor_type()
      ->set_elem_type(::onnx::TensorProto::FLOAT);
  ::onnx::SparseTensorProto& sparse = *attribute("sp", ::onnx::AttributeProto::SPARSE_TENSOR).mutable_sparse_tensor();
  sparse.add_dims(4);
  sparse.mutable_values()->set_data_type(::onnx::TensorProto::FLOAT);
  sparse.mutable_values()->add_dims(1);
  sparse.mutable_values()->add_float_data(2);
  sparse.mutable_indices()->set_data_type(::onnx::TensorProto::INT64);
  sparse.mutable_indices()->add_dims(1);
  sparse.mutable_indices()->add_int64_data(3);
  graph.add_sparse_initializer()->CopyFrom(sparse);
  graph.mutable_sparse_initializer(0)->mutable_values()->set_name("s");
  ::onnx::TensorProto& external = *graph.add_initializer();
  external.set_name("e");
  external.set_data_type(::onnx::TensorProto::FLOAT);
  external.add_dims(3);
  external.set_data_location(::onnx::TensorProto::EXTERNAL);
  note(external.mutable_external_data(), "location", "weights.bin");
  note(external.mutable_external_data(), "offset", "4096");
  ::onnx::ValueInfoProto& optional = *graph.add_input();
  optional.set_name("o");
  optional.mutable_type()->mutable_optional_type()->mutable_elem_type()->mutable_sparse_tensor_type()->set_elem_type(
      ::onnx::TensorProto::INT8);

  ::onnx::FunctionProto& function = *model.add_functions();
  function.set_name("Twice");
  function.set_domain("org.example");
  function.set_overload("o");
  function.set_doc_string("a function");
  function.add_input("a");
  function.add_output("b");
  function.add_attribute("alpha");
  function.add_opset_import()->set_version(17);
  ::onnx::AttributeProto& fallback = *function.add_attribute_proto();
  fallback.set_name("beta");
  fallback.set_type(::onnx::AttributeProto::INT);
  fallback.set_i(3);
  ::onnx::NodeProto& inner = *function.add_node();
  inner.set_op_type("LeakyRelu");
  inner.add_input("a");
  inner.add_output("b");
  ::onnx::AttributeProto& reference = *inner.add_attribute();
  reference.set_name("alpha");
  reference.set_type(::onnx::AttributeProto::FLOAT);
  reference.set_ref_attr_name("alpha");
  expect_equal(model);
}

TEST(ModelWriter, DoesNotCopyWeights) {
  ::onnx::ModelProto proto = small_model();
  ::onnx::TensorProto& tensor = *proto.mutable_graph()->add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(::onnx::TensorProto::UINT8);
  tensor.add_dims(100'000);
  tensor.set_raw_data(std::string(100'000, 'w'));
  const std::string bytes = proto.SerializeAsString();
  const Result<Model> model = read_onnx_bytes(bytes, "model.onnx");
  ASSERT_TRUE(model.ok());
  const Result<EditedBytes> written = write_onnx(*model);
  ASSERT_TRUE(written.ok());
  EXPECT_TRUE(std::ranges::any_of(written->parts(), [&](std::string_view part) {
    return part.size() == 100'000 && part.data() > bytes.data() && part.data() < bytes.data() + bytes.size();
  }));
  expect_equal(proto);
}

TEST(ModelWriter, WritesAModelInText) {
  const std::string text = R"(<ir_version: 10, opset_import: ["" : 21]>
main (float[N, 3] x, int64[N] t) => (float loss) <float[3] b = {1, 2, 3}> {
  [shift] y = Add (x, b)
  loss = SoftmaxCrossEntropyLoss <reduction = "sum"> (y, t)
}
)";
  const Result<Model> model = read_onnx_text(text, "model.onnxtxt");
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Result<EditedBytes> written = write_onnx(*model);
  ASSERT_TRUE(written.ok());
  ::onnx::ModelProto proto;
  ASSERT_TRUE(proto.ParseFromString(written->joined()));
  EXPECT_EQ(proto.graph().node(0).name(), "shift");
  EXPECT_EQ(proto.graph().node(1).attribute(0).s(), "sum");
  EXPECT_EQ(proto.graph().input(0).type().tensor_type().shape().dim(0).dim_param(), "N");
  EXPECT_EQ(proto.graph().initializer(0).dims(0), 3);
  expect_equal(proto);
}

/// Whatever the reader takes, the writer writes in a form that the reader takes again, with as many nodes and values.
TEST(ModelWriter, WritesWhatTheReaderTakesOfBrokenModels) {
  constexpr int kMutants = kSanitized ? 20 : 300;
  std::mt19937 random(5);
  int accepted = 0;
  for (const char* name : {"refine_loop_bad.onnx", "regression_bad.onnx", "classifier_bad.onnx"}) {
    const std::string bytes = bytes_of(fs::path(TENSORLINT_SOURCE_DIR) / "samples" / name);
    for (int mutant = 0; mutant < kMutants; ++mutant) {
      std::string broken = bytes;
      for (std::uint32_t i = 0; i <= random() % 4; ++i) broken[random() % broken.size()] = static_cast<char>(random());
      const Result<Model> model = read_onnx_bytes(broken, "broken.onnx");
      if (!model) continue;
      const Result<EditedBytes> written = write_onnx(*model);
      ASSERT_TRUE(written.ok()) << written.error().message;
      const std::string again_bytes = written->joined();
      const Result<Model> again = read_onnx_bytes(again_bytes, "again.onnx");
      ASSERT_TRUE(again.ok()) << again.error().message;
      EXPECT_EQ(model->nodes.size(), again->nodes.size());
      EXPECT_EQ(model->values.size(), again->values.size());
      ++accepted;
    }
  }
  EXPECT_GT(accepted, kMutants);
}

}  // namespace
}  // namespace tensorlint
