// What the copies of a run cost, counted by hand for each model.
#include "passes/placement/runtime_cost.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/text/reader.h"
#include "passes/dataflow/analysis.h"
#include "passes/placement/placement.h"

namespace tensorlint::placement {
namespace {

/// "copies bytes, setup setup_copies setup_bytes" of each run, with the conditions that lead to it.
std::string cost_of(const std::string& places, const std::string& graph) {
  const std::string text = fmt::format(
      "<ir_version: 10, opset_import: [\"\": 21, \"tensorlint\": 1, \"local\": 1], metadata_props: [{}]>\n{}", places,
      graph);
  const Result<Model> model = read_onnx_text(text, "cost.onnxtxt");
  EXPECT_TRUE(model) << model.error().message;
  const dataflow::Analysis analysis = dataflow::analyse(*model, {});
  const RuntimeCost cost = runtime_cost(analysis, {});
  const DimPool& dims = analysis.facts().dims();
  std::string said = cost.unknown;
  for (const CostCase& run : cost.cases) {
    if (!said.empty()) said += "; ";
    for (const auto& [name, choice] : run.conditions) said += fmt::format("{} {}: ", name, choice);
    said += fmt::format("{} {}, setup {} {}", run.cost.copies, dims.to_text(run.cost.bytes), run.cost.setup_copies,
                        dims.to_text(run.cost.setup_bytes));
  }
  return said;
}

std::string place(std::string_view name, std::string_view device) {
  return fmt::format("\"tensorlint.device:{}\": \"{}\"", name, device);
}
const std::string kX = place("x", "cuda:0");

TEST(RuntimeCost, OfEachTensorOncePerDestination) {
  EXPECT_EQ(cost_of(kX, "g (float[4] x, float[4] w) => (a, b) { a = Add (x, w) b = Mul (x, w) }"), "1 16, setup 0 0");
  EXPECT_EQ(cost_of(kX + ", " + place("n", "cuda:1"),
                    "g (float[4] x, float[4] w) => (a, b) { a = Add (x, w) [n] b = Mul (x, w) }"),
            "3 48, setup 0 0");
}

TEST(RuntimeCost, OfInitializersIsSetup) {
  EXPECT_EQ(cost_of(kX, "g (float[2] x) => (a) <float[2] w = {1, 2}> { a = Add (x, w) }"), "0 0, setup 1 8");
}

TEST(RuntimeCost, InTheExtentsNames) {
  EXPECT_EQ(cost_of(kX, "g (double[N, 3] x, double[N, 3] w) => (a) { a = Add (x, w) }"), "1 24*N, setup 0 0");
  EXPECT_EQ(cost_of(kX, "g (int4[N] x, int4[N] w) => (a) { a = Concat <axis = 0> (x, w) }"),
            "1 floor((N + 1)/2), setup 0 0");
}

TEST(RuntimeCost, NothingForShapesAndHostOperands) {
  EXPECT_EQ(cost_of(kX, "g (float[4] x, int64[2] to) => (a) { a = Reshape (x, to) }"), "0 0, setup 0 0");
  EXPECT_EQ(cost_of(kX, "g (float[N] x) => (s) { s = Shape (x) }"), "0 0, setup 0 0");
}

const std::string kLoop =
    "g (float[4] x, float[4] w) => (y) <int64 n = {5}, bool go = {1}> { y = Loop (n, go, x) <body = b (int64 i, bool "
    "c, float[4] s) => (bool d, float[4] t) { d = Identity (c) ";

TEST(RuntimeCost, OfLoops) {
  // `w` is the same tensor in every iteration, `h` a new one in each; the value that is carried changes its home.
  EXPECT_EQ(cost_of(kX, kLoop + "t = Add (s, w) }> }"), "1 16, setup 0 0");
  EXPECT_EQ(cost_of(kX + ", " + place("m", "cpu"), kLoop + "[m] h = Exp (w) t = Add (s, h) }> }"), "5 80, setup 0 0");
  EXPECT_EQ(cost_of(kX + ", " + place("m", "cpu") + ", " + place("k", "cuda:0"),
                    kLoop + "[m] h = Exp (s) [k] t = Neg (h) }> }"),
            "10 160, setup 0 0");
}

TEST(RuntimeCost, OfBranches) {
  EXPECT_EQ(cost_of(kX + ", " + place("m", "cpu"),
                    "g (float[4] x, bool f) => (y) { y = If (f) <then_branch = t () => (float[4] a) { [m] a = Exp (x) "
                    "}, else_branch = e () => (float[4] b) { b = Exp (x) }> }"),
            "f false: 0 0, setup 0 0; f true: 1 16, setup 0 0");
  // A condition that lives on an accelerator is read by the host.
  EXPECT_EQ(cost_of(kX + ", " + place("f", "cuda:0"),
                    "g (float[4] x, bool f) => (y) { y = If (f) <then_branch = t () => (float[4] a) { a = Exp (x) }, "
                    "else_branch = e () => (float[4] b) { b = Neg (x) }> }"),
            "f false: 1 1, setup 0 0; f true: 1 1, setup 0 0");
}

/// The same choice at both Ifs, whatever shape the condition has; another domain's operators may do anything.
TEST(RuntimeCost, OfConditionsThatAreReshaped) {
  const auto with = [](const std::string& op) {
    return cost_of(kX,
                   "g (float[4] x, float[4] w, bool[1] flag) => (a, b) { a = If (flag) <then_branch = p () => (u) { "
                   "u = Add (x, w) }, else_branch = q () => (v) { v = Neg (x) }> f = " +
                       op +
                       " (flag) b = If (f) <then_branch = r () => (s) { s = Add (x, w) }, else_branch = t () => (m) "
                       "{ m = Neg (x) }> }");
  };
  EXPECT_EQ(with("Squeeze"), with("Identity"));
  EXPECT_EQ(std::ranges::count(with("Squeeze"), ';'), 1);
  EXPECT_EQ(std::ranges::count(with("com.acme.Identity"), ';'), 3);
}

TEST(RuntimeCost, AMoveWhoseDomainIsNotImported) {
  const Result<Model> model = read_onnx_text(
      "<ir_version: 10, opset_import: [\"\": 21]>\ng (float[4] x) => (y) { y = tensorlint.Transfer <device = "
      "\"cuda:0\"> "
      "(x) }",
      "transfer.onnxtxt");
  ASSERT_TRUE(model) << model.error().message;
  const dataflow::Analysis analysis = dataflow::analyse(*model, {});
  const Placement placed = placement::place(analysis, {});
  EXPECT_EQ(placed.devices(model->find_value(GraphId::kMain, "y")), std::vector<std::string>{"cuda:0"});
}

TEST(RuntimeCost, OfCalls) {
  EXPECT_EQ(cost_of(kX,
                    "g (float[4] x, float[4] w) => (y, z) { y = local.f (x, w) z = local.f (y, w) }\n<domain: "
                    "\"local\", opset_import: [\"\": 21]> f (a, b) => (c) { c = Add (a, b) }"),
            "1 16, setup 0 0");
}

TEST(RuntimeCost, IsNotGuessed) {
  EXPECT_EQ(cost_of(kX,
                    "g (float[4] x, int64 n, bool go) => (y) { [again] y = Loop (n, go, x) <body = b (int64 i, bool c, "
                    "float[4] s) => (bool d, float[4] t) { d = Identity (c) t = Neg (s) }> }"),
            "how often the loop `again` runs is not known");
}

}  // namespace
}  // namespace tensorlint::placement
