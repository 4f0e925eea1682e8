// Layers, arithmetic of values, module scopes and misuse: shapes at once, errors with the caller's line.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <source_location>

#include "tensorlint/builder.h"
#include "tests/builder/parsed.h"

namespace tensorlint::builder {
namespace {

using Texts = std::vector<std::string>;

TEST(BuilderLayers, ReshapeTakesNames) {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"batch", 6});
  const Value ids = graph.input("ids", DType::kInt64, {"batch", "sequence"});
  EXPECT_EQ(graph.reshape(x, {"batch", 2, 3}).to_text(), "float32[batch, 2, 3]");
  EXPECT_EQ(graph.reshape(x, {2, 3, "batch"}).to_text(), "float32[2, 3, batch]");
  EXPECT_EQ(graph.reshape(ids, {"sequence", "batch"}).to_text(), "int64[sequence, batch]");
  EXPECT_EQ(graph.reshape(ids, {-1}).to_text(), "int64[batch*sequence]");
  EXPECT_EQ(graph.reshape(x, std::vector<std::int64_t>{3, -1}).to_text(), "float32[3, 2*batch]");
  EXPECT_EQ(graph.reshape(graph.constant(1.0F), {}).to_text(), "float32[]");
  const Value wide = graph.concat({x, x}, 0);
  EXPECT_EQ(graph.reshape(wide, {"2*batch", 3, 2}).to_text(), "float32[2*batch, 3, 2]");
  EXPECT_TRUE(graph.findings().empty());
  graph.reshape(x, {"sequence", 6});  // cannot be: 6*batch elements
  EXPECT_TRUE(graph.findings().empty()) << "batch and sequence may agree";
  EXPECT_THROW(graph.reshape(x, {"nobody", 2}), Misuse);
}

TEST(BuilderLayers, GatherConcatConvAndLayerNormGiveTheirShapes) {
  for (const std::int64_t opset : {13, 21}) {
    Builder graph({.opset = opset});
    const Value table = graph.parameter("table", DType::kFloat32, {100, 8});
    const Value ids = graph.input("ids", DType::kInt64, {"N", "S"});
    const Value x = graph.gather(table, ids);
    EXPECT_EQ(x.to_text(), "float32[N, S, 8]");
    EXPECT_EQ(graph.concat({x, x, x}, -1).to_text(), "float32[N, S, 24]");
    const Value scale = graph.parameter("scale", DType::kFloat32, {8});
    EXPECT_EQ(graph.layer_norm(x, scale).to_text(), "float32[N, S, 8]");
    EXPECT_EQ(graph.layer_norm(x, scale, scale, -1, 1e-3).to_text(), "float32[N, S, 8]");
    const Value image = graph.input("image", DType::kFloat32, {"N", 3, 32, 32});
    const Value weight = graph.parameter("weight", DType::kFloat32, {16, 3, 3, 3});
    const Value bias = graph.parameter("bias", DType::kFloat32, {16});
    EXPECT_EQ(graph.conv(image, weight).to_text(), "float32[N, 16, 30, 30]");
    EXPECT_EQ(graph.conv(image, weight, bias, {.strides = {2, 2}, .pads = {1, 1}}).to_text(), "float32[N, 16, 16, 16]");
    EXPECT_EQ(graph.conv(image, weight, bias, {.pads = {0, 1, 2, 3}}).to_text(), "float32[N, 16, 32, 34]");
    EXPECT_TRUE(graph.findings().empty());
    graph.conv(ids, weight);
    EXPECT_FALSE(graph.findings().empty());
  }
}

TEST(BuilderArithmetic, OperatorsAreNodesOfTheirLine) {
  Builder graph;
  const Value a = graph.input("a", DType::kFloat32, {"N", 1});
  const Value b = graph.input("b", DType::kFloat32, {8});
  EXPECT_EQ((a + b).to_text(), "float32[N, 8]");
  EXPECT_EQ((a - b * a / b).to_text(), "float32[N, 8]");
  EXPECT_EQ((-a).to_text(), "float32[N, 1]");
  EXPECT_EQ((2 * a + 0.5 - 1 / a).to_text(), "float32[N, 1]");
  EXPECT_TRUE(graph.findings().empty());
  const Value ids = graph.input("ids", DType::kInt64, {8});
  const auto line = std::source_location::current().line() + 1;
  graph.output(a + ids, "mixed");
  ASSERT_EQ(graph.findings().size(), 1U);
  EXPECT_EQ(graph.findings()[0].rule, "mixed-operand-dtypes");
  EXPECT_EQ(graph.findings()[0].place.line, line);
}

