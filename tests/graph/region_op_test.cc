// Which operand, input, output and result of a node with bodies belong together.
#include "ir/graph/region_op.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/text/reader.h"

namespace tensorlint {
namespace {

/// The region of the first node of the main graph.
RegionOp region_of(const std::string& body, int opset = 21) {
  const auto model = read_onnx_text(
      "<ir_version: 10, opset_import: [\"\": " + std::to_string(opset) + ", \"local\": 1, \"com.acme\": 1]>\n" + body,
      "m.onnxtxt");
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  return model ? region_op(*model, model->node(NodeId{0})) : RegionOp{};
}

using Index = std::optional<std::size_t>;

TEST(RegionOp, Loop) {
  const RegionOp loop = region_of(R"(
main (int64 n, bool c, float[2] a, float[3] b) => (float[2] x, float[3] y, float[n, 2] z)
{
  x, y, z = Loop (n, c, a, b) <body = body (int64 i, bool ci, float[2] ai, float[3] bi) => (bool co, float[2] ao, float[3] bo, float[2] zo)
  { co = Identity (ci) ao = Identity (ai) bo = Identity (bi) zo = Identity (ai) }>
})");
  EXPECT_EQ(loop.kind, RegionKind::kLoop);
  ASSERT_TRUE(loop.has_graphs());
  EXPECT_EQ(loop.carried, 2U);
  EXPECT_EQ(loop.scanned, 0U);
  EXPECT_EQ(loop.operand_of_input(0), Index());  // the iteration number is no operand
  EXPECT_EQ(loop.operand_of_input(1), Index());  // nor is the condition that holds inside
  EXPECT_EQ(loop.operand_of_input(3), Index(3));
  EXPECT_EQ(loop.next_output_of_input(1), Index());
  EXPECT_EQ(loop.next_output_of_input(2), Index(1));
  EXPECT_EQ(loop.next_output_of_input(4), Index());
  EXPECT_EQ(loop.output_of_result(0), 1U);
  EXPECT_TRUE(loop.is_carried_result(1));
  EXPECT_FALSE(loop.is_carried_result(2));
  EXPECT_EQ(loop.scan_output(0), 3U);
  EXPECT_EQ(loop.trip_count_operand, Index(0));
  EXPECT_EQ(loop.condition_operand, Index(1));
  EXPECT_EQ(loop.iteration_input, Index(0));
  EXPECT_EQ(loop.condition_input, Index(1));
  EXPECT_EQ(loop.condition_output, Index(0));
  EXPECT_EQ(loop.lengths_operand, Index());
  EXPECT_EQ(loop.input_count(), 4U);
  EXPECT_EQ(loop.output_count(3), 4U);
}

TEST(RegionOp, Scan) {
  const std::string text = R"(
main (float[2] s, float[5, 3] q) => (float[2] t, float[5, 3] z)
{
  t, z = Scan <num_scan_inputs = COUNT, body = body (float[2] si, float[3] qi) => (float[2] so, float[3] zo)
  { so = Identity (si) zo = Identity (qi) }> (s, q)
})";
  const auto scan = [&](const char* count) {
    std::string with = text;
    return region_of(with.replace(with.find("COUNT"), 5, count));
  };
  const RegionOp one = scan("1");
  EXPECT_EQ(one.kind, RegionKind::kScan);
  ASSERT_TRUE(one.has_graphs());
  EXPECT_EQ(one.carried, 1U);
  EXPECT_EQ(one.scanned, 1U);
  EXPECT_EQ(one.operand_of_input(1), Index(1));
  EXPECT_EQ(one.next_output_of_input(0), Index(0));
  EXPECT_EQ(one.next_output_of_input(1), Index());
  EXPECT_EQ(one.output_of_result(1), 1U);
  EXPECT_EQ(one.condition_operand, Index());
  EXPECT_FALSE(one.is_batched());
  EXPECT_EQ(one.input_count(), 2U);
  EXPECT_EQ(one.output_count(2), 2U);
  EXPECT_FALSE(scan("0").has_graphs());
  EXPECT_FALSE(scan("3").has_graphs());
  EXPECT_FALSE(scan("-9223372036854775808").has_graphs());
}

TEST(RegionOp, ScanOfOpset8HasLengthsFirst) {
  const RegionOp scan = region_of(R"(
main (float[1, 2] s, float[1, 5, 3] q) => (float[1, 2] t, float[1, 5, 3] z)
{
  t, z = Scan <num_scan_inputs = 1, body = body (float[2] si, float[3] qi) => (float[2] so, float[3] zo)
  { so = Identity (si) zo = Identity (qi) }> (, s, q)
})",
                                  8);
  EXPECT_EQ(scan.control_operands, 1U);
  EXPECT_EQ(scan.carried, 1U);
  EXPECT_EQ(scan.operand_of_input(1), Index(2));
  EXPECT_TRUE(scan.is_batched());
  EXPECT_EQ(scan.lengths_operand, Index(0));
}

