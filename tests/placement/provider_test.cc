// Tables of execution providers, and where they make nodes run.
#include "passes/placement/provider.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/text/reader.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::placement {
namespace {

std::string error_of(std::string_view text) {
  const auto table = parse_provider(text, "t.txt");
  return table ? "" : table.error().message;
}

TEST(ProviderTable, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(error_of("provider p\ndevice npu:0\nRelu 6+ T=float32\n"), "");
  EXPECT_EQ(error_of("device npu:0\n"), "t.txt:1: the table has no line `provider NAME`");
  EXPECT_EQ(error_of("provider p\n"), "t.txt:1: the table has no line `device NAME`");
  EXPECT_EQ(error_of("provider p\ndevice npu five\n"),
            "t.txt:2: `npu five` is not a device; expected cpu, cuda:0, ...");
  EXPECT_EQ(error_of("provider p\ndevice cpu\nRelu\n"),
            "t.txt:3: after `Relu` comes a range of opsets, 13+ or 6-12, not ``");
  for (const char* opsets : {"13", "0+", "-3+", "12-6", "x+", "99999999999999999999+"})
    EXPECT_EQ(error_of(std::string("provider p\ndevice cpu\nRelu ") + opsets),
              std::string("t.txt:3: after `Relu` comes a range of opsets, 13+ or 6-12, not `") + opsets + "`");
  EXPECT_EQ(error_of("provider p\ndevice cpu\nRelu 6+ T=float33\n"), "t.txt:3: `float33` is not a dtype");
  EXPECT_EQ(error_of("provider p\ndevice cpu\nRelu 6+ float32\n"),
            "t.txt:3: `float32` is not of the form T=float32,float16");
  std::string types;
  for (int i = 0; i < 65; ++i) types += " T" + std::to_string(i) + "=int8";
  EXPECT_EQ(error_of("provider p\ndevice cpu\nSum 13+" + types), "t.txt:3: more than 64 type variables");
  EXPECT_EQ(error_of("device cpu\nprovider " + std::string(201, 'p')),
            "t.txt:2: what `provider` says is longer than 200 bytes");
  EXPECT_EQ(error_of("provider p\ndevice npu:0\nhost npu\n"),
            "t.txt:3: after `host` comes a built-in provider, not `npu`; there are cpu, cuda, tensorlint-cpu, "
            "tensorlint-cuda");
}

TEST(ProviderTable, IsBuiltIn) {
  const auto cuda = built_in_provider("cuda");
  ASSERT_NE(cuda, nullptr);
  EXPECT_EQ(cuda->device, "cuda:0");
  EXPECT_EQ(cuda->source, "onnxruntime 1.23.0, 2025-07-22");
  EXPECT_TRUE(cuda->kernels.contains("Softmax"));
  EXPECT_TRUE(cuda->kernels.contains("com.microsoft.FusedMatMul"));
  EXPECT_FALSE(cuda->kernels.contains("StringNormalizer"));
  // Without constraints on types, and therefore not on onnxruntime's page.
  EXPECT_TRUE(cuda->kernels.contains("NonMaxSuppression"));
  EXPECT_TRUE(built_in_provider("cpu")->kernels.contains("NonMaxSuppression"));
  EXPECT_EQ(built_in_provider("npu"), nullptr);
  const auto own = built_in_provider("tensorlint-cuda");
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(own->device, "cuda:0");
  EXPECT_EQ(own->host, "tensorlint-cpu");
  EXPECT_EQ(cuda->host, "cpu");
}

/// "node provider" of each node that providers were asked for, in file order; "+shape" for shape arithmetic.
std::string choices(const std::string& text, const std::string& table) {
  const Result<Model> model = read_onnx_text(text, "m.onnxtxt");
  EXPECT_TRUE(model) << model.error().message;
  const dataflow::Analysis analysis = dataflow::analyse(*model, {});
  const auto built_in = built_in_provider(table);
  const auto parsed =
      built_in != nullptr ? built_in : std::make_shared<const ProviderTable>(parse_provider(table, "t").value());
  const std::vector<std::shared_ptr<const ProviderTable>> providers{parsed};
  std::string said;
  for (const auto& [node, choice] : choose_providers(analysis, providers))
    said += std::string(model->label(node)) +
            (choice.provider == 0      ? " there"
             : choice.shape_arithmetic ? " shape"
                                       : " cpu: " + to_text(choice.missing, model->op(model->node(node)), *parsed)) +
            "\n";
  return said;
}

TEST(Providers, RunWhatTheyHaveKernelsFor) {
  const std::string model =
      "<ir_version: 10, opset_import: [\"\": 20]>\ng (float[N] x, int64[N] n) => (y, a, b) { [soft] y = Softmax (x) "
      "[a] a = ArgMax (n) [b] b = Relu (x) }";
  EXPECT_EQ(choices(model, "cuda"), "soft there\na cpu: no kernel of cuda for int64\nb there\n");
  EXPECT_EQ(choices(model, "provider p\ndevice npu:0\nSoftmax 11-12\nRelu 14+ T=float32\nArgMax 1-20"),
            "soft cpu: no kernel of p for version 13 of the operator, the newest is for 12\na there\nb there\n");
  // A row without an end is for the operator's own version alone.
  EXPECT_EQ(choices(model, "provider p\ndevice npu:0\nSoftmax 11+\nRelu 6+ T=float16"),
            "soft cpu: no kernel of p for version 13 of the operator, the newest is for 11\na cpu: no kernel of p\n"
            "b cpu: no kernel of p for version 14 of the operator, the newest is for 6\n");
}

// The kernels of `run --device`: their dtypes, and none for what only the interpreter runs.
TEST(Providers, KnowOurOwnKernels) {
  EXPECT_EQ(
      choices("<ir_version: 10, opset_import: [\"\": 20]>\ng (float[N, 4] x, int32[N] n) => (y, a, b, c) { [soft] y = "
              "Softmax (x) [a] a = ReduceMean (n) [b] b = Asin (x) [c] c = ReduceMax (n) }",
              "tensorlint-cuda"),
      "soft there\na cpu: no kernel of tensorlint-cuda for int32\nb cpu: no kernel of tensorlint-cuda\nc there\n");
  // onnxruntime's cpu has no kernel of Mish and would replace it by its function; the interpreter runs it.
  EXPECT_EQ(choices("<ir_version: 10, opset_import: [\"\": 20]>\ng (float[N] x) => (m) { [m] m = Mish (x) }",
                    "tensorlint-cuda"),
            "m cpu: no kernel of tensorlint-cuda\n");
}

TEST(Providers, LeaveShapeArithmeticOnTheCpu) {
  EXPECT_EQ(choices("<ir_version: 10, opset_import: [\"\": 20]>\ng (float[N, 4] x) => (y, z) <int64[1] i = {0}, "
                    "int64[1] j = {-1}> {\n"
                    "[s] s = Shape (x) [n] n = Gather (s, i) [t] t = Concat <axis = 0> (n, j) [y] y = Reshape (x, t) "
                    "[z] z = Relu (x) }",
                    "cuda"),
            "s there\nn shape\nt shape\ny there\nz there\n");
}

// ONNX defines both by other operators; the cpu has a kernel of Celu, and none of Mish.
TEST(Providers, ReplaceFunctionsThatNoKernelRuns) {
  EXPECT_EQ(
      choices(
          "<ir_version: 10, opset_import: [\"\": 20]>\ng (float[N] x) => (y, z) { [c] y = Celu (x) [m] z = Mish (x) }",
          "provider p\ndevice npu:0\nAdd 7+"),
      "c cpu: no kernel of p\nm there\n");
}

}  // namespace
}  // namespace tensorlint::placement
