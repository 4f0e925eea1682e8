#include "ir/text/reader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "tests/sanitized.h"

namespace tensorlint {
namespace {

Model parsed(std::string_view text) {
  Result<Model> model = read_onnx_text(text, "m.onnxtxt");
  if (!model) {
    ADD_FAILURE() << model.error().position.line << ":" << model.error().position.column << ": "
                  << model.error().message;
    return Model{};
  }
  return std::move(model).value();
}

std::string error_of_text(std::string_view text) {
  const Result<Model> model = read_onnx_text(text, "m.onnxtxt");
  if (model) return "no error";
  const Position at = model.error().position;
  const std::string where = " (line " + std::to_string(at.line) + ", column " + std::to_string(at.column) + ")";
  EXPECT_TRUE(model.error().message.ends_with(where)) << model.error().message;
  return std::to_string(at.line) + ":" + std::to_string(at.column) + ": " +
         model.error().message.substr(0, model.error().message.size() - where.size());
}

constexpr std::string_view kHeader = "<ir_version: 10, opset_import: [\"\" : 21]>\n";

std::string with_header(std::string_view rest) { return std::string(kHeader) + std::string(rest); }

/// The constant `literal` as an initializer.
const Tensor& constant(Model& model, std::string_view literal_type, std::string_view elements) {
  model = parsed(with_header("g () => () <" + std::string(literal_type) + " w = " + std::string(elements) + "> {}"));
  return *model.value(model.find_value(GraphId::kMain, "w")).initializer;
}

TEST(TextReader, ReadsTheHeader) {
  const Model model = parsed(
      "<ir_version: 10, opset_import: [\"\" : 21, \"tensorlint\" : 1, \"ai.onnx.ml\" : 3],\n"
      " producer_name: \"maker\", producer_version: \"1.2\", domain: \"d\", model_version: 7, doc_string: \"what\",\n"
      " metadata_props: [\"tensorlint.device:x\" : \"cuda:0\", \"k\": \"a \\\"b\\\" \\\\\"]>\n"
      "agraph (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }");
  EXPECT_EQ(model.path, "m.onnxtxt");
  EXPECT_EQ(model.ir_version, 10);
  EXPECT_EQ(model.producer_name, "maker");
  EXPECT_EQ(model.producer_version, "1.2");
  EXPECT_EQ(model.opset(GraphId::kMain, ""), 21);
  EXPECT_EQ(model.opset(GraphId::kMain, "tensorlint"), 1);
  ASSERT_EQ(model.metadata.size(), 2u);
  EXPECT_EQ(model.metadata[0].key, "tensorlint.device:x");
  EXPECT_EQ(model.metadata[1].value, "a \"b\" \\");
  EXPECT_EQ(model.text(model.graph(GraphId{0}).name), "agraph");
  ASSERT_EQ(model.nodes.size(), 1u);
  EXPECT_EQ(model.text(model.op(model.node(NodeId{0})).name), "Relu");
  const Value& y = model.value(model.find_value(GraphId::kMain, "y"));
  EXPECT_EQ(y.origin, ValueOrigin::kNode);
  EXPECT_TRUE(y.is_output);
  ASSERT_NE(y.type, nullptr);
  EXPECT_EQ(model.text(y.type->dims[0].name), "N");
  EXPECT_EQ(y.type->dims[1].extent, 3);
}

TEST(TextReader, ReadsTypes) {
  const Model model = parsed(with_header(
      "g (float a, float[] b, double[?, 2, \"a b\"] c, seq(float[N]) d, optional(seq(int64)) e, map(int64, string) f,"
      " sparse_tensor(float16[3]) h, untyped, float8e4m3fn[0] i, opaque(my.domain, kind) j) => () {}"));
  const auto type = [&](std::string_view name) { return model.value(model.find_value(GraphId::kMain, name)).type; };
  EXPECT_TRUE(type("a")->ranked);
  EXPECT_TRUE(type("a")->dims.empty());
  EXPECT_FALSE(type("b")->ranked);
  EXPECT_EQ(type("c")->element_code, 11);
  ASSERT_EQ(type("c")->dims.size(), 3u);
  EXPECT_FALSE(type("c")->dims[0].has_extent);
  EXPECT_EQ(type("c")->dims[0].name, NameId::kEmpty);
  EXPECT_EQ(model.text(type("c")->dims[2].name), "a b");
  EXPECT_EQ(type("d")->kind, TypeKind::kSequence);
  EXPECT_EQ(type("d")->element->kind, TypeKind::kTensor);
  EXPECT_EQ(model.text(type("d")->element->dims[0].name), "N");
  EXPECT_EQ(type("e")->kind, TypeKind::kOptional);
  EXPECT_EQ(type("e")->element->kind, TypeKind::kSequence);
  EXPECT_EQ(type("e")->element->element->element_code, 7);
  EXPECT_EQ(type("f")->kind, TypeKind::kMap);
  EXPECT_EQ(type("f")->element_code, 7);
  EXPECT_EQ(type("f")->element->element_code, 8);
  EXPECT_EQ(type("h")->kind, TypeKind::kSparseTensor);
  EXPECT_EQ(type("h")->element_code, 10);
  EXPECT_EQ(type("untyped"), nullptr);
  EXPECT_EQ(type("i")->element_code, 17);
  EXPECT_EQ(type("i")->dims[0].extent, 0);
  EXPECT_EQ(type("j")->kind, TypeKind::kOpaque);
}

TEST(TextReader, ReadsNodes) {
  const std::string text = with_header(
      "g (float[N] x) => (float[N] \"y/1\") {\n"
      "  [first] a, , \"c:0\" = ai.onnx.ml.Thing:variant <axis = -1, scale = 0.5> (x, , x)\n"
      "  [] \"y/1\" = Foo (\"c:0\", \"\") <mode = \"up\">\n"
      "  = \"my-domain\".Sink (,)\n"
      "}");
  const Model model = parsed(text);
  ASSERT_EQ(model.nodes.size(), 3u);
  const Node& first = model.node(NodeId{0});
  EXPECT_EQ(model.text(first.name), "first");
  EXPECT_EQ(model.text(model.op(first).domain), "ai.onnx.ml");
  EXPECT_EQ(model.text(model.op(first).name), "Thing");
  EXPECT_EQ(model.text(model.op(first).overload), "variant");
  ASSERT_EQ(model.results(first).size(), 3u);
  EXPECT_EQ(model.results(first)[1], ValueId::kAbsent);
  EXPECT_EQ(model.name_of(model.results(first)[2]), "c:0");
  ASSERT_EQ(model.operands(first).size(), 3u);
  EXPECT_EQ(model.operands(first)[1], ValueId::kAbsent);
  EXPECT_EQ(model.operands(first)[0], model.operands(first)[2]);
  EXPECT_EQ(model.attribute(first, "axis")->i, -1);
  EXPECT_EQ(model.attribute(first, "scale")->f, 0.5f);
  EXPECT_EQ(first.position.line, 3u);
  EXPECT_EQ(first.position.column, 3u);
  EXPECT_EQ(first.position.offset, text.find("[first]"));
  const Node& second = model.node(NodeId{1});
  EXPECT_EQ(second.name, NameId::kEmpty);
  EXPECT_EQ(model.operands(second).size(), 2u);
  EXPECT_EQ(model.attribute(second, "mode")->s, "up");
  EXPECT_EQ(model.text(model.op(model.node(NodeId{2})).domain), "my-domain");
  EXPECT_TRUE(model.results(model.node(NodeId{2})).empty());
  ASSERT_EQ(model.operands(model.node(NodeId{2})).size(), 1u);
  EXPECT_EQ(model.operands(model.node(NodeId{2}))[0], ValueId::kAbsent);
}

TEST(TextReader, ReadsAttributes) {
  const Model model = parsed(with_header(
      "g () => () { x = Op <i = 3, f : float = 2, nan = nan, low = -inf, s = \"a\\\\b\", is = [1, -2], fs = [1.0, 2e3, "
      "inf],\n"
      " fi : floats = [1, 2], ss = [\"p\", \"q\"], none : ints = [], t = float[2] {1, 2.5}, named = int64[1] n = {7},\n"
      " ts : tensors = [float {1}, int64[0] {}], tp = seq(float[N]), tps : type_protos = [float, int64[]],\n"
      " sp = sparse_tensor(float[3, 4]) {float[2] {1, 2}, int64[2] {0, 5}}, \"odd name\" = 1> () }"));
  const Node& node = model.node(static_cast<NodeId>(0));
  const auto attribute = [&](std::string_view name) -> const Attribute& { return *model.attribute(node, name); };
  EXPECT_EQ(attribute("i").kind, AttributeKind::kInt);
  EXPECT_EQ(attribute("f").kind, AttributeKind::kFloat);
  EXPECT_EQ(attribute("f").f, 2.0f);
  EXPECT_TRUE(std::isnan(attribute("nan").f));
  EXPECT_EQ(attribute("low").f, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(attribute("s").s, "a\\b");
  EXPECT_EQ(std::vector(attribute("is").ints.begin(), attribute("is").ints.end()), (std::vector<std::int64_t>{1, -2}));
  EXPECT_EQ(attribute("fs").kind, AttributeKind::kFloats);
  EXPECT_EQ(attribute("fs").floats[1], 2000.0f);
  EXPECT_EQ(attribute("fi").kind, AttributeKind::kFloats);
  EXPECT_EQ(attribute("fi").floats[1], 2.0f);
  EXPECT_EQ(attribute("ss").strings[1], "q");
  EXPECT_EQ(attribute("none").kind, AttributeKind::kInts);
  EXPECT_TRUE(attribute("none").ints.empty());
  EXPECT_EQ(attribute("t").kind, AttributeKind::kTensor);
  EXPECT_EQ(attribute("t").tensor->floats(10), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(attribute("named").tensor->integers(10), (std::vector<std::int64_t>{7}));
  EXPECT_EQ(model.text(attribute("named").tensor->name), "n");
  ASSERT_EQ(attribute("ts").tensors.size(), 2u);
  EXPECT_EQ(attribute("ts").tensors[0]->floats(1), (std::vector<double>{1}));
  EXPECT_EQ(attribute("ts").tensors[1]->integers(0), (std::vector<std::int64_t>{}));
  EXPECT_EQ(attribute("tp").kind, AttributeKind::kTypeProto);
  EXPECT_EQ(attribute("tp").type->kind, TypeKind::kSequence);
  EXPECT_EQ(attribute("tps").types.size(), 2u);
  EXPECT_EQ(attribute("sp").kind, AttributeKind::kSparseTensor);
  EXPECT_EQ(attribute("sp").sparse->indices->integers(2), (std::vector<std::int64_t>{0, 5}));
  EXPECT_EQ(attribute("sp").sparse->dims[1], 4);
  EXPECT_EQ(attribute("odd name").i, 1);
  EXPECT_TRUE(model.faults.empty());
}

TEST(TextReader, ReadsNestedGraphs) {
  const Model model =
      parsed(with_header("main (bool c, float x) => (float y) {\n"
                         "  y = If (c) <then_branch = yes () => (float r) <float[1] w = {1}> {\n"
                         "      r = If (c) <then_branch = inner () => (q) { q = Neg (x) # } not the end\n"
                         "      }, else_branch = \"in ner\" () => (q) { q = Op <s = \"}{\"> (x) }>\n"
                         "    },\n"
                         "    else_branch = no () => (float r) { r = Abs (x) }>\n"
                         "  z = Relu (y)\n"
                         "}"));
  ASSERT_EQ(model.graphs.size(), 5u);
  EXPECT_EQ(model.graph(GraphId{0}).nodes.size(), 2u);
  EXPECT_EQ(model.graph_path(GraphId{1}), "main/yes");
  EXPECT_EQ(model.graph_path(GraphId{2}), "main/no");
  EXPECT_EQ(model.graph_path(GraphId{3}), "main/yes/inner");
  EXPECT_EQ(model.graph_path(GraphId{4}), "main/yes/in ner");
  EXPECT_EQ(model.graph(GraphId{1}).owner, NodeId{0});
  EXPECT_EQ(model.graph(GraphId{1}).attribute, "then_branch");
  EXPECT_EQ(model.graph(GraphId{4}).attribute, "else_branch");
  for (const GraphId id : model.graphs.ids())
    for (const NodeId node : model.graph(id).nodes) EXPECT_EQ(model.node(node).graph, id);
  // An operand of an inner graph is the value around it.
  const Node& neg = model.node(model.graph(GraphId{3}).nodes.front());
  EXPECT_EQ(model.operands(neg)[0], model.find_value(GraphId::kMain, "x"));
  EXPECT_EQ(neg.position.line, 4u);
  EXPECT_EQ(model.attribute(model.node(NodeId{0}), "else_branch")->graph, GraphId{2});
}

TEST(TextReader, PathsOfGraphsHaveTheEndsOfLongNames) {
  const std::string head(4000, 'h'), tail(4000, 't');
  const Model model = parsed(with_header("g (bool k) => (float y) { y = If (k) <then_branch = " + head +
                                         std::string(1 << 20, 'm') + tail + " () => (float a) { a = Op () }> }"));
  const std::string path = model.graph_path(GraphId{1});
  EXPECT_LT(path.size(), 8000u);
  EXPECT_TRUE(path.starts_with("main/hhh") && path.ends_with("ttt")) << path.size();
}

TEST(TextReader, ReadsFunctions) {
  const Model model = parsed(
      "<ir_version: 10, opset_import: [\"\" : 21, \"local\" : 1]>\n"
      "main (float[N] x) => (y) { y = local.twice:two <alpha = 2.0> (x) }\n"
      "<domain: \"local\", overload: \"two\", opset_import: [\"\" : 18], doc_string: \"d\">\n"
      "twice <alpha, beta : float = 1.5> (float[K] a) => (b) <float[K] t> {\n"
      "  t = Elu <alpha : float = @alpha, beta = @beta> (a)\n"
      "  b = If (t) <then_branch = g () => (u) { u = Neg (t) }>\n"
      "}\n"
      "<domain: \"local\">\n"
      "plain (a) => (a) {}\n");
  ASSERT_EQ(model.graphs.size(), 4u);
  const Graph& twice = model.graph(GraphId{1});
  EXPECT_EQ(twice.kind, GraphKind::kFunction);
  EXPECT_EQ(model.graph_path(GraphId{1}), "local::twice:two");
  EXPECT_EQ(twice.attribute_names, (std::vector<std::string_view>{"alpha"}));
  ASSERT_EQ(twice.attribute_defaults.size(), 1u);
  EXPECT_EQ(twice.attribute_defaults[0].f, 1.5f);
  EXPECT_EQ(model.opset(GraphId{1}, ""), 18);
  EXPECT_EQ(model.opset(GraphId{2}, ""), 18);
  EXPECT_EQ(model.opset(GraphId{3}, ""), 21);
  const Node& call = model.node(model.graph(GraphId{0}).nodes.front());
  EXPECT_EQ(model.op(call).function, GraphId{1});
  const Node& elu = model.node(twice.nodes.front());
  EXPECT_EQ(model.attribute(elu, "alpha")->reference, "alpha");
  EXPECT_EQ(model.attribute(elu, "alpha")->kind, AttributeKind::kFloat);
  EXPECT_EQ(model.attribute(elu, "beta")->reference, "beta");
  ASSERT_NE(model.value(model.find_value(GraphId{1}, "t")).type, nullptr);
  ASSERT_NE(model.value(model.find_value(GraphId{1}, "a")).type, nullptr);
}

TEST(TextReader, ReadsInitializers) {
  const Model model = parsed(
      with_header("g (float[2] x = {1, 2}, int64 n) => (float[2] y)\n"
                  "<float[3] w = {1, -2.5, inf}, float[2] v, string[2] s = {\"a\", \"b # c\"},\n"
                  " float[1000000, 1000000] big = [\"location\": \"w.bin\", \"offset\": \"4096\", \"length\": \"8\"],\n"
                  " sparse_tensor(float[10]) sp = {float[1] {3}, int64[1] {4}}> {\n"
                  "  v = Relu (x)\n  y = Add (v, w)\n}"));
  const auto value = [&](std::string_view name) -> const Value& {
    return model.value(model.find_value(GraphId::kMain, name));
  };
  EXPECT_EQ(value("x").origin, ValueOrigin::kInput);
  EXPECT_EQ(value("x").initializer->floats(2), (std::vector<double>{1, 2}));
  EXPECT_EQ(value("w").origin, ValueOrigin::kInitializer);
  EXPECT_EQ(value("w").initializer->position.line, 3u);
  EXPECT_EQ(value("w").initializer->position.column, 2u);
  EXPECT_NE(value("v").type, nullptr);
  EXPECT_EQ(value("s").initializer->strings[1], "b # c");
  EXPECT_TRUE(value("big").initializer->external);
  EXPECT_EQ(value("big").initializer->location, "w.bin");
  EXPECT_EQ(value("big").initializer->offset_text, "4096");
  EXPECT_EQ(value("big").initializer->length_text, "8");
  EXPECT_EQ(value("sp").sparse_initializer->values->floats(1), (std::vector<double>{3}));
  EXPECT_EQ(model.graph(GraphId{0}).initializers.size(), 4u);
  EXPECT_TRUE(model.faults.empty());
}

TEST(TextReader, EncodesEveryElementType) {
  Model model;
  using Ints = std::vector<std::int64_t>;
  using Floats = std::vector<double>;
  EXPECT_EQ(constant(model, "int8[2]", "{-128, 127}").integers(2), (Ints{-128, 127}));
  EXPECT_EQ(constant(model, "uint8[2]", "{0, 255}").integers(2), (Ints{0, 255}));
  EXPECT_EQ(constant(model, "int16[2]", "{-32768, 32767}").integers(2), (Ints{-32768, 32767}));
  EXPECT_EQ(constant(model, "uint16[1]", "{65535}").integers(1), (Ints{65535}));
  EXPECT_EQ(constant(model, "int32[1]", "{-2147483648}").integers(1), (Ints{-2147483648LL}));
  EXPECT_EQ(constant(model, "uint32[1]", "{4294967295}").integers(1), (Ints{4294967295LL}));
  EXPECT_EQ(constant(model, "int64[1]", "{-9223372036854775808}").integers(1),
            (Ints{std::numeric_limits<std::int64_t>::min()}));
  EXPECT_EQ(constant(model, "uint64[1]", "{18446744073709551615}").raw, std::string(8, '\xff'));
  EXPECT_EQ(constant(model, "bool[3]", "{1, 0, 1}").integers(3), (Ints{1, 0, 1}));
  EXPECT_EQ(constant(model, "int4[3]", "{-8, 7, -1}").integers(3), (Ints{-8, 7, -1}));
  EXPECT_EQ(constant(model, "uint4[3]", "{0, 15, 9}").integers(3), (Ints{0, 15, 9}));
  EXPECT_EQ(constant(model, "int2[5]", "{-2, 1, 0, -1, 1}").integers(5), (Ints{-2, 1, 0, -1, 1}));
  EXPECT_EQ(constant(model, "uint2[1]", "{3}").raw, "\x03");
  EXPECT_EQ(constant(model, "float4e2m1[3]", "{1, 15, 2}").raw, "\xf1\x02");
  EXPECT_EQ(constant(model, "float6e2m3[4]", "{63, 0, 1, 32}").raw, "\x3f\x10\x80");
  EXPECT_EQ(constant(model, "float8e5m2[2]", "{60, 255}").raw, "\x3c\xff");
  EXPECT_EQ(constant(model, "double[2]", "{1e-300, -0}").floats(2)->at(0), 1e-300);
  EXPECT_TRUE(std::signbit(model.value(model.find_value(GraphId::kMain, "w")).initializer->floats(2)->at(1)));
  EXPECT_EQ(constant(model, "complex64[1]", "{1, -2}").raw.size(), 8u);
  // Integers are the bits of a half; a number with a point is its value, to nearest even.
  EXPECT_EQ(constant(model, "float16[7]", "{15360, 1.0, -2.5, 65504.0, inf, 5.9604645e-8, 2049.0}").floats(7),
            (Floats{1, 1, -2.5, 65504, HUGE_VAL, 0x1p-24, 2048}));
  EXPECT_EQ(constant(model, "bfloat16[4]", "{16256, 1.0, -3.0, 1.00390625}").floats(4), (Floats{1, 1, -3, 1}));
  EXPECT_EQ(constant(model, "float[3]", "{1e-60, -1e-60, 0.1}").floats(3), (Floats{0, 0, static_cast<double>(0.1f)}));
  EXPECT_TRUE(model.faults.empty());
}

TEST(TextReader, KeepsComments) {
  constexpr std::string_view kText =
      "# head\n"
      "<ir_version: 10, opset_import: [\"\" : 21]> # after\r\n"
      "g () => () {\n"
      "  x = Op <s = \"# no \\\" comment\n# nor this\"> ()   # expect: TL-D101\n"
      "  # tensorlint: ignore[mixed-operand-dtypes] because\n"
      "}#";
  const Model model = parsed(kText);
  ASSERT_EQ(model.comments.size(), 5u);
  EXPECT_EQ(model.comments[0].line, 1u);
  EXPECT_EQ(model.comments[0].text, "head");
  EXPECT_EQ(model.comments[1].text, "after");
  EXPECT_EQ(model.comments[2].line, 5u);
  EXPECT_EQ(model.comments[2].text, "expect: TL-D101");
  EXPECT_EQ(model.comments[3].text, "tensorlint: ignore[mixed-operand-dtypes] because");
  EXPECT_EQ(model.comments[4].line, 7u);
  EXPECT_EQ(model.comments[4].text, "");
}

TEST(TextReader, SaysWhereAndWhat) {
  EXPECT_EQ(error_of_text(""), "1:1: expected the graph's name, found the end of the text");
  EXPECT_EQ(error_of_text("<ir_version: x>"), "1:14: expected an integer, found `x`");
  EXPECT_EQ(error_of_text("g (float x => ()"), "1:12: expected `)` or `,` after an input, found `=>`");
  EXPECT_EQ(error_of_text("g () => () {\n  y = Relu x\n}"), "2:12: expected `(` before the operands, found `x`");
  EXPECT_EQ(error_of_text("g () => () {\n  y = Relu (x)\n"), "3:1: expected a node or `}`, found the end of the text");
  EXPECT_EQ(error_of_text("g () => () { y = A <s = \"abc> () }"),
            "1:25: expected an attribute's value, found a string without its closing quote");
  EXPECT_EQ(error_of_text("g () => () { y = A <i = 9223372036854775808> () }"),
            "1:25: `9223372036854775808` does not fit int64");
  EXPECT_EQ(error_of_text("g () => () { y = A <f = 1e39> () }"), "1:25: `1e39` does not fit float32");
  EXPECT_EQ(error_of_text("g () => () { y = A <f = 1e9223372036854775807> () }"),
            "1:25: `1e9223372036854775807` does not fit float32");
  EXPECT_EQ(error_of_text("g () => () { y = A <f = 0.01e-9223372036854775808> () }"), "no error");
  EXPECT_EQ(error_of_text("g () => () { y = A <i = 12ab> () }"),
            "1:25: expected an attribute's value, found a malformed number");
  EXPECT_EQ(error_of_text("g () => () { y = A <i = []> () }"),
            "1:25: an empty list needs its kind (`: ints` or another)");
  EXPECT_EQ(error_of_text("g () => () { y = A <i : int = \"x\"> () }"),
            "1:31: expected a value of kind int, found one of kind string: the string \"x\"");
  EXPECT_EQ(error_of_text("g () => () { y = A <i = [1, 2.0]> () }"),
            "1:29: expected a value of kind int, found one of kind float: `2.0`");
  EXPECT_EQ(error_of_text("g () => () <int8[1] w = {128}> {}"), "1:26: `128` does not fit int8");
  EXPECT_EQ(error_of_text("g () => () <uint8[1] w = {-1}> {}"), "1:27: `-1` does not fit uint8");
  EXPECT_EQ(error_of_text("g () => () <bool[1] w = {2}> {}"), "1:26: expected 0 or 1, found `2`");
  EXPECT_EQ(error_of_text("g () => () <int4[1] w = {8}> {}"), "1:26: `8` does not fit int4");
  EXPECT_EQ(error_of_text("g () => () <float16[1] w = {65520.0}> {}"), "1:29: `65520.0` does not fit float16");
  EXPECT_EQ(error_of_text("g () => () <float[N] w = {1}> {}"), "1:13: a constant needs numbers as dims, found `N`");
  EXPECT_EQ(error_of_text("g () => () <float[] w = {1}> {}"), "1:13: a constant needs its dims, found `[]`");
  EXPECT_EQ(error_of_text("g () => () { y = A () } g $"),
            "1:27: expected `(` before the inputs, found a character that the syntax does not know");
  EXPECT_EQ(error_of_text("g () => () { y = A () <b = h () => (z) { z = B (x } > }"),
            "1:51: expected `)` or `,` after an operand, found `}`");
  EXPECT_EQ(error_of_text("g () => () { y = A () <b = h () => (z) { z = B (x) }"),
            "1:53: expected `>` or `,` after an attribute, found the end of the text");
  EXPECT_EQ(error_of_text("g () => () { y = A () <b = h () => (z) { z = B (x)"),
            "1:51: expected a node or `}`, found the end of the text");
}

TEST(TextReader, ReportsMalformedConstantsAsFaults) {
  const Model model = parsed(with_header(
      "g () => () <float[2, 2] w = {1, 2, 3}, float[-1] v = {1}, float[4611686018427387904, 4] u = {}> {}"));
  ASSERT_EQ(model.faults.size(), 3u);
  for (const StructureFault& fault : model.faults) EXPECT_EQ(fault.kind, StructureFault::Kind::kMalformedTensor);
  EXPECT_EQ(model.faults[0].message, "tensor `w` of float32 [2, 2] takes 4 elements, it has 3");
  EXPECT_EQ(model.faults[0].position.column, 13u);
}

TEST(TextReader, LimitsDepth) {
  const auto nested_graphs = [](int depth) {
    std::string text = "g () => () {";
    for (int i = 0; i < depth; ++i) text += " x = If (c) <then_branch = h () => () {";
    for (int i = 0; i < depth; ++i) text += " }>";
    return text + " }";
  };
  EXPECT_EQ(parsed(nested_graphs(64)).graphs.size(), 65u);
  EXPECT_TRUE(error_of_text(nested_graphs(65)).ends_with("graphs nest more than 64 deep"))
      << error_of_text(nested_graphs(65));
  const auto nested_types = [](std::size_t depth) {
    std::string text = "g (";
    for (std::size_t i = 0; i < depth; ++i) text += "seq(";
    return text + "float" + std::string(depth, ')') + " x) => () {}";
  };
  EXPECT_EQ(error_of_text(nested_types(16)), "no error");
  EXPECT_TRUE(error_of_text(nested_types(17)).ends_with("types nest more than 16 deep"));
  EXPECT_TRUE(error_of_text(nested_types(1'000'000 / stride(20))).ends_with("types nest more than 16 deep"));
  EXPECT_TRUE(
      error_of_text(nested_graphs(100'000 / static_cast<int>(stride(20)))).ends_with("graphs nest more than 64 deep"));
}

TEST(TextReader, ReadsLongLists) {
  std::string text = "g () => () <int64[300000] w = {0";
  for (int i = 1; i < 300000; ++i) text += "," + std::to_string(i);
  const Model model = parsed(text + "}> {}");
  const auto elements = model.value(model.find_value(GraphId::kMain, "w")).initializer->integers(300000);
  ASSERT_TRUE(elements.has_value());
  EXPECT_EQ(elements->back(), 299999);
}

TEST(TextReader, LimitsMemoryToTheLengthOfTheText) {
  std::string text = "g () => () {";
  for (int i = 0; i < 1000000; ++i) text += "a=A<a=1>()";
  EXPECT_NE(error_of_text(text + "}").find("so many tiny pieces"), std::string::npos);
}

TEST(TextReader, ReportsMalformedTypesAndAttributesAsFaults) {
  const Model model =
      parsed(with_header("g (float[-2] a, seq() b, dtype_99 c) => () { x = Op <q : undefined, \"\" = 1> () }"));
  ASSERT_EQ(model.faults.size(), 5u);
  EXPECT_EQ(model.faults[0].message, "a type declares the negative dim -2");
  EXPECT_EQ(model.faults[1].message, "a type declares no element type");
  EXPECT_EQ(model.faults[2].message, "a type declares the unknown dtype code 99");
  EXPECT_EQ(model.faults[3].message, "attribute `q` has no kind and no value");
  EXPECT_EQ(model.faults[3].node, NodeId{0});
  EXPECT_EQ(model.faults[4].message, "an attribute has no name");
}

TEST(TextReader, TellsManyNamesApartThatDifferAtTheEnd) {
  // Hashes that miss the end of a name make this 20 s.
  std::string text = "g () => () {";
  for (int i = 100000; i < 200000; ++i) text += " value_" + std::to_string(i) + " = A ()\n";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(parsed(text + "}").nodes.size(), 100000u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(TextReader, TakesAnOpsetThatIsImportedTwice) {
  EXPECT_TRUE(parsed("<opset_import: [\"\" : 17, \"ai.onnx\" : 17]> g () => () {}").faults.empty());
  EXPECT_EQ(parsed("<opset_import: [\"\" : 17, \"\" : 18]> g () => () {}").faults.size(), 1u);
}

TEST(TextReader, LimitsOpsetImports) {
  std::string text = "<opset_import: [\"\" : 1";
  for (int i = 0; i < 1024; ++i) text += ", \"" + std::to_string(i) + "\" : 1";
  EXPECT_NE(error_of_text(text + "]> g () => () {}").find("more than 1024 opset imports"), std::string::npos);
}

TEST(TextReader, RefusesWhatIsNoRegularFile) {
  EXPECT_EQ(read_onnx_text_file("/dev/null").error().message, "`/dev/null` is a device, not a regular file");
  EXPECT_EQ(read_onnx_text_file("/nonexistent/m.onnxtxt").error().message,
            "cannot open `/nonexistent/m.onnxtxt`: No such file or directory");
}

}  // namespace
}  // namespace tensorlint