TEST(RegionOp, ScanAxes) {
  const Result<Model> model = read_onnx_text(R"(
<ir_version: 10, opset_import: ["" : 21]>
main (float[3, 5] q) => (float[3, 5] z)
{
  z = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [-1],
            body = body (float[3] qi) => (float[3] zo) { zo = Identity (qi) }> (q)
})",
                                             "m.onnxtxt");
  ASSERT_TRUE(model) << model.error().message;
  const ScanAxes axes =
      scan_axes([&](std::string_view name) { return model->attribute(model->node(NodeId{0}), name); });
  EXPECT_EQ(axes.input(0), 1);
  EXPECT_EQ(axes.output(0), -1);
  EXPECT_EQ(axes.output(1), 0);  // past what is written
}

TEST(RegionOp, IfCallAndSequenceMap) {
  const RegionOp branches = region_of(R"(
main (bool c, float[2] a) => (float[2] x)
{ x = If (c) <else_branch = e () => (float[2] u) { u = Neg (a) }, then_branch = t () => (float[2] v) { v = Identity (a) }> })");
  EXPECT_EQ(branches.kind, RegionKind::kIf);
  ASSERT_TRUE(branches.has_graphs());
  EXPECT_EQ(branches.graph_count(), 2U);
  EXPECT_GT(branches.graphs[0], branches.graphs[1]) << "then_branch comes first, whatever the file's order";
  EXPECT_EQ(branches.operand_of_input(0), Index());
  EXPECT_EQ(branches.condition_operand, Index(0));
  EXPECT_EQ(graph_attribute(branches.kind, 0), "then_branch");
  EXPECT_EQ(graph_attribute(branches.kind, 1), "else_branch");

  const RegionOp call = region_of(R"(
main (float[2] a) => (x) { x = local.f (a) }
<domain: "local", opset_import: ["" : 21]> f (p, q) => (r) { r = Identity (p) })");
  EXPECT_EQ(call.kind, RegionKind::kCall);
  ASSERT_TRUE(call.has_graphs());
  EXPECT_EQ(call.operand_of_input(0), Index(0));
  EXPECT_EQ(call.operand_of_input(1), Index());  // left out by the call
  EXPECT_FALSE(is_loop(call.kind));

  const RegionOp map = region_of(R"(
main (seq(float[2]) s, float[2] a) => (seq(float[2]) x)
{ x = SequenceMap <body = b (float[2] e, float[2] w) => (float[2] r) { r = Add (e, w) }> (s, a) })");
  EXPECT_EQ(map.kind, RegionKind::kSequenceMap);
  EXPECT_EQ(map.operand_of_input(1), Index(1));
}

TEST(RegionOp, OperatorsOfOtherDomainsAreNone) {
  for (const char* name : {"If", "Loop", "Scan", "SequenceMap"})
    EXPECT_EQ(region_of("main (float[2] a) => (x) { x = com.acme." + std::string(name) + " (a) }").kind,
              RegionKind::kNone);
  EXPECT_EQ(region_of("main (float[2] a) => (x) { x = Identity (a) }").graph_count(), 0U);
}

TEST(RegionOp, TooFewOperandsGiveNoGraphs) {
  EXPECT_FALSE(
      region_of("main (bool c) => (x) { x = Loop () <body = b () => (bool d) { d = Identity (c) }> }").has_graphs());
  EXPECT_FALSE(region_of("main (bool c) => (x) { x = If () <then_branch = b () => (bool d) { d = Identity (c) }> }")
                   .has_graphs());
}

}  // namespace
}  // namespace tensorlint
