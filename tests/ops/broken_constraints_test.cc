// Each constraint is broken by some test, so that none holds whatever it is given. Constraints are counted in the
// sources; which of them did not hold is noted by the tests of operators (op_test.h) and of the solver, the fixtures of
// the rules and the tests here. ctest runs all of these in one process for it, with TENSORLINT_EVERY_CONSTRAINT set.
#include "tests/ops/broken_constraints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/ops/inference.h"
#include "ir/ops/signatures.h"
#include "ir/text/reader.h"
#include "tests/ops/op_test.h"

namespace tensorlint::ops {

std::set<std::string, std::less<>>& broken_constraints() {
  static std::set<std::string, std::less<>> labels;
  return labels;
}

void note_broken(const dataflow::Analysis& analysis) {
  for (const dataflow::NodeViolation& violation : analysis.violations())
    broken_constraints().emplace(violation.constraint->label);
}

namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The label of `Constraint kName{"label", ...`, whose name begins at `at`; empty for anything else.
std::string label_of_definition(std::string_view text, std::size_t at) {
  const auto skip = [&](std::string_view characters) {
    at = std::min(text.find_first_not_of(characters, at), text.size());
  };
  if (at >= text.size() || text[at] != 'k') return {};
  while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_')) ++at;
  skip(" \n");
  if (at >= text.size() || text[at] != '{') return {};
  skip("{ \n");
  if (at >= text.size() || text[at] != '"') return {};
  return std::string(text.substr(at + 1, text.find('"', at + 1) - at - 1));
}

/// Labels as they are defined in the sources: those of the solver's own constraints are in no registry.
std::multiset<std::string> labels_in_sources() {
  constexpr std::string_view kWord = "Constraint ";
  std::multiset<std::string> labels;
  for (const char* folder : {"ir", "passes", "analyzer"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(TENSORLINT_SOURCE_DIR) / folder)) {
      if (entry.path().extension() != ".cc" && entry.path().extension() != ".h") continue;
      const std::string text = read_file(entry.path());
      for (std::size_t at = text.find(kWord); at != std::string::npos; at = text.find(kWord, at + 1))
        if (std::string label = label_of_definition(text, at + kWord.size()); !label.empty())
          labels.insert(std::move(label));
    }
  }
  return labels;
}

class EveryConstraintIsBroken : public testing::Environment {
 public:
  void TearDown() override {
    if (std::getenv("TENSORLINT_EVERY_CONSTRAINT") == nullptr) return;
    for (const std::string& label : labels_in_sources())
      EXPECT_TRUE(broken_constraints().contains(label)) << "no test breaks " << label;
  }
};

const auto* const kEnvironment = testing::AddGlobalTestEnvironment(new EveryConstraintIsBroken);

TEST(BrokenConstraints, AreAllInTheSources) {
  const std::multiset<std::string> labels = labels_in_sources();
  for (const Constraint* constraint : all_constraints())
    EXPECT_TRUE(labels.contains(std::string(constraint->label))) << constraint->label;
  for (const std::string& label : labels)
    EXPECT_EQ(labels.count(label), 1U) << label << " is the label of two constraints";
  EXPECT_GE(labels.size(), 240U);
}

using Labels = std::vector<std::string>;

/// Labels of what does not hold in a model in text.
Labels broken_by(const std::string& text, const dataflow::AnalysisOptions& options = {}) {
  const Result<Model> model = read_onnx_text(text, "test.onnxtxt");
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  if (!model) return {};
  const dataflow::Analysis analysis = dataflow::analyse(*model, options);
  note_broken(analysis);
  Labels labels;
  for (const dataflow::NodeViolation& violation : analysis.violations())
    labels.emplace_back(violation.constraint->label);
  return labels;
}

