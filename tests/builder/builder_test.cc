// What a program sees while it builds: facts at once, mistakes at the call, in the rules' words.
#include "tensorlint/builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>

#include "onnx.pb.h"
#include "tests/builder/parsed.h"

namespace tensorlint::builder {
namespace {

/// The findings that calls told, with the line that each names.
struct Listener {
  std::vector<Finding> told;
  Options options() {
    Options made;
    made.on_finding = [this](const Finding& finding) { told.push_back(finding); };
    return made;
  }
};

const ::onnx::NodeProto* node_named(const ::onnx::ModelProto& model, std::string_view name) {
  for (const ::onnx::NodeProto& node : model.graph().node())
    if (node.name() == name) return &node;
  return nullptr;
}

std::string metadata_of(const ::onnx::NodeProto& node, std::string_view key) {
  for (const auto& entry : node.metadata_props())
    if (entry.key() == key) return entry.value();
  return {};
}

TEST(Builder, SaysWhatAValueIsAtOnce) {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N", 8});
  const Value weight = graph.parameter("weight", DType::kFloat32, {3, 8});
  const Value y = graph.linear(x, weight);
  EXPECT_EQ(y.to_text(), "float32[N, 3]");
  EXPECT_EQ(y.dtype(), DType::kFloat32);
  EXPECT_EQ(y.rank(), 2U);
  EXPECT_EQ(y.extent(-1), 3);
  EXPECT_EQ(y.extent(0), std::nullopt);
  EXPECT_EQ(y.extent(2), std::nullopt);
  EXPECT_EQ(y.devices(), std::vector<std::string>{"cpu"});
  const Value twice = graph.op("Concat", {y, y}, {.attributes = {{"axis", 0}}});
  EXPECT_EQ(*twice.shape(), (std::vector<std::string>{"2*N", "3"}));
  EXPECT_EQ(graph.reshape(twice, {-1}).to_text(), "float32[6*N]");
  EXPECT_EQ(graph.reduce_mean(y).to_text(), "float32[]");
  EXPECT_EQ(graph.reduce_sum(y, {1}, true).to_text(), "float32[N, 1]");
  EXPECT_EQ(graph.arg_max(y, 1).to_text(), "int64[N]");
  EXPECT_EQ(graph.op("NotThere", {y}).rank(), std::nullopt);
  EXPECT_EQ(Value().to_text(), "absent");
}

TEST(Builder, ConstantsAreKnownByTheirElements) {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N", 6});
  const Value dims = graph.constant(Data({std::int64_t{0}, std::int64_t{2}, std::int64_t{3}}, {3}));
  EXPECT_EQ(graph.op("Reshape", {x, dims}).to_text(), "float32[N, 2, 3]");
}

TEST(Builder, TellsAMistakeInTheCallThatMakesIt) {
  Listener listener;
  Builder graph(listener.options());
  const Value x = graph.input("x", DType::kFloat32, {"N", 8});
  const Value y = graph.input("y", DType::kFloat32, {6, 3});
  const auto line = std::source_location::current().line() + 1;
  const Value sum = graph.reduce_mean(x, {2});
  ASSERT_EQ(listener.told.size(), 1U);
  const Finding& finding = listener.told[0];
  EXPECT_EQ(finding.rule, "reduction-axis-out-of-range");
  EXPECT_EQ(finding.message, "axis 2 outside `x` of rank 2");
  EXPECT_EQ(finding.place.line, line);
  EXPECT_TRUE(finding.place.file.ends_with("builder_test.cc")) << finding.place.file;
  EXPECT_TRUE(finding.must);
  // Independent mistakes are told too, consequences are not.
  graph.relu(sum);
  EXPECT_EQ(listener.told.size(), 1U);
  graph.matmul(x, y);
  ASSERT_EQ(listener.told.size(), 2U);
  EXPECT_EQ(listener.told[1].rule, "incompatible-operand-shapes");
  EXPECT_EQ(graph.findings().size(), 2U);
}

TEST(Builder, AHandlerMayThrowAndTheGraphStands) {
  Options options;
  options.on_finding = [](const Finding& finding) { throw std::runtime_error(finding.message); };
  Builder graph(options);
  const Value x = graph.input("x", DType::kFloat32, {"N", 8});
  EXPECT_THROW(graph.reduce_mean(x, {2}), std::runtime_error);
  EXPECT_EQ(graph.relu(x).to_text(), "float32[N, 8]");
}

TEST(Builder, WordsAMistakeInALossAsTheLoss) {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N", 8});
  const Value labels = graph.input("labels", DType::kInt64, {"N", 8});
  const auto line = std::source_location::current().line() + 1;
  graph.output(graph.mse_loss(x, labels), "loss");
  ASSERT_EQ(graph.findings().size(), 1U);
  EXPECT_EQ(graph.findings()[0].code, "TL-D101");
  EXPECT_EQ(graph.findings()[0].place.line, line);
  EXPECT_EQ(graph.findings()[0].fixes, std::vector<std::string>{"cast `labels` to float32"});
  const std::vector<Finding> all = graph.check();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].code, "TL-D101");
  EXPECT_EQ(all[0].place.line, line);
}

