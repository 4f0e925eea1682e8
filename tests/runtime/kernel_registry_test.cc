// The built-in provider tables tensorlint-cuda and tensorlint-cpu say what the executor and the interpreter run.
#include "runtime/executor/kernel_registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/schema/schema.h"
#include "ir/text/reader.h"
#include "runtime/executor/execution_plan.h"
#include "runtime/files/drawn_inputs.h"

namespace tensorlint::runtime {
namespace {

/// `./dev update` writes it.
void expect_written(const std::string& provider, const std::string& text) {
  const std::string path = "passes/placement/providers/" + provider + ".txt";
  if (std::getenv("TENSORLINT_UPDATE") != nullptr) std::ofstream(path, std::ios::binary) << text;
  std::ifstream file(path, std::ios::binary);
  const std::string written{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(written == text) << path << " is out of date: run `./dev update` in the root, then build again";
  const auto table = placement::parse_provider(text, provider);
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->name, provider);
  EXPECT_EQ(table->host, "tensorlint-cpu");
}

TEST(KernelRegistry, IsTheTableOfTheProvider) { expect_written("tensorlint-cuda", kernel_registry_text()); }

TEST(KernelRegistry, TheCpuHasWhatTheInterpreterRuns) {
  expect_written("tensorlint-cpu", interpreter_provider_text());
  const auto table = placement::parse_provider(interpreter_provider_text(), "t").value();
  EXPECT_TRUE(table.kernels.contains("NonMaxSuppression"));
  EXPECT_TRUE(table.kernels.contains("Loop"));
  EXPECT_FALSE(table.kernels.contains("TfIdfVectorizer"));
  for (const auto& [name, kernels] : kernel_registry().kernels) EXPECT_TRUE(table.kernels.contains(name)) << name;
}

/// Inputs and a node whose first type variable is `@`; several lines for one operator: each dtype runs in one of them.
const std::vector<std::pair<std::string, std::string>>& examples() {
  static const std::vector<std::pair<std::string, std::string>> kExamples = [] {
    std::vector<std::pair<std::string, std::string>> all;
    const auto each = [&](std::string_view names, const std::string& inputs, const std::string& call) {
      for (std::size_t from = 0; from < names.size();) {
        const std::size_t space = std::min(names.find(' ', from), names.size());
        std::string name(names.substr(from, space - from));
        const std::size_t dot = name.find('.');
        all.emplace_back(name.substr(dot + 1), inputs + "|" + name + call);
        from = space + 1;
      }
    };
    each(
        "ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceSumSquare ReduceMean ReduceL2 ReduceLogSum "
        "ReduceLogSumExp ArgMax ArgMin",
        "@[3, 40] x", " (x)");
    each(
        "Softmax LogSoftmax Neg Abs Sign Relu Not Exp Log Sqrt Reciprocal Erf Tanh Sigmoid LeakyRelu Elu Gelu "
        "HardSigmoid HardSwish Softplus Swish Floor Ceil Round Sin Cos IsNaN Identity Flatten Transpose Squeeze",
        "@[3, 40] x", " (x)");
    each("SoftmaxCrossEntropyLoss NegativeLogLikelihoodLoss tensorlint.CrossEntropyLoss tensorlint.NllLoss",
         "@[3, 40] x, int64[3] n", " (x, n)");
    each(
        "tensorlint.MseLoss tensorlint.L1Loss tensorlint.SmoothL1Loss tensorlint.HuberLoss tensorlint.BceLoss "
        "tensorlint.BceWithLogitsLoss tensorlint.KlDivLoss Add Sub Mul Min Max Sum Equal Greater Less GreaterOrEqual "
        "LessOrEqual And Or Xor Pow Div",
        "@[3, 40] x, @[3, 40] z", " (x, z)");
    each("Div Pow", "@[3, 40] x", " (x, c)");
    each("Mod", "@[3, 40] x", " <fmod = 1> (x, c)");
    each("MatMul Gemm", "@[40, 40] x, @[40, 3] z", " (x, z)");
    each("Einsum", "@[40, 40] x, @[40, 3] z", " <equation = \"ij,jk->ik\"> (x, z)");
    each("Attention", "@[1, 2, 5, 8] x, @[1, 2, 6, 8] y, @[1, 2, 6, 4] z", " (x, y, z)");
    each("Attention", "float[1, 2, 5, 8] x, float[1, 2, 6, 8] y, float[1, 2, 6, 4] z, @[5, 6] m", " (x, y, z, m)");
    each("Conv", "@[1, 2, 8, 8] x, @[3, 2, 3, 3] z", " (x, z)");
    each("MaxPool AveragePool", "@[1, 2, 8, 8] x", " <kernel_shape = [2, 2]> (x)");
    each("GlobalAveragePool GlobalMaxPool", "@[1, 2, 8, 8] x", " (x)");
    each("LayerNormalization RMSNormalization", "@[3, 40] x, @[40] z", " (x, z)");
    each("InstanceNormalization", "@[3, 2, 40] x, @[2] s, @[2] b", " (x, s, b)");
    each("GroupNormalization", "@[3, 2, 40] x, @[2] s, @[2] b", " <num_groups = 1> (x, s, b)");
    each("BatchNormalization", "@[3, 2, 40] x, @[2] s, @[2] b, @[2] m, @[2] v", " (x, s, b, m, v)");
    each("Where", "bool[3, 40] q, @[3, 40] x, @[3, 40] z", " (q, x, z)");
    each("Cast", "@[3, 40] x", " <to = 1> (x)");
    each("CastLike", "@[3, 40] x, float[1] z", " (x, z)");
    each("Clip", "@[3, 40] x, @ z", " (x, z)");
    each("Reshape Expand", "@[3, 40] x", " (x, shape)");
    each("Unsqueeze", "@[3, 40] x", " (x, one)");
    each("Tile", "@[3, 40] x", " (x, two_ones)");
    each("Concat", "@[3, 40] x, @[3, 40] z", " <axis = 0> (x, z)");
    each("Split", "@[3, 40] x", " <num_outputs = 1> (x)");
    each("DepthToSpace SpaceToDepth", "@[1, 4, 8, 8] x", " <blocksize = 2> (x)");
    each("Gather", "@[3, 40] x, int64[5] n", " (x, n)");
    each("GatherElements", "@[3, 40] x, int64[3, 40] n", " (x, n)");
    each("GatherND", "@[3, 40] x, int64[5, 2] n", " (x, n)");
    each("Slice", "@[3, 40] x", " (x, one, three)");
    each("Pad", "@[3, 40] x", " (x, pads)");
    each("ScatterElements", "@[3, 40] x, int64[3, 40] n, @[3, 40] z", " (x, n, z)");
    each("ConstantOfShape", "@[2] n", " (shape)");
    each("OneHot", "@[3] n, float[2] x", " (n, three, x)");
    each("EyeLike", "@[3, 40] x", " (x)");
    each("ScatterND", "@[3, 40] x, int64[5, 2] n, @[5] z", " (x, n, z)");
    return all;
  }();
  return kExamples;
}

/// Where the node of a graph is computed that has `dtype` for its `@`: "" on the device, else why not.
std::string why_not_there(const std::string& example, DType dtype) {
  static const std::map<std::string_view, std::string_view> kText = {{"float32", "float"}, {"float64", "double"}};
  const std::string_view name = to_text(dtype);
  std::string text = example;
  for (std::size_t at = text.find('@'); at != std::string::npos; at = text.find('@', at))
    text.replace(at, 1, kText.contains(name) ? kText.at(name) : name);
  const std::size_t bar = text.find('|');
  // Divisors and exponents: integers must be known, floats not.
  std::string number =
      text.find("(x, c)") == std::string::npos ? "" : std::string(text.substr(0, text.find('['))) + "[1] c = {2}, ";
  const std::string model_text = "<ir_version: 13, opset_import: [\"\": 28, \"tensorlint\": 1]>\ng (" +
                                 text.substr(0, bar) + ") => (y) <" + number +
                                 "int64[2] shape = {3, 40}, int64[1] one = {1}, int64[1] three = {3}, int64[2] "
                                 "two_ones = {2, 1}, int64[4] pads = {1, 1, 1, 1}> { y = " +
                                 text.substr(bar + 1) + " }";
  const Result<Model> model = read_onnx_text(model_text, "m.onnxtxt");
  if (!model) return model.error().message;
  Memory memory(std::uint64_t{1} << 20);
  std::vector<HostValue> inputs(model->graph(GraphId::kMain).inputs.size());
  if (const auto fault = draw_inputs(*model, 1, memory, inputs)) return fault->message;
  const std::string devices[] = {"emulated:0"};
  const auto plan = plan_execution(*model, inputs, devices, {});
  if (!plan) return plan.error().message;
  for (const NodePlace& place : plan->places)
    if (place.kind == NodePlace::Kind::kKernel) return "";
  return plan->places.empty() ? "no node" : "host: " + plan->places[0].reason;
}

/// Else a table would promise a kernel that no node reaches.
TEST(KernelRegistry, EveryRowRuns) {
  int ran = 0;
  for (const auto& [key, kernels] : kernel_registry().kernels) {
    const std::string name = key.substr(key.find('.') + 1);
    std::vector<std::string> of_operator;
    for (const auto& [operator_name, example] : examples())
      if (operator_name == name) of_operator.push_back(example);
    EXPECT_FALSE(of_operator.empty()) << key << " has no example here";
    const auto newest = std::ranges::find(kernels, 0, &placement::ProviderKernel::until);
    ASSERT_NE(newest, kernels.end()) << key;
    ASSERT_FALSE(newest->types.empty()) << key;
    // The first is the condition of Where.
    const auto& dtypes = newest->types[key == "Where" ? 1 : 0].second;
    for (int i = 1; i < kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      if (!dtypes.contains(dtype)) continue;
      std::string reasons;
      const bool runs = std::ranges::any_of(of_operator, [&](const std::string& example) {
        const std::string why = why_not_there(example, dtype);
        reasons += why + "; ";
        return why.empty();
      });
      EXPECT_TRUE(runs) << key << " of " << to_text(dtype) << ": " << reasons;
      ++ran;
    }
  }
  EXPECT_GT(ran, 500);
}

// What a table does not have runs on no device, whatever the family of kernels could do with it.
TEST(KernelRegistry, NothingElseRuns) {
  for (const DType dtype : {DType::kUint32, DType::kComplex64, DType::kString})
    EXPECT_NE(why_not_there("@[3, 40] x, @[3, 40] z|Add (x, z)", dtype), "");
  EXPECT_EQ(why_not_there("int32[3, 40] x|ReduceMean (x)", DType::kInt32), "host: there is no kernel for int32");
  EXPECT_NE(why_not_there("@[3, 40] x|Asin (x)", DType::kFloat32), "");
}

}  // namespace
}  // namespace tensorlint::runtime
