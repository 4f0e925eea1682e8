#include <gtest/gtest.h>

#include <string>

#include "ir/text/reader.h"

namespace tensorlint {
namespace {

TEST(Attributes, OfNodesWithManyAreFoundByName) {
  for (const std::size_t count : {std::size_t{3}, std::size_t{Model::kFewAttributes}, std::size_t{1000}}) {
    std::string given;
    for (std::size_t i = 0; i < count; ++i)
      given += "a" + std::to_string(i * 7 % count) + " = " + std::to_string(i) + ", ";
    const Result<Model> model =
        read_onnx_text(R"(<ir_version: 8, opset_import: ["" : 17, "local" : 1]> g (float[2] x) => (y, z) {)"
                       "u = Relu (x)\n y = local.F <" +
                           given + "b = 7> (u)\n z = local.F <" + given + "a0 = 9, c = 8> (u) }",
                       "m.onnxtxt");
    ASSERT_TRUE(model) << model.error().message;
    const auto at = [&](std::size_t node, const std::string& name) {
      return model->attribute(model->node(static_cast<NodeId>(node)), name);
    };
    for (std::size_t i = 0; i < count; ++i)
      for (const std::size_t node : {std::size_t{1}, std::size_t{2}}) {
        const Attribute* const found = at(node, "a" + std::to_string(i * 7 % count));
        ASSERT_NE(found, nullptr);
        EXPECT_EQ(found->i, static_cast<std::int64_t>(i)) << "of two, the first";
      }
    EXPECT_EQ(at(1, "b")->i, 7);
    EXPECT_EQ(at(2, "c")->i, 8);
    for (const char* const absent : {"", "a", "c", "zzz"}) EXPECT_EQ(at(1, absent), nullptr) << absent;
    EXPECT_EQ(at(0, "b"), nullptr);
  }
}

}  // namespace
}  // namespace tensorlint