TEST(Builder, SeesASilentBroadcastThatNoOperatorRefuses) {
  Builder graph;
  const Value scores =
      graph.linear(graph.input("x", DType::kFloat32, {"N", 8}), graph.parameter("weight", DType::kFloat32, {1, 8}));
  const Value targets = graph.input("targets", DType::kFloat32, {"N"});
  graph.mse_loss(scores, targets);
  ASSERT_EQ(graph.findings().size(), 1U);
  EXPECT_EQ(graph.findings()[0].rule, "silent-broadcast-in-loss");
}

TEST(Builder, FollowsDevices) {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N", 8}, "cuda");
  const Value mask = graph.input("mask", DType::kFloat32, {"N", 8});
  EXPECT_EQ(graph.relu(x).devices(), std::vector<std::string>{"cuda:0"});
  const Value moved = graph.transfer(mask, "cuda:0");
  EXPECT_EQ(moved.devices(), std::vector<std::string>{"cuda:0"});
  graph.mul(x, moved);
  EXPECT_TRUE(graph.findings().empty());
  graph.mul(x, mask);
  ASSERT_EQ(graph.findings().size(), 1U);
  EXPECT_EQ(graph.findings()[0].rule, "operands-on-different-devices");
  // A host operand may stay where it is.
  graph.reduce_mean(x, {1});
  EXPECT_EQ(graph.findings().size(), 1U);
  EXPECT_THROW(graph.transfer(x, "over there"), std::invalid_argument);
}

TEST(Builder, MisuseNamesTheCallersLine) {
  Builder graph, other;
  const Value x = graph.input("x", DType::kFloat32, {4});
  EXPECT_THROW(graph.input("x", DType::kFloat32, {4}), std::invalid_argument);
  EXPECT_THROW(graph.constant(Data({1.0F, 2.0F}, {3})), std::invalid_argument);
  EXPECT_THROW(graph.input("negative", DType::kFloat32, {-1}), std::invalid_argument);
  const auto line = std::source_location::current().line() + 2;
  try {
    other.relu(x);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find(":" + std::to_string(line) + ": "), std::string::npos) << error.what();
  }
}

TEST(Builder, NodesCarryTheLineTheyComeFrom) {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N"});
  const auto line = std::source_location::current().line() + 1;
  graph.output(graph.relu(x), "y");
  const ::onnx::ModelProto model = parsed(graph);
  const ::onnx::NodeProto* relu = node_named(model, "relu");
  ASSERT_NE(relu, nullptr);
  const std::string trace = metadata_of(*relu, "pkg.torch.onnx.stack_trace");
  EXPECT_NE(trace.find("builder_test.cc\", line " + std::to_string(line) + ", in "), std::string::npos) << trace;
  EXPECT_EQ(relu->output(0), "y");
  EXPECT_EQ(model.graph().output(0).name(), "y");
}

TEST(Builder, ParametersAreInputsThatTrainingChanges) {
  Builder graph;
  const Value weight = graph.parameter("weight", Data({0.0F, 0.0F}, {2}));
  const Value frozen = graph.parameter("frozen", Data({1.0F, 1.0F}, {2}), "", false);
  graph.output(graph.op("Log", {graph.add(weight, frozen)}), "y");
  EXPECT_TRUE(graph.check().empty());  // 0 is only where training begins
  const ::onnx::ModelProto model = parsed(graph);
  ASSERT_EQ(model.graph().input_size(), 2);
  ASSERT_EQ(model.graph().initializer_size(), 2);
  ASSERT_EQ(model.graph().input(0).metadata_props_size(), 1);
  EXPECT_EQ(model.graph().input(0).metadata_props(0).key(), "tensorlint.requires_grad");
  EXPECT_EQ(model.graph().input(0).metadata_props(0).value(), "true");
  EXPECT_EQ(model.graph().input(1).metadata_props_size(), 0);
}

