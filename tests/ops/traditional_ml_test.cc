#include "tests/ops/op_test.h"

namespace tensorlint::ops {
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
  EXPECT_EQ(ml("Scaler").in("int64[N, 2]").float_list("offset", {0}).float_list("scale", {1}).infer().result(),
            "float32[N, 2]");
}

/// A tree of a root and two leaves. The links of leaves mean nothing.
Labels tree_failures(std::vector<std::int64_t> nodes, std::vector<std::int64_t> to_true,
                     std::vector<std::int64_t> to_false, std::vector<std::int64_t> weighted, std::int64_t feature = 1) {
  return ml("TreeEnsembleClassifier")
      .in("float32[N, 2]")
      .ints("nodes_treeids", {0, 0, 0})
      .ints("nodes_nodeids", std::move(nodes))
      .strings("nodes_modes", {"BRANCH_LEQ", "LEAF", "LEAF"})
      .ints("nodes_featureids", {feature, 9, 9})
      .ints("nodes_truenodeids", std::move(to_true))
      .ints("nodes_falsenodeids", std::move(to_false))
      .ints("class_treeids", {0, 0})
      .ints("class_nodeids", std::move(weighted))
      .strings("classlabels_strings", {"a", "b"})
      .results(2)
      .infer()
      .failures;
}

TEST(TraditionalMl, Trees) {
  EXPECT_EQ(tree_failures({0, 1, 2}, {1, 7, 7}, {2, 0, 0}, {1, 2}), Labels{});
  EXPECT_EQ(tree_failures({0, 1, 1}, {1, 0, 0}, {1, 0, 0}, {1, 1}), Labels{"tree_links"});
  EXPECT_EQ(tree_failures({0, 1, 2}, {3, 0, 0}, {2, 0, 0}, {1, 2}), Labels{"tree_links"});
  EXPECT_EQ(tree_failures({0, 1, 2}, {1, 0, 0}, {0, 0, 0}, {1, 2}), Labels{"tree_links"});
  EXPECT_EQ(tree_failures({0, 1, 2}, {1, 0, 0}, {2, 0, 0}, {1, 9}), Labels{"tree_links"});
  EXPECT_EQ(tree_failures({0, 1, 2}, {1, 0, 0}, {2, 0, 0}, {1, 2}, 2), Labels{"tree_features"});
  EXPECT_EQ(tree_failures({0, 1, 2}, {1, 0, 0}, {2, 0, 0}, {1, 2}, -1), Labels{"tree_features"});
}

TEST(TraditionalMl, Broken) {
  EXPECT_EQ(ml("ArrayFeatureExtractor").in("float32[N, 5]").constant({0, 5}).infer().failures,
            Labels{"feature_extractor_index"});
  EXPECT_EQ(ml("ArrayFeatureExtractor").in("float32[]").constant({0}).infer().failures,
            Labels{"feature_extractor_rank"});
  EXPECT_EQ(ml("OneHotEncoder").in("int64[N]").infer().failures, Labels{"one_hot_encoder_categories"});
  const auto regress = [](std::vector<float> coefficients, std::int64_t targets) {
    return ml("LinearRegressor")
        .in("float32[N, 2]")
        .float_list("coefficients", std::move(coefficients))
        .with("targets", targets)
        .infer()
        .failures;
  };
  EXPECT_EQ(regress({1, 2}, 1), Labels{});
  EXPECT_EQ(regress({1, 2, 3, 4, 5}, 2), Labels{});  // onnxruntime leaves the last one out
  EXPECT_EQ(regress({1}, 1), Labels{"regressor_coefficients"});
  EXPECT_EQ(regress({1, 2, 3}, 2), Labels{"regressor_coefficients"});
}