TEST(BrokenConstraints, OfLosses) {
  const auto loss = [](std::string_view name, std::string_view input, std::string_view target) {
    return Op(name, 1, "tensorlint").in(input).in(target).infer();
  };
  EXPECT_EQ(loss("MseLoss", "float32[N, 3]", "float32[N, 3]").failures, Labels{});
  EXPECT_EQ(loss("MseLoss", "float32[N, 3]", "float32[N, 4]").failures, Labels{"loss_shapes_broadcast"});
  EXPECT_EQ(loss("L1Loss", "float32[N, 1]", "float32[N]").failures, Labels{});
  EXPECT_EQ(loss("BceLoss", "float32[N, 3]", "float32[N, 4]").failures, Labels{"loss_shapes_equal"});
  EXPECT_EQ(loss("BceWithLogitsLoss", "float32[N, 1]", "float32[N]").failures, Labels{"loss_shapes_equal"});
  EXPECT_EQ(loss("CrossEntropyLoss", "float32[N, 3]", "int64[N]").failures, Labels{});
  EXPECT_EQ(loss("CrossEntropyLoss", "float32[N, 3]", "int64[N, 3]").failures, Labels{"cross_entropy_shapes"});
  EXPECT_EQ(loss("CrossEntropyLoss", "float32[N, 3]", "float32[N, 3]").failures, Labels{});
  EXPECT_EQ(loss("CrossEntropyLoss", "float32[N, 3]", "float32[N, 4]").failures, Labels{"cross_entropy_probabilities"});
  EXPECT_EQ(loss("CrossEntropyLoss", "float32[N, 3]", "float64[N, 3]").failures, Labels{"probabilities_of_one_type"});
  EXPECT_EQ(loss("CrossEntropyLoss", "float32[N, 3]", "float32[N]").failures, Labels{"class_index_is_integer"});
  const auto weighted = [](std::string_view weight) {
    return Op("NllLoss", 1, "tensorlint").in("float32[N, 3]").in("int64[N]").in(weight).infer().failures;
  };
  EXPECT_EQ(weighted("float32[3]"), Labels{});
  EXPECT_EQ(weighted("float32[4]"), Labels{"class_weights"});
  EXPECT_EQ(weighted("float32[1, 3]"), Labels{"class_weights"});
  EXPECT_EQ(loss("NllLoss", "float32[4, 3, 5]", "int64[4, 6]").failures, Labels{"cross_entropy_shapes"});
  const auto classes = [](std::vector<std::int64_t> labels) {
    return Op("CrossEntropyLoss", 1, "tensorlint").in("float32[2, 3]").constant(std::move(labels)).infer();
  };
  EXPECT_EQ(classes({2, -100}).failures, Labels{});
  EXPECT_EQ(classes({0, 3}).failures, Labels{"cross_entropy_classes"});
  EXPECT_EQ(classes({-1, 0}).failures, Labels{"cross_entropy_classes"});
}

TEST(BrokenConstraints, OfOneTileAxis) {
  const auto tile = [](double tiles, double axis) {
    return Op("Tile", 1).in("float32[2, N]").floats({tiles}, "float32[]").floats({axis}, "float32[]").infer();
  };
  EXPECT_EQ(tile(3, 0).result(), "float32[6, N]");
  EXPECT_EQ(tile(3, -1).result(), "float32[2, 3*N]");
  EXPECT_EQ(tile(2.5, 0).result(), "float32[?, N]");
  EXPECT_EQ(tile(-1, 0).result(), "float32[?, N]");
  EXPECT_EQ(tile(3, 2).failures, Labels{"tile_axis_in_range"});
}

/// A required attribute whose tensor does not matter.
Attribute tensor_attribute(std::string_view name) {
  static const Tensor kTensor = [] {
    Tensor tensor;
    tensor.dtype_code = 1;
    return tensor;
  }();
  Attribute attribute;
  attribute.name = name;
  attribute.kind = AttributeKind::kTensor;
  attribute.tensor = &kTensor;
  return attribute;
}