TEST(Builder, ImportsTheDomainsThatItCalls) {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N", 8});
  graph.import("org.example", 3);
  graph.output(graph.op("Gelu", {x}, {.domain = "com.microsoft"}), "y");
  graph.output(graph.op("Mystery", {x}, {.domain = "org.example"}), "z");
  EXPECT_THROW(graph.import("ai.onnx", 20), std::invalid_argument);
  std::map<std::string, std::int64_t> imports;
  const ::onnx::ModelProto model = parsed(graph);
  for (const auto& import : model.opset_import()) imports[import.domain()] = import.version();
  EXPECT_EQ(imports, (std::map<std::string, std::int64_t>{{"", 21}, {"com.microsoft", 1}, {"org.example", 3}}));
  EXPECT_THROW(Builder({.opset = 1000}), std::invalid_argument);
}

TEST(Builder, KeepsAllFindingsAndEachMistakeOnce) {
  Listener listener;
  Builder graph(listener.options());
  const Value x = graph.input("x", DType::kFloat32, {"N", 8});
  const Value y = graph.input("y", DType::kFloat32, {6, 3});
  for (int i = 0; i < 400; ++i) graph.op("NotThere" + std::to_string(i), {x});
  EXPECT_EQ(graph.findings().size(), 400U);
  for (int i = 0; i < 400; ++i) graph.matmul(x, y);
  EXPECT_EQ(graph.findings().size(), 401U);
  EXPECT_EQ(listener.told.size(), 401U);
  graph.relu(x);
  graph.matmul(x, y);  // the same operands fail for the same cause
  EXPECT_EQ(graph.findings().size(), 401U);
}

TEST(Builder, CallsTellWhatCheckTells) {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N", 8});
  const Value ids = graph.input("ids", DType::kInt64, {"N"});
  graph.output(graph.reduce_mean(x, {2}), "a");
  graph.output(graph.add(x, ids), "b");
  graph.output(graph.concat({x, graph.input("z", DType::kFloat32, {"N", 8, 1})}, 0), "c");
  graph.output(graph.cross_entropy_loss(x, graph.constant(Data({std::int64_t{9}, std::int64_t{1}}, {2}))), "d");
  std::vector<std::string> told, checked;
  for (const Finding& finding : graph.findings()) told.push_back(finding.to_text());
  for (const Finding& finding : graph.check())
    if (finding.severity != Severity::kInfo) checked.push_back(finding.to_text());
  EXPECT_EQ(told, checked);
  EXPECT_GE(told.size(), 4U);
}

TEST(Builder, LossesBroadcastAsPyTorchDoes) {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N", 3});
  const Value row = graph.input("row", DType::kFloat32, {3});
  EXPECT_EQ(graph.mse_loss(x, row, Reduction::kNone).to_text(), "float32[N, 3]");
  EXPECT_EQ(graph.l1_loss(row, x, Reduction::kNone).to_text(), "float32[N, 3]");
  EXPECT_EQ(graph.huber_loss(x, row).to_text(), "float32[]");
  EXPECT_TRUE(graph.findings().empty());
  graph.smooth_l1_loss(x, graph.input("wide", DType::kFloat32, {"N", 4}));
  ASSERT_EQ(graph.findings().size(), 1U);
  EXPECT_EQ(graph.findings()[0].rule, "loss-shape-mismatch");
  EXPECT_EQ(graph.findings()[0].op, "SmoothL1Loss");
  graph.bce_with_logits_loss(x, row);  // for which PyTorch asks for one shape
  EXPECT_EQ(graph.findings().size(), 2U);
}

TEST(Builder, CrossEntropyTakesIndicesOrProbabilities) {
  Builder graph;
  const Value scores = graph.input("scores", DType::kFloat32, {"N", 5, "T"});
  const Value indices = graph.input("indices", DType::kInt64, {"N", "T"});
  const Value probabilities = graph.input("probabilities", DType::kFloat32, {"N", 5, "T"});
  const ClassLoss all{.reduction = Reduction::kNone};
  EXPECT_EQ(graph.cross_entropy_loss(scores, indices, all).to_text(), "float32[N, T]");
  EXPECT_EQ(graph.cross_entropy_loss(scores, probabilities, all).to_text(), "float32[N, T]");
  EXPECT_EQ(graph.nll_loss(scores, indices).to_text(), "float32[]");
  const Value row = graph.input("row", DType::kFloat32, {5});
  EXPECT_EQ(graph.cross_entropy_loss(row, graph.constant<std::int64_t>(3), all).to_text(), "float32[]");
  EXPECT_EQ(graph.findings().size(), 0U);
  graph.cross_entropy_loss(scores, graph.input("floats", DType::kFloat32, {"N", "T"}));
  ASSERT_EQ(graph.findings().size(), 1U);
  EXPECT_EQ(graph.findings()[0].rule, "float-class-index");
  graph.cross_entropy_loss(row, graph.constant<std::int64_t>(5));
  ASSERT_EQ(graph.findings().size(), 2U);
  EXPECT_EQ(graph.findings()[1].rule, "class-index-out-of-range");
  graph.nll_loss(scores, indices, {.weight = graph.input("weight", DType::kFloat32, {4})});
  ASSERT_EQ(graph.findings().size(), 3U);
  EXPECT_EQ(graph.findings()[2].rule, "loss-shape-mismatch");
}

