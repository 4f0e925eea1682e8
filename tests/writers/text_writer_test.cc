// The splice writer for text: edits land where they belong, what comes out can be read, and every
// comment and line that no edit touches stands.
#include "ir/writers/text/writer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/text/printer.h"
#include "ir/text/reader.h"

namespace tensorlint {
namespace {

Model read_text(std::string_view text) {
  Result<Model> model = read_onnx_text(text, "model.onnxtxt");
  EXPECT_TRUE(model.ok()) << model.error().message;
  return std::move(*model);
}

std::string edited(std::string_view text, const std::vector<GraphEdit>& edits) {
  const Model model = read_text(text);
  const Result<EditedBytes> result = edit_onnx_text(text, model, edits);
  if (!result) return "error: " + result.error().message;
  const std::string made = result->joined();
  EXPECT_TRUE(read_onnx_text(made, "edited.onnxtxt").ok()) << made;
  return made;
}

constexpr std::string_view kModel = R"(<ir_version: 10, opset_import: ["" : 21]>
# a model
g (float[N, 4] x, int64[N] "odd name") => (y)
<float[4] shift = {1, 2, 3, 4}, float[N, 4] t>
{
  # what t is
  [first] t = Mul (x, x)   # squares
  y = Clip (t, , shift)
}
)";

TEST(TextWriter, WithoutEditsEveryByteStands) { EXPECT_EQ(edited(kModel, {}), kModel); }

TEST(TextWriter, NewNodesStandAboveTheCommentsOfTheNextOne) {
  const NewNode cast{"", "Cast", "made", {"odd name"}, {"n 1"}, {{.name = "to", .kind = AttributeKind::kInt, .i = 1}}};
  const NewNode scale{"my.domain",
                      "Scale",
                      "",
                      {"n 1", "", "x"},
                      {"", "s"},
                      {{.name = "by", .kind = AttributeKind::kFloat, .f = 2},
                       {.name = "mode", .kind = AttributeKind::kString, .s = "a\"b"}}};
  EXPECT_EQ(edited(kModel, {InsertNode{NodeId{0}, cast}, InsertNode{NodeId{0}, scale}, ImportDomain{"my.domain", 2}}),
            R"(<ir_version: 10, opset_import: ["" : 21, "my.domain" : 2]>
# a model
g (float[N, 4] x, int64[N] "odd name") => (y)
<float[4] shift = {1, 2, 3, 4}, float[N, 4] t>
{
  [made] "n 1" = Cast <to = 1> ("odd name")
  , s = my.domain.Scale <by = 2.0, mode = "a\"b"> ("n 1", , x)
  # what t is
  [first] t = Mul (x, x)   # squares
  y = Clip (t, , shift)
}
)");
}

TEST(TextWriter, OperandsAndAttributesChangeInPlace) {
  const std::string text = edited(
      kModel, {SetOperand{NodeId{0}, 1, "odd name"}, SetOperand{NodeId{1}, 1, "low"}, SetOperand{NodeId{0}, 3, "more"},
               SetAttribute{NodeId{1}, {.name = "axes", .kind = AttributeKind::kInts, .ints = {-1, 2}}}});
  EXPECT_NE(
      text.find(
          "[first] t = Mul (x, \"odd name\", , more)   # squares\n  y = Clip <axes: ints = [-1, 2]> (t, low, shift)\n"),
      std::string::npos)
      << text;
  const std::string again =
      edited(text, {SetAttribute{NodeId{1}, {.name = "axes", .kind = AttributeKind::kInt, .i = 3}},
                    SetAttribute{NodeId{1}, {.name = "axis", .kind = AttributeKind::kInt, .i = 4}}});
  EXPECT_NE(again.find("y = Clip <axes = 3, axis = 4> (t, low, shift)\n"), std::string::npos) << again;
}

SetAttribute removal(NodeId node, std::string name) {
  return {node, {.name = std::move(name), .kind = AttributeKind::kUndefined}};
}

TEST(TextWriter, AttributesGo) {
  const std::string text =
      "<ir_version: 10, opset_import: [\"\" : 21]>\ng (float[N, 3] x) => (y, z)\n{\n"
      "  y = ReduceSum <axes = [1], keepdims = 0, noop_with_empty_axes = 0> (x)\n  z = Squeeze <axes = [0]> (x)\n}\n";
  const auto sum = [&](std::vector<GraphEdit> edits) {
    const std::string made = edited(text, edits);
    return made.substr(made.find("  y"), made.find("  z") - made.find("  y"));
  };
  EXPECT_EQ(sum({removal(NodeId{0}, "axes")}), "  y = ReduceSum <keepdims = 0, noop_with_empty_axes = 0> (x)\n");
  EXPECT_EQ(sum({removal(NodeId{0}, "noop_with_empty_axes")}), "  y = ReduceSum <axes = [1], keepdims = 0> (x)\n");
  EXPECT_EQ(sum({removal(NodeId{0}, "noop_with_empty_axes"), removal(NodeId{0}, "axes")}),
            "  y = ReduceSum <keepdims = 0> (x)\n");
  EXPECT_EQ(sum({removal(NodeId{0}, "nothing")}),
            "  y = ReduceSum <axes = [1], keepdims = 0, noop_with_empty_axes = 0> (x)\n");
  EXPECT_NE(edited(text, {removal(NodeId{1}, "axes"), SetOperand{NodeId{1}, 1, "a"}}).find("  z = Squeeze (x, a)\n"),
            std::string::npos);
}

TEST(TextWriter, ResultsGetOtherNamesAndNodesStandAtTheEnd) {
  const NewNode last{"", "Neg", "", {"a"}, {"y"}, {}};
  EXPECT_NE(edited(kModel, {SetResult{NodeId{1}, 0, "a"}, InsertNode{NodeId::kNone, last}})
                .find("  a = Clip (t, , shift)\n  y = Neg (a)\n}\n"),
            std::string::npos);
  constexpr std::string_view kSeveral =
      "<ir_version: 10, opset_import: [\"\" : 21]>\ng (float[N] x) => (b, c) { , b, c = Split <num_outputs = 3> (x) "
      "}\n";
  EXPECT_NE(
      edited(kSeveral, {SetResult{NodeId{0}, 1, "d"}, SetResult{NodeId{0}, 2, "e 1"}}).find(", d, \"e 1\" = Split"),
      std::string::npos);
  EXPECT_EQ(edited(kModel, {AddMetadata{NodeId{0}, ValueId::kAbsent, "key", "value"}}),
            "error: nodes and constants of a model in text have no metadata");
}

TEST(TextWriter, NodesTakeTheirLinesAlong) {
  const std::string removed = edited(kModel, {RemoveNode{NodeId{0}}, DropValueInfo{GraphId::kMain, "t"}});
  EXPECT_NE(removed.find("<float[4] shift = {1, 2, 3, 4}>\n{\n  # what t is\n  y = Clip (t, , shift)\n}\n"),
            std::string::npos)
      << removed;
  const std::string down = edited(kModel, {MoveNode{NodeId{0}, NodeId::kNone}});
  EXPECT_NE(down.find("{\n  # what t is\n  y = Clip (t, , shift)\n  [first] t = Mul (x, x)   # squares\n}\n"),
            std::string::npos)
      << down;
  const std::string up = edited(kModel, {MoveNode{NodeId{1}, NodeId{0}}});
  EXPECT_NE(up.find("{\n  y = Clip (t, , shift)\n  # what t is\n  [first] t = Mul (x, x)   # squares\n}\n"),
            std::string::npos)
      << up;
}

TEST(TextWriter, NodesThatShareALineStayOnIt) {
  constexpr std::string_view kLine =
      "<ir_version: 10, opset_import: [\"\" : 21]>\ng (float[N] x) => (y) { a = Neg (x) y = Abs (x) }\n";
  EXPECT_NE(edited(kLine, {RemoveNode{NodeId{0}}}).find("{ y = Abs (x) }"), std::string::npos);
  EXPECT_NE(edited(kLine, {MoveNode{NodeId{0}, NodeId::kNone}}).find("{ y = Abs (x) a = Neg (x) }"), std::string::npos);
  EXPECT_NE(edited(kLine, {MoveNode{NodeId{1}, NodeId{0}}}).find("{ y = Abs (x) a = Neg (x) }"), std::string::npos);
  EXPECT_NE(edited(kLine, {AddInitializer{GraphId::kMain, "c", {2}, {5, -7}}}).find("<int64[2] c = {5, -7}>\n{ a"),
            std::string::npos);
}

TEST(TextWriter, ConstantsComeAndGo) {
  const Model model = read_text(kModel);
  const ValueId shift = model.graph(GraphId::kMain).initializers[0];
  const std::vector<GraphEdit> swap{RemoveInitializer{shift}, AddInitializer{GraphId::kMain, "c", {}, {3}}};
  EXPECT_NE(edited(kModel, swap).find("\n<float[N, 4] t, int64 c = {3}>\n"), std::string::npos);
  EXPECT_NE(edited(kModel, {RemoveInitializer{shift}, DropValueInfo{GraphId::kMain, "t"}}).find("\n<>\n"),
            std::string::npos);
  EXPECT_NE(edited(kModel, {DropValueInfo{GraphId::kMain, "t"}}).find("\n<float[4] shift = {1, 2, 3, 4}>\n"),
            std::string::npos);
}

TEST(TextWriter, TheHeaderGetsMetadata) {
  EXPECT_TRUE(
      edited(kModel, {AddModelMetadata{"k", "v \"w\""}, AddModelMetadata{"l", "m"}})
          .starts_with(R"(<ir_version: 10, opset_import: ["" : 21], metadata_props: ["k": "v \"w\"", "l": "m"]>)"));
  EXPECT_EQ(edited("g (float[N] x) => (y) { y = Neg (x) }", {AddModelMetadata{"k", "v"}}),
            "error: the model has no header to put `metadata_props` into");
}

TEST(TextWriter, CommentsGoAloneOrFromBehindANode) {
  EXPECT_EQ(edited(kModel, {RemoveComment{6}}).find("what t is"), std::string::npos);
  EXPECT_NE(edited(kModel, {RemoveComment{7}}).find("[first] t = Mul (x, x)\n  y"), std::string::npos);
  EXPECT_EQ(edited(kModel, {RemoveComment{8}}), "error: there is no comment on line 8");
  // With the node that it stands behind.
  EXPECT_EQ(edited(kModel, {RemoveNode{NodeId{0}}, RemoveComment{7}}), edited(kModel, {RemoveNode{NodeId{0}}}));
}

TEST(TextWriter, LinesEndAsInTheFile) {
  constexpr std::string_view kLines = "g (float[N] x) => (y)\r\n{\r\n  a = Neg (x)  # left\r\n  y = Abs (x)\r\n}\r\n";
  EXPECT_EQ(edited(kLines, {MoveNode{NodeId{0}, NodeId::kNone}}),
            "g (float[N] x) => (y)\r\n{\r\n  y = Abs (x)\r\n  a = Neg (x)  # left\r\n}\r\n");
  EXPECT_EQ(edited(kLines, {MoveNode{NodeId{1}, NodeId{0}}}),
            "g (float[N] x) => (y)\r\n{\r\n  y = Abs (x)\r\n  a = Neg (x)  # left\r\n}\r\n");
}

TEST(TextWriter, NodesKeepTheirCommentsBesideOthersOnALine) {
  // The last node ends a line that it does not begin, then one that the bracket ends.
  constexpr std::string_view kShared =
      "g (float[N] x) => (y)\n{\n  a = Neg (x)  # left\n  b = Exp (x) y = Abs (x)  # right\n}\n";
  EXPECT_EQ(edited(kShared, {MoveNode{NodeId{0}, NodeId::kNone}}),
            "g (float[N] x) => (y)\n{\n  b = Exp (x) y = Abs (x)  # right\na = Neg (x)  # left\n}\n");
  constexpr std::string_view kBracket = "g (float[N] x) => (y)\n{\n  a = Neg (x)  # left\n  y = Abs (x) }\n";
  EXPECT_EQ(edited(kBracket, {MoveNode{NodeId{0}, NodeId::kNone}}),
            "g (float[N] x) => (y)\n{\n  y = Abs (x)\na = Neg (x)  # left\n }\n");
}

TEST(TextWriter, BodiesAreEditedWhereTheyStand) {
  constexpr std::string_view kBodies = R"(<ir_version: 10, opset_import: ["" : 21]>
g (bool c, float[N] x) => (y)
{
  y = If (c) <then_branch = a () => (float[N] p) { d = Neg (x) p = Relu (x) }, else_branch = b () => (float[N] q) <float[1] u = {1}> {
    q = Abs (x)
  }>
}
)";
  const Model model = read_text(kBodies);
  std::vector<GraphEdit> edits;
  for (const NodeId id : model.nodes.ids()) {
    const std::string_view op = model.text(model.op(model.node(id)).name);
    if (op == "Neg") edits.push_back(RemoveNode{id});
    if (op == "Abs") edits.push_back(SetAttribute{id, {.name = "a", .kind = AttributeKind::kInt, .i = 1}});
  }
  for (const ValueId id : model.values.ids(kFirstValue))
    if (model.name_of(id) == "u") edits.push_back(RemoveInitializer{id});
  ASSERT_EQ(edits.size(), 3U);
  const std::string text = edited(kBodies, edits);
  EXPECT_NE(text.find("{ p = Relu (x) }, else_branch = b () => (float[N] q) <> {\n    q = Abs <a = 1> (x)\n  }>"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace tensorlint