TEST(BrokenConstraints, OfTrees) {
  const auto trees = [](std::string_view data) {
    return Op("TreeEnsemble", 5, "ai.onnx.ml")
        .in(data)
        .ints("nodes_featureids", {0})
        .ints("nodes_truenodeids", {0})
        .ints("nodes_falsenodeids", {0})
        .ints("nodes_trueleafs", {1})
        .ints("nodes_falseleafs", {1})
        .ints("tree_roots", {0})
        .ints("leaf_targetids", {0})
        .attribute(tensor_attribute("nodes_modes"))
        .attribute(tensor_attribute("nodes_splits"))
        .attribute(tensor_attribute("leaf_weights"))
        .infer();
  };
  EXPECT_EQ(trees("float32[N, 3]").failures, Labels{});
  EXPECT_EQ(trees("float32[N, 3, 2]").failures, Labels{"tree_data_rank"});
}

TEST(BrokenConstraints, OfResults) {
  EXPECT_EQ(Op("Relu", 14).in("float32[2]").results(2).infer().failures, Labels{"result_count"});
  EXPECT_EQ(Op("BatchNormalization", 15)
                .in("float32[N, 3]")
                .in("float32[3]")
                .in("float32[3]")
                .in("float32[3]")
                .in("float32[3]")
                .results(4)
                .infer()
                .failures,
            Labels{"result_count"});
}

TEST(BrokenConstraints, OfScannedAxes) {
  const auto scan = [](std::string_view axis) {
    return broken_by(
        "<ir_version: 10, opset_import: [\"\": 21]>\ng (float[3] x, float[N, 3] z) => (s, y) {"
        " s, y = Scan <num_scan_inputs = 1, scan_input_axes = [" +
        std::string(axis) + "], body = b (float[3] a, e) => (float[3] n, o) { n = Abs(a) o = Neg(e) }> (x, z) }");
  };
  EXPECT_EQ(scan("-2"), Labels{});
  EXPECT_EQ(scan("2"), Labels{"scan_axes_in_range"});
}

TEST(BrokenConstraints, OfFunctionCalls) {
  const auto called = [](std::string_view call) {
    return broken_by("<ir_version: 10, opset_import: [\"\": 21, \"local\": 1]>\ng (float[N] x) => (y) { " +
                     std::string(call) +
                     " }\n<domain: \"local\", opset_import: [\"\": 21]>\nf (a) => (b) { b = Relu(a) }");
  };
  EXPECT_EQ(called("y = local.f(x)"), Labels{});
  EXPECT_EQ(called("y = local.f(x, x)"), Labels{"call_arity"});
  EXPECT_EQ(called("y, z = local.f(x)"), Labels{"call_arity"});
}

TEST(BrokenConstraints, OfSignatures) {
  const auto called = [](std::string_view operands) {
    const Result<Signature> signature = make_signature({"T[N, 2*N]", "T[N]", "int64[]?"}, {"T[N]"});
    EXPECT_FALSE(signature) << "a dim of an operand cannot be an expression";
    Result<Signature> good = make_signature({"T[N, C]", "T[C]", "int64[]?"}, {"T[N]"});
    EXPECT_TRUE(good) << (good ? "" : good.error().message);
    dataflow::AnalysisOptions options;
    options.signatures =
        std::make_shared<const Signatures>(Signatures{{{"own", "RowNorm"}, good ? std::move(*good) : Signature{}}});
    return broken_by(
        "<ir_version: 10, opset_import: [\"\": 21, \"own\": 1]>\n"
        "g (float[4, 3] x, float[3] w, float[5] v, double[3] d, int64 i, seq(float[3]) s) => (y) { "
        "y = own.RowNorm(" +
            std::string(operands) + ") }",
        options);
  };
  EXPECT_EQ(called("x, w, i"), Labels{});
  EXPECT_EQ(called("x"), Labels{"signature_operand_count"});
  EXPECT_EQ(called("x, w, i, i"), Labels{"signature_operand_count"});
  EXPECT_EQ(called("x, w, w"), (Labels{"signature_type", "signature_shape"}));
  EXPECT_EQ(called("x, s"), Labels{"signature_type"});
  EXPECT_EQ(called("x, d"), Labels{"signature_same_type"});
  EXPECT_EQ(called("x, v"), Labels{"signature_shape"});
  EXPECT_EQ(called("w, w"), Labels{"signature_shape"});
}

}  // namespace
}  // namespace tensorlint::ops