TEST(Builder, ALossIsOneNodeAndAFunction) {
  Builder graph;
  const Value x = graph.input("input", DType::kFloat32, {"N", 3});  // names in functions are their own
  const Value t = graph.input("target", DType::kFloat32, {"N", 3});
  graph.output(graph.mse_loss(x, t), "mean");
  graph.output(graph.mse_loss(x, t, Reduction::kSum), "sum");
  graph.output(graph.mse_loss(t, x), "again");
  const ::onnx::ModelProto model = parsed(graph);
  ASSERT_EQ(model.graph().node_size(), 3);
  EXPECT_EQ(model.graph().node(0).domain(), "tensorlint");
  EXPECT_EQ(model.graph().node(0).op_type(), "MseLoss");
  ASSERT_EQ(model.functions_size(), 2);
  EXPECT_EQ(model.functions(0).name(), "MseLoss");
  EXPECT_NE(model.functions(0).overload(), model.functions(1).overload());
  EXPECT_EQ(graph.serialized(), graph.serialized());
  EXPECT_TRUE(graph.check().empty());
}

TEST(Builder, NumbersOfALossAreRoundedToItsDtype) {
  for (const auto& [dtype, expected] :
       {std::pair(DType::kFloat16, std::string("\xcd\x34")), std::pair(DType::kBFloat16, std::string("\x9a\x3e"))}) {
    Builder graph;
    const Value x = graph.input("x", dtype, {"N"});
    graph.output(graph.huber_loss(x, graph.input("t", dtype, {"N"}), Reduction::kMean, 0.3), "loss");
    // 0.3 is 0x1.3333p-2: the nearest float16 is 0x34cd, the nearest bfloat16 0x3e9a.
    const ::onnx::ModelProto model = parsed(graph);
    std::vector<std::string> numbers;
    ASSERT_EQ(model.functions_size(), 1);
    for (const ::onnx::NodeProto& node : model.functions(0).node()) {
      if (node.op_type() != "Constant") continue;
      EXPECT_EQ(node.attribute(0).t().data_type(), static_cast<int>(dtype));
      numbers.push_back(node.attribute(0).t().raw_data());
    }
    EXPECT_NE(std::ranges::find(numbers, expected), numbers.end());
  }
}

TEST(Builder, ALoopKnowsItsCarriedAndStackedValues) {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N", 4});
  std::string inside;
  const std::vector<Value> results = graph.loop(graph.constant<std::int64_t>(5), {}, {x}, [&](const LoopStep& step) {
    inside = step.carried[0].to_text();
    return LoopResult{.carried = {graph.relu(step.carried[0])}, .stacked = {graph.reduce_sum(step.carried[0], {1})}};
  });
  EXPECT_EQ(inside, "float32[N, 4]");
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].to_text(), "float32[N, 4]");
  EXPECT_EQ(results[1].to_text(), "float32[5, N]");
  EXPECT_TRUE(graph.findings().empty());
}

TEST(Builder, ALoopThatChangesTheTypeItCarriesIsTold) {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N"});
  const auto line = std::source_location::current().line() + 1;
  graph.loop(graph.constant<std::int64_t>(5), {}, {x}, [&](const LoopStep& step) {
    return LoopResult{.carried = {graph.cast(step.carried[0], DType::kFloat16)}};
  });
  ASSERT_EQ(graph.findings().size(), 1U);
  EXPECT_EQ(graph.findings()[0].rule, "loop-carried-type-changes");
  EXPECT_EQ(graph.findings()[0].place.line, line);
}

TEST(Builder, ADeviceThatChangesFromIterationToIterationIsTold) {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N"});
  graph.loop(graph.constant<std::int64_t>(5), {}, {x}, [&](const LoopStep& step) {
    return LoopResult{.carried = {graph.transfer(graph.mul(step.carried[0], x), "cuda:0")}};
  });
  ASSERT_FALSE(graph.findings().empty());
  EXPECT_EQ(graph.findings()[0].rule, "device-changes-in-loop");
}