// Shapes and dtypes that onnxruntime 1.31.1 gives for the same attributes.
TEST(TraditionalMl, SupportVectorMachines) {
  const auto regress = [](const char* data) {
    return ml("SVMRegressor", 1).in(data).float_list("coefficients", {1, -1}).with("n_supports", 2).infer();
  };
  EXPECT_EQ(regress("float32[N, 2]").result(), "float32[N, 1]");
  EXPECT_EQ(regress("int64[3, 2]").result(), "float32[3, 1]");
  EXPECT_EQ(regress("float32[2]").result(), "float32[?, 1]");
  EXPECT_EQ(regress("float32[2, 3, 2]").failures, Labels{"ml_data_rank"});
  const auto classify = [](std::vector<std::int64_t> labels, std::vector<std::int64_t> per_class, bool probabilities,
                           const char* transform = "NONE") {
    Op op = ml("SVMClassifier", 1);
    op.in("float32[N, 2]").ints("classlabels_ints", std::move(labels)).with("post_transform", transform).results(2);
    if (!per_class.empty()) op.ints("vectors_per_class", std::move(per_class));
    if (probabilities) op.float_list("prob_a", {1}).float_list("prob_b", {1});
    return op.infer().results;
  };
  EXPECT_EQ(classify({0, 1}, {1, 1}, false), (Labels{"int64[N]", "float32[N, 2]"}));
  EXPECT_EQ(classify({0, 1}, {1, 1}, true), (Labels{"int64[N]", "float32[N, 2]"}));
  EXPECT_EQ(classify({0, 1, 2}, {1, 1, 1}, false), (Labels{"int64[N]", "float32[N, 3]"}));
  EXPECT_EQ(classify({0, 1, 2, 3}, {1, 1, 1, 1}, false), (Labels{"int64[N]", "float32[N, 6]"}));
  EXPECT_EQ(classify({0, 1, 2, 3}, {1, 1, 1, 1}, true), (Labels{"int64[N]", "float32[N, 4]"}));
  EXPECT_EQ(classify({0, 1, 2}, {}, false), (Labels{"int64[N]", "float32[N, 3]"}));
  EXPECT_EQ(classify({7}, {}, false), (Labels{"int64[N]", "float32[N, 1]"}));
  EXPECT_EQ(classify({0, 1}, {1, 1}, false, "PROBIT"), (Labels{"int64[N]", "float32[N, ?]"}));
  EXPECT_EQ(classify({0, 1}, {1, 1, 1}, false), (Labels{"int64[N]", "float32[N, ?]"}));
  const auto named = ml("SVMClassifier", 1)
                         .in("float64[5, 2]")
                         .ints("classlabels_ints", {0, 1})
                         .strings("classlabels_strings", {"a", "b"})
                         .ints("vectors_per_class", {1, 1})
                         .results(2)
                         .infer();
  EXPECT_EQ(named.results, (Labels{"string[5]", "float32[5, 2]"}));
  EXPECT_EQ(ml("SVMClassifier", 1).in("float32[N, 2]").results(2).infer().failures, Labels{"classifier_labels"});
}

TEST(TraditionalMl, ElementByElement) {
  EXPECT_EQ(ml("Imputer", 1).in("float32[N, 2]").float_list("imputed_value_floats", {1}).infer().result(),
            "float32[N, 2]");
  EXPECT_EQ(ml("Imputer", 1).in("int64[2, 3, 2]").ints("imputed_value_int64s", {1}).infer().result(), "int64[2, 3, 2]");
  EXPECT_EQ(ml("Imputer", 1).in("float32[N, 2]").infer().failures, Labels{"imputer_values"});
  EXPECT_EQ(ml("Imputer", 1).in("float32[]").float_list("imputed_value_floats", {1}).infer().failures,
            Labels{"ml_data_rank"});
  const auto mapper = [](const char* data, std::vector<std::string_view> strings) {
    return ml("CategoryMapper", 1)
        .in(data)
        .ints("cats_int64s", {1, 2})
        .strings("cats_strings", std::move(strings))
        .infer();
  };
  EXPECT_EQ(mapper("int64[N, 2]", {"a", "b"}).result(), "string[N, 2]");
  EXPECT_EQ(mapper("string[3]", {"a", "b"}).result(), "int64[3]");
  EXPECT_EQ(mapper("string[]", {"a", "b"}).result(), "int64[]");
  EXPECT_EQ(mapper("int64[2]", {"a"}).failures, Labels{"category_mapper_table"});
  EXPECT_EQ(ml("CategoryMapper", 1).in("int64[2]").infer().failures, Labels{"category_mapper_table"});
}