TEST(BuilderArithmetic, NumbersTakeTheDtypeOfTheValue) {
  Builder graph;
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat64, DType::kInt8, DType::kUint64}) {
    const Value x = graph.input("x" + std::string(tensorlint::to_text(dtype)), dtype, {"N"});
    EXPECT_EQ((x + 3).dtype(), dtype);
    EXPECT_EQ((3.0 * x).dtype(), dtype);
  }
  EXPECT_TRUE(graph.findings().empty());
  const Value small = graph.input("small", DType::kInt8, {"N"});
  const Value natural = graph.input("natural", DType::kUint8, {"N"});
  const Value flag = graph.input("flag", DType::kBool, {"N"});
  const Value unknown = graph.op("NotThere", {small});
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const std::function<Value()>& wrong : std::initializer_list<std::function<Value()>>{
           [&] { return small + 0.5; }, [&] { return small + 128; }, [&] { return natural - -1; },
           [&] { return 128.0 * small; }, [&] { return kInfinity * natural; }, [&] { return flag + 1; },
           [&] { return unknown + 1; }})
    EXPECT_THROW(wrong(), Misuse);
  EXPECT_EQ((small + -128).dtype(), DType::kInt8);
  EXPECT_EQ((natural + 255.0).dtype(), DType::kUint8);
}

TEST(BuilderScopes, NameWhatIsBuiltInThem) {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N", 8});
  Value y = x;
  {
    const auto encoder = graph.scope("encoder");
    for (int i = 0; i < 2; ++i) {
      const auto layer = graph.scope("layers." + std::to_string(i));
      const Value weight = graph.parameter("weight", DType::kFloat32, {8, 8});
      EXPECT_EQ(weight.name(), "encoder.layers." + std::to_string(i) + ".weight");
      y = graph.relu(graph.linear(y, weight));
      EXPECT_EQ(y.name(), "encoder.layers." + std::to_string(i) + ".relu");
    }
    EXPECT_EQ(graph.constant(Data(1.0F), "one").name(), "encoder.one");
    graph.output(y, "hidden");  // names of outputs stay
    EXPECT_EQ(graph.sigmoid(y).name(), "encoder.sigmoid");
  }
  EXPECT_EQ(graph.relu(y).name(), "relu");
  graph.output(x, "copy");
  const ::onnx::ModelProto model = parsed(graph);
  EXPECT_EQ(model.graph().output(0).name(), "hidden");
  bool found = false;
  for (const ::onnx::NodeProto& node : model.graph().node())
    for (const auto& entry : node.metadata_props())
      if (node.name() == "encoder.layers.1.linear" && entry.key() == "pkg.torch.onnx.name_scopes") {
        EXPECT_EQ(entry.value(), "['', 'encoder', 'encoder.layers.1', 'encoder.layers.1.linear']");
        found = true;
      }
  EXPECT_TRUE(found);
}

TEST(BuilderScopes, FindingsNameTheModule) {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N", 8});
  const auto encoder = graph.scope("encoder");
  const auto head = graph.scope("head");
  graph.linear(x, graph.parameter("weight", DType::kFloat32, {3, 7}));
  ASSERT_EQ(graph.findings().size(), 1U);
  EXPECT_EQ(graph.findings()[0].module, "encoder.head");
  EXPECT_NE(graph.findings()[0].to_text().find("    in module `encoder.head`\n"), std::string::npos);
  EXPECT_EQ(graph.check()[0].module, "encoder.head");
}

TEST(BuilderScopes, EndWithAnException) {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N", 8});
  try {
    const auto scope = graph.scope("lost");
    graph.relu({});
    FAIL();
  } catch (const Misuse&) {
    EXPECT_EQ(graph.relu(x).name(), "relu");
  }
}