TEST(Builder, BranchesMayUseOuterValuesAndNest) {
  Builder graph;
  const Value flag = graph.input("flag", DType::kBool, {});
  const Value x = graph.input("x", DType::kFloat32, {"N"});
  Value inner;
  const std::vector<Value> results = graph.if_(
      flag,
      [&] {
        inner = graph.if_(flag, [&] { return std::vector{graph.relu(x)}; }, [&] { return std::vector{x}; })[0];
        EXPECT_EQ(inner.to_text(), "float32[N]");
        return std::vector{inner};
      },
      [&] { return std::vector{x}; });
  EXPECT_EQ(results[0].to_text(), "float32[N]");
  EXPECT_THROW(graph.relu(inner), std::invalid_argument);  // it lives in the branch
  graph.output(results[0], "y");
  EXPECT_TRUE(graph.check().empty());
}

TEST(Builder, AnExceptionInABodyLeavesTheBuilderOutsideOfIt) {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N"});
  EXPECT_THROW(graph.loop({}, {}, {x}, [&](const LoopStep&) -> LoopResult { throw std::runtime_error("stop"); }),
               std::runtime_error);
  graph.output(graph.relu(x), "y");
  EXPECT_TRUE(graph.check().empty());
}

TEST(Builder, AnExceptionInASecondBranchTakesTheFirstBack) {
  Listener listener;
  Builder graph(listener.options());
  const Value flag = graph.input("flag", DType::kBool, {});
  const Value x = graph.input("x", DType::kFloat32, {2, 3});
  EXPECT_THROW(graph.if_(
                   flag,
                   [&] {
                     const Value inner = graph.if_(
                         flag, [&] { return std::vector{graph.matmul(x, x)}; }, [&] { return std::vector{x}; })[0];
                     return std::vector{graph.mse_loss(inner, inner)};
                   },
                   [&]() -> std::vector<Value> { throw std::runtime_error("stop"); }),
               std::runtime_error);
  EXPECT_EQ(listener.told.size(), 1U);  // of the product, which was wrong
  graph.output(graph.relu(x), "y");
  EXPECT_TRUE(graph.check().empty());
  EXPECT_EQ(parsed(graph).graph().node_size(), 1);
}

TEST(Builder, AHandlerMayThrowInABody) {
  Options options;
  options.on_finding = [](const Finding& finding) { throw std::runtime_error(finding.message); };
  Builder graph(options);
  const Value x = graph.input("x", DType::kFloat32, {2, 3}), trips = graph.constant<std::int64_t>(2);
  const auto wrong = [&](const LoopStep& step) { return LoopResult{.carried = {graph.matmul(step.carried[0], x)}}; };
  EXPECT_THROW(graph.loop(trips, {}, {x}, wrong), std::runtime_error);
  const std::vector<Value> results = graph.loop(
      trips, {}, {x}, [&](const LoopStep& step) { return LoopResult{.carried = {graph.relu(step.carried[0])}}; });
  EXPECT_EQ(results[0].to_text(), "float32[2, 3]");
  graph.output(results[0], "y");
  EXPECT_TRUE(graph.check().empty());
}

TEST(Builder, KnowsDevicesThatBodiesDecide) {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N"}, "cuda:0");
  const Value flag = graph.input("flag", DType::kBool, {});
  const Value moved = graph.if_(
      flag, [&] { return std::vector{graph.transfer(x, "cpu")}; },
      [&] { return std::vector{graph.transfer(x, "cuda:1")}; })[0];
  EXPECT_EQ(moved.devices(), (std::vector<std::string>{"cpu", "cuda:1"}));
  const Value kept = graph.if_(flag, [&] { return std::vector{graph.relu(x)}; }, [&] { return std::vector{x}; })[0];
  EXPECT_EQ(kept.devices(), std::vector<std::string>{"cuda:0"});
  const std::size_t before = graph.findings().size();
  graph.add(kept, x);
  EXPECT_EQ(graph.findings().size(), before);
  graph.add(kept, graph.input("host", DType::kFloat32, {"N"}));
  ASSERT_EQ(graph.findings().size(), before + 1);
  EXPECT_EQ(graph.findings().back().rule, "operands-on-different-devices");
}

TEST(Builder, WritesTheFileAsAWholeOrNotAtAll) {
  Builder graph;
  graph.output(graph.relu(graph.input("x", DType::kFloat32, {"N"})), "y");
  const auto folder = std::filesystem::temp_directory_path() / ("builder_test_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  graph.write(folder / "model.onnx");
  EXPECT_EQ(std::filesystem::file_size(folder / "model.onnx"), graph.serialized().size());
  EXPECT_THROW(graph.write(folder / "no" / "model.onnx"), std::system_error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tensorlint::builder
