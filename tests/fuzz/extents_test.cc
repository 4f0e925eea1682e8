#include "tests/fuzz/extents.h"

#include <gtest/gtest.h>
#include <onnx.pb.h>

#include <cstdint>
#include <random>
#include <set>
#include <string>

namespace tensorlint::fuzz {
namespace {

constexpr int kChanges = 400;

onnx::ModelProto model_of_extents() {
  onnx::ModelProto model;
  model.set_ir_version(10);
  onnx::GraphProto& graph = *model.mutable_graph();
  onnx::TensorProto& table = *graph.add_initializer();
  table.set_name("table");
  table.set_data_type(onnx::TensorProto::FLOAT);
  for (const int dim : {7, 11}) table.add_dims(dim);
  onnx::ValueInfoProto& input = *graph.add_input();
  input.set_name("x");
  input.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(13);
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("If");
  onnx::AttributeProto& body = *node.add_attribute();
  body.set_name("then_branch");
  onnx::TensorProto& shape = *body.mutable_g()->add_initializer();
  shape.set_name("shape");
  shape.add_int64_data(17);
  return model;
}

TEST(OtherExtents, ChangeTensorsAndDeclarationsAndBodiesOfWellFormedModels) {
  const std::string original = model_of_extents().SerializeAsString();
  std::mt19937_64 random(1);
  std::set<std::int64_t> of_tables, of_inputs, of_bodies;
  std::set<int> ranks;
  for (int i = 0; i < kChanges; ++i) {
    onnx::ModelProto changed;
    ASSERT_TRUE(changed.ParseFromString(with_other_extents(original, random)));
    ASSERT_EQ(changed.graph().node_size(), 1);
    EXPECT_EQ(changed.graph().initializer(0).name(), "table");
    const onnx::TensorProto& table = changed.graph().initializer(0);
    of_tables.insert(table.dims().begin(), table.dims().end());
    ranks.insert(table.dims_size());
    for (const auto& dim : changed.graph().input(0).type().tensor_type().shape().dim())
      of_inputs.insert(dim.dim_value());
    const auto& elements = changed.graph().node(0).attribute(0).g().initializer(0).int64_data();
    of_bodies.insert(elements.begin(), elements.end());
  }
  constexpr std::int64_t kProductOverflows = std::int64_t{1} << 62;
  for (const auto& extents : {of_tables, of_inputs, of_bodies}) {
    EXPECT_TRUE(extents.contains(0));
    EXPECT_TRUE(extents.contains(kProductOverflows));
  }
  EXPECT_TRUE(ranks.contains(1) && ranks.contains(2) && ranks.contains(3));
}

TEST(OtherExtents, ChangeNumbersOfTexts) {
  std::mt19937_64 random(1);
  std::set<std::string> texts;
  for (int i = 0; i < kChanges; ++i) texts.insert(with_other_extents("float[7] x", random));
  EXPECT_TRUE(texts.contains("float[0] x"));
  EXPECT_TRUE(texts.contains("float[4611686018427387904] x"));
}

TEST(OtherExtents, LeaveWhatIsNoModel) {
  std::mt19937_64 random(1);
  for (const std::string text : {"", "\x0a\xff", "no number"}) EXPECT_EQ(with_other_extents(text, random), text);
}

}  // namespace
}  // namespace tensorlint::fuzz