TEST(TraditionalMl, CastMap) {
  const auto cast = [](const char* to, const char* form, std::int64_t length) {
    Op op = ml("CastMap", 1);
    Fact map;
    map.kind = ValueKind::kMap;
    map.key = DType::kInt64;
    map.element = op.facts().intern(op.tensor("float32[]"));
    return op.in(map).with("cast_to", to).with("map_form", form).with("max_map", length).infer();
  };
  EXPECT_EQ(cast("TO_FLOAT", "DENSE", 3).result(), "float32[1, ?]");
  EXPECT_EQ(cast("TO_STRING", "DENSE", 3).result(), "string[1, ?]");
  EXPECT_EQ(cast("TO_INT64", "SPARSE", 8).result(), "int64[1, 8]");
  EXPECT_EQ(cast("TO_NOTHING", "DENSE", 3).failures, Labels{"cast_map_form"});
  EXPECT_EQ(cast("TO_FLOAT", "THIN", 3).failures, Labels{"cast_map_form"});
  EXPECT_EQ(cast("TO_FLOAT", "SPARSE", 0).failures, Labels{"cast_map_form"});
  EXPECT_EQ(cast("TO_FLOAT", "DENSE", 0).failures, Labels{});
}

TEST(TraditionalMl, LengthsAndWords) {
  const auto scale = [](const char* data, std::vector<float> offset, std::vector<float> factor) {
    return ml("Scaler").in(data).float_list("offset", std::move(offset)).float_list("scale", std::move(factor)).infer();
  };
  EXPECT_EQ(scale("float32[N, 2]", {1, 2}, {1, 2}).failures, Labels{});
  EXPECT_EQ(scale("float32[N, 2]", {1}, {1}).failures, Labels{});
  EXPECT_EQ(scale("float32[N, 2]", {1, 2, 3}, {1, 2, 3}).failures, Labels{"scaler_table"});
  EXPECT_EQ(scale("float32[2]", {1, 2, 3}, {1, 2, 3}).failures, Labels{"scaler_table"});
  EXPECT_EQ(scale("float32[N, F]", {1, 2, 3}, {1, 2, 3}).failures, Labels{});
  EXPECT_EQ(scale("float32[N, 2]", {1, 2}, {1}).failures, Labels{"scaler_table?"});
  EXPECT_EQ(scale("float32[N, 2]", {}, {1}).failures, Labels{"scaler_table"});
  EXPECT_EQ(ml("Normalizer").in("float32[N, 2]").with("norm", "L3").infer().failures, Labels{"normalizer_norm"});
  EXPECT_EQ(ml("Normalizer").in("float32[N, 2]").with("norm", "L1").infer().result(), "float32[N, 2]");
  EXPECT_EQ(ml("Normalizer").in("float32[N, 2, 2]").with("norm", "L1").infer().failures, Labels{"ml_data_rank"});
  EXPECT_EQ(ml("LabelEncoder", 3).in("int64[2]").infer().failures, Labels{"label_encoder_table"});
  EXPECT_EQ(ml("LabelEncoder", 3).in("int64[2]").ints("keys_int64s", {1}).infer().failures,
            Labels{"label_encoder_table"});
  EXPECT_EQ(
      ml("LinearRegressor").in("float32[N, 2]").float_list("coefficients", {1, 2}).with("targets", 0).infer().failures,
      Labels{"regressor_targets"});
  EXPECT_EQ(ml("ArrayFeatureExtractor").in("float32[N, 2]").constant({-1}).infer().failures,
            Labels{"feature_extractor_index?"});
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
}  // namespace tensorlint::ops
