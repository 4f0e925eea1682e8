#include "tests/ops/op_test.h"

namespace tensorlint {
namespace {

using Labels = std::vector<std::string>;

Op ml(std::string_view name, std::int64_t opset = 3) { return Op(name, opset, "ai.onnx.ml"); }

TEST(TraditionalMl, Shapes) {
  EXPECT_EQ(ml("ArrayFeatureExtractor").in("float32[N, 5]").constant({0, 4}).infer().result(), "float32[N, 2]");
  EXPECT_EQ(ml("ArrayFeatureExtractor").in("float32[5]").constant({0, 4}).infer().result(), "float32[1, 2]");
  EXPECT_EQ(ml("FeatureVectorizer").in("float32[N, 5]").in("float32[N, 2]").infer().result(), "float32[N, 7]");
  EXPECT_EQ(
      ml("LabelEncoder", 2).in("string[N]").strings("keys_strings", {"a"}).ints("values_int64s", {1}).infer().result(),
      "int64[N]");
  EXPECT_EQ(ml("LabelEncoder", 2)
                .in("string[N]")
                .strings("keys_strings", {"a", "b"})
                .ints("values_int64s", {1})
                .infer()
                .failures,
            Labels{"label_encoder_table"});
  EXPECT_EQ(ml("LabelEncoder", 2)
                .in("string[N]")
                .strings("keys_strings", {"a"})
                .ints("keys_int64s", {1})
                .ints("values_int64s", {1})
                .infer()
                .failures,
            Labels{"label_encoder_table"});
  EXPECT_EQ(ml("TreeEnsembleRegressor", 3)
                .in("float32[N, 3]")
                .ints("nodes_treeids", {0, 0, 0})
                .ints("nodes_truenodeids", {1, 0})
                .infer()
                .failures,
            Labels{"tree_nodes"});
  EXPECT_TRUE(ml("TreeEnsembleRegressor", 3)
                  .in("float32[N, 3]")
                  .ints("nodes_treeids", {0, 0, 0})
                  .ints("nodes_truenodeids", {1, 0, 0})
                  .infer()
                  .failures.empty());
  EXPECT_EQ(ml("LabelEncoder", 1).in("int64[N]").strings("classes_strings", {"a"}).infer().result(), "string[N]");
  EXPECT_EQ(ml("LinearClassifier")
                .in("float32[N, 2]")
                .float_list("coefficients", {1, 2})
                .ints("classlabels_ints", {0, 1})
                .results(2)
                .infer()
                .results,
            (Labels{"int64[N]", "float32[N, 2]"}));
  EXPECT_EQ(ml("LinearRegressor").in("float32[N, 2]").float_list("coefficients", {1, 2}).infer().result(),
            "float32[N, 1]");
  EXPECT_EQ(ml("OneHotEncoder").in("int64[N]").ints("cats_int64s", {0, 1, 2}).infer().result(), "float32[N, 3]");
  EXPECT_EQ(ml("TreeEnsembleClassifier")
                .in("float32[N, 2]")
                .strings("classlabels_strings", {"a", "b", "c"})
                .results(2)
                .infer()
                .results,
            (Labels{"string[N]", "float32[N, 3]"}));
  EXPECT_EQ(ml("ZipMap", 1).in("float32[N, 2]").ints("classlabels_int64s", {0, 1}).infer().result(),
            "seq(map(int64, float32[...]))");
  EXPECT_EQ(ml("Scaler").in("int64[N, 2]").float_list("scale", {1}).infer().result(), "float32[N, 2]");
}

TEST(TraditionalMl, Broken) {
  EXPECT_EQ(ml("ArrayFeatureExtractor").in("float32[N, 5]").constant({0, 5}).infer().failures,
            Labels{"feature_extractor_index"});
  EXPECT_EQ(ml("ArrayFeatureExtractor").in("float32[]").constant({0}).infer().failures,
            Labels{"feature_extractor_rank"});
  EXPECT_EQ(ml("OneHotEncoder").in("int64[N]").infer().failures, Labels{"one_hot_encoder_categories"});
}

TEST(Training, Optimizers) {
  const auto adam = [](const char* gradient) {
    return Op("Adam", 1, "ai.onnx.preview.training")
        .in("float32[]")
        .in("int64[]")
        .in("float32[2, 3]")
        .in(gradient)
        .in("float32[2, 3]")
        .in("float32[2, 3]")
        .results(3)
        .infer();
  };
  EXPECT_EQ(adam("float32[2, 3]").results, (Labels{"float32[2, 3]", "float32[2, 3]", "float32[2, 3]"}));
  EXPECT_EQ(adam("float32[2, 4]").failures, Labels{"optimizer_shapes"});
  EXPECT_EQ(Op("Adagrad", 1, "ai.onnx.preview.training")
                .in("float32[]")
                .in("int64[]")
                .in("float32[2]")
                .in("float32[2]")
                .results(2)
                .infer()
                .failures,
            Labels{"optimizer_operand_count"});
  const auto gradient = [](std::uint32_t results) {
    return Op("Gradient", 1, "ai.onnx.preview.training")
        .in("float32[2]")
        .in("float32[3]")
        .strings("xs", {"a"})
        .strings("zs", {"b"})
        .with("y", "c")
        .results(results)
        .infer();
  };
  EXPECT_EQ(gradient(1).result(), "float32[2]");
  EXPECT_EQ(gradient(2).failures, Labels{"gradient_count"});
}

}  // namespace
}  // namespace tensorlint