TEST(BuilderScopes, NodesKeepTheirNamesWhenOutputsAreRenamed) {
  Builder graph;
  const Value x = graph.input("x", DType::kFloat32, {"N", 8});
  graph.output(graph.relu(x), "first");
  graph.output(graph.relu(x), "second");
  EXPECT_TRUE(graph.check().empty());
  const ::onnx::ModelProto model = parsed(graph);
  EXPECT_NE(model.graph().node(0).name(), model.graph().node(1).name());
}

/// Every misuse throws Misuse with the line of the call, and the graph can be gone on with.
TEST(BuilderMisuse, AlwaysThrowsWithTheCallersLine) {
  Builder graph, other;
  const Value x = graph.input("x", DType::kFloat32, {"N", 4});
  const Value flag = graph.input("flag", DType::kBool, {});
  const Value foreign = other.input("foreign", DType::kFloat32, {"N", 4});
  const Value none;
  Value inner;
  graph.if_(flag, [&] { return std::vector{inner = graph.relu(x)}; }, [&] { return std::vector{x}; });
  using Wrong = std::function<void(std::source_location)>;
  const std::vector<std::pair<std::string, Wrong>> cases = {
      {"operand 1 of Add is absent", [&](auto at) { graph.add(x, none, at); }},
      {"operand 0 of Relu is absent", [&](auto at) { graph.relu(none, at); }},
      {"operand 0 of Softmax belongs to another builder", [&](auto at) { graph.softmax(foreign, -1, at); }},
      {"`relu` belongs to a body that is complete", [&](auto at) { graph.matmul(inner, x, at); }},
      {"operand 0 of MatMul belongs to another builder", [&](auto at) { graph.op("MatMul", {foreign, x}, {}, at); }},
      {"the operand of linear is absent", [&](auto at) { graph.linear(none, x, {}, at); }},
      {"the weight of linear is absent", [&](auto at) { graph.linear(x, none, {}, at); }},
      {"the operand of ReduceMean is absent", [&](auto at) { graph.reduce_mean(none, {}, false, at); }},
      {"the operand of reshape is absent", [&](auto at) { graph.reshape(none, {1}, at); }},
      {"no axis of any value has that extent", [&](auto at) { graph.reshape(x, {"M"}, at); }},
      {"concat needs at least one value", [&](auto at) { graph.concat({}, 0, at); }},
      {"operand 1 of Concat is absent", [&](auto at) { graph.concat({x, none}, 0, at); }},
      {"the weight of conv is absent", [&](auto at) { graph.conv(x, none, {}, {}, at); }},
      {"the scale of layer_norm is absent", [&](auto at) { graph.layer_norm(x, none, {}, -1, 1e-5, at); }},
      {"epsilon is -1", [&](auto at) { graph.layer_norm(x, x, {}, -1, -1, at); }},
      {"the operand of transfer is absent", [&](auto at) { graph.transfer(none, "cpu", at); }},
      {"transfer needs a device", [&](auto at) { graph.transfer(x, "", at); }},
      {"`over there` is not a device", [&](auto at) { graph.transfer(x, "over there", at); }},
      {"an operator needs a name", [&](auto at) { graph.op("", {x}, {}, at); }},
      {"with 2 results: use ops()", [&](auto at) { graph.op("Split", {x}, {.results = 2}, at); }},
      {"an attribute of Relu has no name", [&](auto at) { graph.op("Relu", {x}, {.attributes = {{"", 1}}}, at); }},
      {"Concat is given the attribute `axis` twice",
       [&](auto at) { graph.op("Concat", {x}, {.attributes = {{"axis", 1}, {"axis", 0}}}, at); }},
      {"an input needs a name", [&](auto at) { graph.input("", DType::kFloat32, {}, "", at); }},
      {"an input needs a name", [&](auto at) { graph.parameter("", DType::kFloat32, {}, "", true, at); }},
      {"there is a value `x` already", [&](auto at) { graph.input("x", DType::kFloat32, {}, "", at); }},
      {"an extent of `y` has an empty name", [&](auto at) { graph.input("y", DType::kFloat32, {""}, "", at); }},
      {"`y` has the extent -1", [&](auto at) { graph.input("y", DType::kFloat32, {-1}, "", at); }},
      {"`y` needs a dtype", [&](auto at) { graph.input("y", DType::kUndefined, {}, "", at); }},
      {"do not fit 3 elements", [&](auto at) { graph.constant(Data({1.0F, 2.0F}, {3}), "", "", at); }},
      {"ONNX's own operators", [&](auto at) { graph.import("", 21, at); }},
      {"`org.example` has no version 0", [&](auto at) { graph.import("org.example", 0, at); }},
      {"a scope needs a name", [&](auto at) { (void)graph.scope("", at); }},
      {"a quote or a control character", [&](auto at) { (void)graph.scope("it's", at); }},
      {"a branch of an If has no function", [&](auto at) { graph.if_(flag, {}, {}, at); }},
      {"the condition of an If is absent",
       [&](auto at) { graph.if_(none, [&] { return std::vector{x}; }, [&] { return std::vector{x}; }, at); }},
      {"the branches of an If give 1 and 2 values",
       [&](auto at) { graph.if_(flag, [&] { return std::vector{x}; }, [&] { return std::vector{x, x}; }, at); }},
      {"the body of a Loop has no function", [&](auto at) { graph.loop({}, {}, {x}, {}, at); }},
      {"takes 1 carried values and gives 0",
       [&](auto at) { graph.loop({}, {}, {x}, [](const LoopStep&) { return LoopResult{}; }, at); }},
      {"a graph is written outside of its bodies",
       [&](auto at) {
         graph.loop({}, {}, {x}, [&](const LoopStep& step) {
           (void)graph.serialized(at);
           return LoopResult{.carried = step.carried};
         });
       }},
      {"CrossEntropyLoss needs opset 12, the builder's is 9",
       [&](auto at) {
         Builder old({.opset = 9});
         old.cross_entropy_loss(old.input("x", DType::kFloat32, {"N", 4}), old.input("t", DType::kInt64, {"N"}), {},
                                at);
       }},
      {"the input of a loss is absent", [&](auto at) { graph.mse_loss(none, x, Reduction::kMean, at); }},
      {"is absent", [&](auto at) { graph.mse_loss(x, none, Reduction::kMean, at); }},
      {"is absent", [&](auto at) { graph.cross_entropy_loss(x, none, {}, at); }},
      {"an output is absent", [&](auto at) { graph.output(none, "y", at); }},
      {"there is a value `flag` already", [&](auto at) { graph.output(inner ? x : x, "flag", at); }},
      {"opset 1000 is not one of", [&](auto at) { Builder({.opset = 1000}, at); }},
      {"`nowhere:x` is not a device", [&](auto at) { Builder({.default_device = "nowhere:x"}, at); }},
      {"the graph needs a name", [&](auto at) { Builder({.graph_name = ""}, at); }},
      {"operand 1 of Add is absent", [&](auto at) { Located(x, at) + none; }},
      {"both operands of Add are absent", [&](auto at) { Located(none, at) + none; }},
      {"an operand of Mul is absent", [&](auto at) { 2 * Located(none, at); }},
      {"operand 1 of Sub belongs to another builder", [&](auto at) { Located(x, at) - foreign; }},
  };
  const auto at = std::source_location::current();
  for (const auto& [said, wrong] : cases) {
    try {
      wrong(at);
      ADD_FAILURE() << "did not throw: " << said;
    } catch (const Misuse& misuse) {
      EXPECT_NE(misuse.message().find(said), std::string::npos) << misuse.message() << "\nnot: " << said;
      EXPECT_EQ(misuse.location().line(), at.line());
      EXPECT_EQ(std::string(misuse.what()),
                std::string(at.file_name()) + ":" + std::to_string(at.line()) + ": " + misuse.message());
    }
  }
  EXPECT_EQ(graph.relu(x).to_text(), "float32[N, 4]");
  EXPECT_TRUE(graph.findings().empty());
  graph.output(graph.sigmoid(x), "y");
  EXPECT_EQ(parsed(graph).graph().output_size(), 1);
}

TEST(BuilderMisuse, ASecondVersionOfADomain) {
  Builder graph;
  graph.import("org.example", 2);
  graph.import("org.example", 2);
  EXPECT_THROW(graph.import("org.example", 3), Misuse);
}

}  // namespace
}  // namespace tensorlint::builder
