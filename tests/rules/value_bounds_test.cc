// Which indices some execution reaches, and which constants and ranges a cast changes: the bounds of the rules about
// values.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "analyzer/pipeline/pipeline.h"
#include "ir/text/reader.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::rules {
namespace {

/// The messages of one rule. A model that cannot be read fails the test.
std::string said(std::string_view code, std::string_view graph, int opset = 21) {
  const std::string text = fmt::format("<ir_version: 10, opset_import: [\"\": {}]>\n{}", opset, graph);
  Result<Model> model = read_onnx_text(text, "test.onnxtxt");
  if (!model) {
    ADD_FAILURE() << model.error().message << "\n" << text;
    return {};
  }
  std::string messages;
  for (const findings::Finding& finding : pipeline::Pipeline(std::move(*model), {}).check().findings)
    if (finding.code == code) messages += (messages.empty() ? "" : "; ") + finding.message;
  return messages;
}

// ---- indices

/// Of a Gather from ten rows at `i`, which the nodes compute of int64 or float inputs.
std::string rows(std::string_view nodes, std::string_view more = "") {
  return said(
      "TL-V502",
      fmt::format(
          "g (float[10, 4] table, int64[N] x, float[N] f, int64[N] w) => (y)\n"
          "<int64 zero = {{0}}, int64 nine = {{9}}, int64 ten = {{10}}, int64 eleven = {{11}}, int64 minus = {{-1}},\n"
          " int64 one = {{1}}, float half = {{0.5}}, float tenf = {{10}}, float ninef = {{9.9}}{}>\n"
          "{{ {} y = Gather (table, i) }}",
          more, nodes));
}

bool reaches(const std::string& messages) { return !messages.empty(); }

TEST(ReachedIndex, OfAClip) {
  EXPECT_TRUE(reaches(rows("i = Clip (x, zero, ten)")));
  EXPECT_FALSE(reaches(rows("i = Clip (x, zero, nine)")));
  EXPECT_TRUE(reaches(rows("i = Clip (x, , ten)")));
  EXPECT_FALSE(reaches(rows("i = Clip (x, zero)")));
  EXPECT_FALSE(reaches(rows("i = Clip (x)")));
  // The upper bound wins where they are crossed.
  EXPECT_TRUE(reaches(rows("i = Clip (x, eleven, ten)")));
  EXPECT_FALSE(reaches(rows("i = Clip (x, eleven, nine)")));
  EXPECT_TRUE(reaches(rows("i = Clip (x, ten, ten)")));
  // A bound that is an input, and one that is not followed.
  EXPECT_TRUE(reaches(rows("m = ReduceMax <keepdims = 0> (w) i = Clip (x, m, ten)")));
  EXPECT_FALSE(reaches(rows("m = ReduceProd <keepdims = 0> (w) i = Clip (x, m, ten)")));
}

TEST(ReachedIndex, OfAMinimum) {
  EXPECT_TRUE(reaches(rows("i = Min (x, ten)")));
  EXPECT_TRUE(reaches(rows("i = Min (ten, x)")));
  EXPECT_FALSE(reaches(rows("i = Min (x, nine)")));
  EXPECT_FALSE(reaches(rows("i = Min (nine, x)")));
  EXPECT_FALSE(reaches(rows("i = Min (x, ten, nine)")));
  EXPECT_FALSE(reaches(rows("i = Min (x, w)")));
}

TEST(ReachedIndex, OfARemainder) {
  EXPECT_TRUE(reaches(rows("i = Mod (x, eleven)")));
  EXPECT_FALSE(reaches(rows("i = Mod (x, ten)")));
  EXPECT_TRUE(reaches(rows("i = Mod <fmod = 1> (x, eleven)")));
  EXPECT_FALSE(reaches(rows("i = Mod <fmod = 1> (x, ten)")));
  // Not every residue comes up.
  EXPECT_FALSE(reaches(rows("v = Mul (x, nine) i = Mod (v, m)", ", int64 m = {18}")));
  EXPECT_TRUE(reaches(rows("v = Mul (x, eleven) i = Mod (v, m)", ", int64 m = {18}")));
  EXPECT_FALSE(reaches(rows("v = Clip (x, zero, nine) i = Mod (v, m)", ", int64 m = {18}")));
  EXPECT_FALSE(reaches(rows("r = Neg (eleven) i = Mod (x, r)")));
}

TEST(ReachedIndex, OfWhatTakesAnyValue) {
  for (const std::string_view nodes :
       {"v = Add (x, one)", "v = Add (one, x)", "v = Sub (x, one)", "v = Sub (one, x)", "v = Mul (x, ten)",
        "v = Div (x, ten)", "v = Neg (x)", "v = Identity (x)", "c = Floor (f) v = Cast <to = 7> (c)",
        "c = Ceil (f) v = Cast <to = 7> (c)", "c = Round (f) v = Cast <to = 7> (c)",
        "c = Mul (f, half) v = Cast <to = 7> (c)", "v = Cast <to = 7> (f)", "v = Add (x, w)", "v = Sub (x, w)",
        "v = Mul (x, w)", "v = Abs (x)"})
    EXPECT_TRUE(reaches(rows(std::string(nodes) + " i = Clip (v, zero, ten)"))) << nodes;
  for (const std::string_view nodes :
       {"v = Mul (x, zero)", "v = Div (one, x)", "v = Sub (x, x)", "s = Sin (f) v = Cast <to = 7> (s)",
        "b = Cast <to = 9> (x) v = Cast <to = 7> (b)", "v = ArgMax <keepdims = 0> (table)"})
    EXPECT_FALSE(reaches(rows(std::string(nodes) + " i = Clip (v, zero, ten)"))) << nodes;
}

TEST(ReachedIndex, BehindWhatMovesElements) {
  for (const std::string_view nodes :
       {"i = Identity (c)", "i = Unsqueeze (c, zero1)", "i = Reshape (c, shape)", "i = Flatten (c)",
        "i = Transpose (c)", "i = Slice (c, zero1, one1)", "h = Cast <to = 6> (c) i = Cast <to = 7> (h)"})
    EXPECT_TRUE(reaches(rows("c = Clip (x, zero, ten) " + std::string(nodes),
                             ", int64[1] zero1 = {0}, int64[1] one1 = {1}, int64[2] shape = {1, -1}")))
        << nodes;
  EXPECT_TRUE(reaches(rows("c = Clip (x, zero, ten) i = Add (c, zero)")));
  EXPECT_TRUE(reaches(rows("c = Clip (x, zero, nine) i = Add (c, one)")));
  EXPECT_FALSE(reaches(rows("c = Clip (x, zero, ten) i = Sub (c, one)")));
  EXPECT_FALSE(reaches(rows("c = Clip (x, zero, ten) i = Neg (c)")));
}

TEST(ReachedIndex, OfFloatsAsTheCastDropsTheFraction) {
  EXPECT_TRUE(reaches(rows("c = Clip (f, half, tenf) i = Cast <to = 7> (c)")));
  EXPECT_FALSE(reaches(rows("c = Clip (f, half, ninef) i = Cast <to = 7> (c)")));
}

TEST(ReachedIndex, OfWhatTheProgramPutsIn) {
  constexpr std::string_view kMore =
      ", int64[1] axis = {1}, int64[1] first = {0}, float[9] edges = {1,2,3,4,5,6,7,8,9},\n"
      " float[10] more = {1,2,3,4,5,6,7,8,9,10}, int64[2] ends = {0, 1}, int64[2] none = {0, 0}, bool yes = {1},\n"
      " int64[4] map = {3, 1, 10, 0}, int64[4] small = {3, 1, 9, 0}, int64 two = {2}, int64 five = {5}";
  for (const std::string_view nodes :
       {"i = Pad (x, ends, ten)", "i = Concat <axis = 0> (x, row) ", "c = Equal (x, two) i = Where (c, ten, x)",
        "c = Greater (f, half) i = Where (c, ten, x)", "c = Less (x, zero) d = Not (c) i = Where (d, x, ten)",
        "c = Greater (f, half) h = Cast <to = 7> (c) i = Mul (h, ten)",
        "s = Sign (f) h = Cast <to = 7> (s) t = Mul (h, ten) i = Add (t, h)", "i = Gather (map, x)",
        "c = Clip (x, zero, one) d = Clip (w, zero, nine) i = Add (c, d)",
        "k = Mod (x, two) d = Mod (w, five) h = Mul (k, five) g = Add (h, d) i = Add (g, one)",
        "b = Cast <to = 6> (x) d = Clip (b, , eleven32) i = Cast <to = 7> (d)",
        "u = Unsqueeze (f, axis) c = Greater (u, more) h = Cast <to = 7> (c) i = ReduceSum <keepdims = 0> (h, axis)",
        "c = Greater (f, half) d = Less (f, tenf) e = And (c, d) i = Where (e, ten, zero)"})
    EXPECT_TRUE(reaches(rows(nodes, fmt::format("{}, int64[1] row = {{10}}, int32 eleven32 = {{11}}", kMore))))
        << nodes;
  for (const std::string_view nodes :
       {"i = Pad (x, none, ten)", "i = Pad (x, ends, nine)", "i = Concat <axis = 0> (x, row)",
        "c = Equal (x, ten) i = Where (c, nine, x)",
        "c = Equal (x, one) d = Equal (x, two) e = And (c, d) i = Where (e, ten, x)",
        "c = Greater (f, half) h = Cast <to = 7> (c) i = Mul (h, nine)", "i = Gather (small, x)",
        "c = Clip (x, zero, one) d = Sub (one, c) h = Mul (d, nine) g = Mul (c, nine) i = Add (h, g)",
        "k = Mod (x, two) d = Mod (w, five) h = Mul (k, five) i = Add (h, d)", "i = Add (x, one)", "i = Div (x, two)",
        "s = Sign (x) t = Mul (s, eleven) i = Abs (x)", "h = Floor (f) i = Cast <to = 7> (h)",
        "u = Unsqueeze (f, axis) c = Greater (u, edges) h = Cast <to = 7> (c) i = ReduceSum <keepdims = 0> (h, axis)"})
    EXPECT_FALSE(reaches(rows(nodes, fmt::format("{}, int64[1] row = {{9}}", kMore)))) << nodes;
}

TEST(ReachedIndex, ClipsAttributesUntilOpset6) {
  const auto clip = [](std::string_view attributes) {
    return said("TL-V502",
                fmt::format("g (float[10, 4] table, float[N] f) => (y) {{ c = Clip <{}> (f) i = Cast <to = 7> (c) y = "
                            "Gather (table, i) }}",
                            attributes),
                6);
  };
  EXPECT_TRUE(reaches(clip("min = 0.0, max = 10.0")));
  EXPECT_TRUE(reaches(clip("max = 10.0")));
  EXPECT_FALSE(reaches(clip("min = 0.0, max = 9.0")));
  EXPECT_FALSE(reaches(clip("min = 0.0")));
  EXPECT_TRUE(reaches(clip("min = 11.0, max = 10.0")));
}

// ---- class indices

std::string labels(std::string_view attributes, std::string_view values, std::string_view scores = "float[2, 5] s") {
  return said("TL-V501",
              fmt::format("g ({}) => (loss) <int64[2] t = {{{}}}> {{ loss = SoftmaxCrossEntropyLoss {} (s, t) }}",
                          scores, values, attributes));
}

TEST(ClassIndex, OutsideTheClasses) {
  EXPECT_TRUE(reaches(labels("", "0, 5")));
  EXPECT_FALSE(reaches(labels("", "0, 4")));
  EXPECT_TRUE(reaches(labels("", "-1, 4")));
  EXPECT_FALSE(reaches(labels("<ignore_index = 5>", "0, 5")));
  EXPECT_FALSE(reaches(labels("<ignore_index = -1>", "-1, 4")));
  EXPECT_TRUE(reaches(labels("<ignore_index = 6>", "0, 5")));
  EXPECT_FALSE(reaches(labels("", "0, 5", "float[2, C] s")));
}

TEST(ClassIndex, ThatSomeExecutionReaches) {
  const auto clipped = [](int maximum, std::string_view attributes) {
    return said("TL-V501",
                fmt::format("g (float[N, 5] s, int64[N] x) => (loss) <int64 zero = {{0}}, int64 most = {{{}}}> "
                            "{{ t = Clip (x, zero, most) loss = SoftmaxCrossEntropyLoss {} (s, t) }}",
                            maximum, attributes));
  };
  EXPECT_EQ(clipped(5, ""), "label 5 in `t` is outside the 5 classes of `s`");
  EXPECT_EQ(clipped(4, ""), "");
  EXPECT_EQ(clipped(5, "<ignore_index = 5>"), "");
  EXPECT_EQ(clipped(6, "<ignore_index = 5>"), "label 6 in `t` is outside the 5 classes of `s`");
}

// ---- casts

std::string lossy(std::string_view type, std::string_view values, int to) {
  return said("TL-D111", fmt::format("g () => (y) <{} c = {{{}}}> {{ y = Cast <to = {}> (c) }}", type, values, to));
}

TEST(LossyCast, OfIntegersToFloats) {
  constexpr int kFloat = 1, kHalf = 10, kDouble = 11, kBFloat16 = 16;
  EXPECT_EQ(lossy("int64[1]", "16777216", kFloat), "");
  EXPECT_EQ(lossy("int64[1]", "16777217", kFloat),
            "the cast to float32 changes `c`, which has 16777217 among its elements");
  EXPECT_EQ(lossy("int64[1]", "-16777217", kFloat),
            "the cast to float32 changes `c`, which has -16777217 among its elements");
  EXPECT_EQ(lossy("int64[1]", "16777218", kFloat), "");
  EXPECT_EQ(lossy("int64[2]", "1, 16777217", kFloat),
            "the cast to float32 changes `c`, which has 16777217 among its elements");
  EXPECT_EQ(lossy("int64[1]", "16777217", kDouble), "");
  EXPECT_NE(lossy("int64[1]", "9007199254740993", kDouble), "");
  EXPECT_EQ(lossy("int64[1]", "9007199254740992", kDouble), "");
  EXPECT_EQ(lossy("int64[1]", "2048", kHalf), "");
  EXPECT_NE(lossy("int64[1]", "2049", kHalf), "");
  EXPECT_EQ(lossy("int64[1]", "65504", kHalf), "");
  EXPECT_NE(lossy("int64[1]", "65536", kHalf), "");
  EXPECT_EQ(lossy("int64[1]", "256", kBFloat16), "");
  EXPECT_NE(lossy("int64[1]", "257", kBFloat16), "");
  EXPECT_EQ(lossy("int64[1]", "65536", kBFloat16), "");
  // A dtype's limits stand for no limit.
  EXPECT_EQ(lossy("int64[3]", "2147483647, 9223372036854775807, -9223372036854775808", kFloat), "");
  EXPECT_NE(lossy("int64[2]", "2147483646, 2147483645", kFloat), "");
}

TEST(LossyCast, OfFractionsToIntegers) {
  EXPECT_EQ(lossy("float[2]", "1.0, 2.5", 7), "the cast to int64 changes `c`, which has 2.5 among its elements");
  EXPECT_EQ(lossy("float[2]", "1.0, -2.0", 7), "");
  EXPECT_EQ(lossy("float[2]", "1.0, 2.5", 11), "");
}

std::string overflow(std::string_view type, std::string_view values, int to) {
  return said("TL-V505", fmt::format("g () => (y) <{} c = {{{}}}> {{ y = Cast <to = {}> (c) }}", type, values, to));
}

TEST(OverflowInCast, WhereEveryElementIsOutside) {
  constexpr int kUint8 = 2, kInt8 = 3;
  EXPECT_NE(overflow("float[2]", "256.0, 300.0", kUint8), "");
  EXPECT_EQ(overflow("float[2]", "255.9, 300.0", kUint8), "");
  EXPECT_NE(overflow("float[1]", "-1.0", kUint8), "");
  EXPECT_EQ(overflow("float[1]", "-0.9", kUint8), "");
  EXPECT_NE(overflow("float[2]", "-200.0, -129.0", kInt8), "");
  EXPECT_EQ(overflow("float[2]", "-200.0, -128.5", kInt8), "");
  EXPECT_NE(overflow("int64[2]", "256, 300", kUint8), "");
  EXPECT_EQ(overflow("int64[2]", "255, 300", kUint8), "");
  // All bits, and no limit.
  EXPECT_EQ(overflow("int64[1]", "-1", kUint8), "");
  EXPECT_NE(overflow("int64[2]", "-2, -1", kUint8), "");
  EXPECT_EQ(overflow("int64[1]", "9223372036854775807", kUint8), "");
  EXPECT_EQ(overflow("int64[1]", "-9223372036854775808", kUint8), "");
}

}  // namespace
}  // namespace tensorlint::rules
