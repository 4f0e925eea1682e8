// Bodies and functions on the emulated device: what of them reaches kernels, each time that they run.
#include <string>
#include <string_view>

#include "tests/runtime/executing.h"

namespace tensorlint::runtime {
namespace {

class ExecutingBodies : public Executing {};

TEST_F(ExecutingBodies, TheBranchThatRuns) {
  for (const std::string_view condition : {"Greater", "LessOrEqual"}) {
    const auto where = places(
        fmt::format("g (float[5, 6] x, float[5, 6] u) => (y) {{\n s = Mul (u, u)\n m = ReduceMax <keepdims = 0> (s)\n"
                    " zero = Constant <value = float {{0}}> ()\n c = {} (m, zero)\n"
                    " y = If (c) <then_branch = a () => (float[5, 6] p) {{ n = Sinh (s)\n p = Softmax (n) }},"
                    " else_branch = b () => (float[5, 6] q) {{ q = LogSoftmax (s) }}>\n}}",
                    condition));
    EXPECT_EQ(where.at("p"), "softmax");
    EXPECT_EQ(where.at("n"), "host: no kernel");
    EXPECT_EQ(where.at("q"), "softmax logarithmic");
    EXPECT_EQ(where.at("m"), "reduce max");
  }
}

TEST_F(ExecutingBodies, EachIterationOfALoop) {
  const auto where = places(
      "g (float[4, 6] x) => (y, z) {\n n = Constant <value = int64 {3}> ()\n t = Constant <value = bool {1}> ()\n"
      " y, z = Loop (n, t, x) <body = b (int64 i, bool c, float[4, 6] v) => (bool d, float[4, 6] w, float[6] s) {\n"
      "  d = Identity (c)\n e = Softmax (v)\n f = Sinh (e)\n w = Add (f, x)\n"
      "  zero = Constant <value = int64[1] {0}> ()\n s = ReduceSum <keepdims = 0> (w, zero)\n }>\n}");
  EXPECT_EQ(where.at("e"), "softmax");
  EXPECT_EQ(where.at("s"), "reduce sum");
  // In: the carried value, and both operands of the addition; out: what the host reads, and both results of the body.
  EXPECT_EQ(copies_, (GraphExecution::Copies{
                         .in = 9, .bytes_in = 3 * 3 * 96, .out = 9, .bytes_out = 3 * (std::uint64_t{2 * 96} + 24)}));
}

TEST_F(ExecutingBodies, NoIteration) {
  (void)places(
      "g (float[4, 6] x) => (y) {\n n = Constant <value = int64 {0}> ()\n t = Constant <value = bool {1}> ()\n"
      " y = Loop (n, t, x) <body = b (int64 i, bool c, float[4, 6] v) => (bool d, float[4, 6] w) {\n"
      "  d = Identity (c)\n w = Softmax (v)\n }>\n}");
  EXPECT_EQ(copies_, GraphExecution::Copies());
}

TEST_F(ExecutingBodies, ScansAndValuesOfGraphsAround) {
  const auto where = places(
      "g (float[3, 8] x, float[8] w) => (y, z) {\n p = Softmax (w)\n"
      " y, z = Scan <num_scan_inputs = 1, body = b (float[8] a, float[8] r) => (float[8] n, float m) {\n"
      "  s = Add (a, r)\n q = Mul (s, p)\n n = LogSoftmax (q)\n m = ReduceMax <keepdims = 0> (p)\n }> (w, x)\n}",
      1e-5);
  EXPECT_EQ(where.at("p"), "softmax");
  EXPECT_EQ(where.at("n"), "softmax logarithmic");
  EXPECT_EQ(where.at("m"), "reduce max");
}

TEST_F(ExecutingBodies, BodiesWithinBodies) {
  const auto where = places(
      "g (float[4, 6] x) => (y) {\n n = Constant <value = int64 {2}> ()\n t = Constant <value = bool {1}> ()\n"
      " y = Loop (n, t, x) <body = b (int64 i, bool c, float[4, 6] v) => (bool d, float[4, 6] w) {\n"
      "  d = Identity (c)\n e = Softmax (v)\n one = Constant <value = int64 {1}> ()\n k = Equal (i, one)\n"
      "  w = If (k) <then_branch = a () => (float[4, 6] p) { h = Add (e, v)\n p = Softmax (h) },"
      " else_branch = o () => (float[4, 6] q) { q = Sinh (e) }>\n }>\n}");
  EXPECT_EQ(where.at("e"), "softmax");
  EXPECT_EQ(where.at("p"), "softmax");
  // The counter and the carried value twice, and both operands of the addition once.
  EXPECT_EQ(copies_.in, 6U);
}

TEST_F(ExecutingBodies, FunctionsOfTheModel) {
  const auto where = places_of_text(
      "<ir_version: 10, opset_import: [\"\": 21, \"f\": 1]>\n"
      "g (float[4, 6] x, float[4, 6] t) => (y, z) {\n y = f.twice (x)\n z = f.loss (y, t)\n}\n"
      "<opset_import: [\"\": 21], domain: \"f\">\n"
      "twice (v) => (w) {\n e = Softmax (v)\n h = Sinh (e)\n w = Softmax (h)\n}\n"
      "<opset_import: [\"\": 21], domain: \"f\">\n"
      "loss (p, q) => (l) {\n d = Sub (p, q)\n s = Mul (d, d)\n l = ReduceMean <keepdims = 0> (s)\n}\n");
  EXPECT_EQ(where.at("e"), "softmax");
  EXPECT_EQ(where.at("w"), "softmax");
  EXPECT_EQ(where.at("l"), "pointwise_loss squared, mean");
}

TEST_F(ExecutingBodies, AttributesOfTheCallStayWithTheInterpreter) {
  const auto where = places_of_text(
      "<ir_version: 10, opset_import: [\"\": 21, \"f\": 1]>\n"
      "g (float[4, 6] x) => (y, z) {\n y = f.soft <axis = 0> (x)\n z = f.soft <axis = 1> (x)\n}\n"
      "<opset_import: [\"\": 21], domain: \"f\">\n"
      "soft <axis> (v) => (w) {\n w = Softmax <axis: int = @axis> (v)\n}\n");
  EXPECT_EQ(where.at("w").substr(0, 4), "host");
}

TEST_F(ExecutingBodies, AFunctionOfSeveralShapesStaysWithTheInterpreter) {
  const auto where = places_of_text(
      "<ir_version: 10, opset_import: [\"\": 21, \"f\": 1]>\n"
      "g (float[4, 6] x, float[6, 4] u) => (y, z) {\n y = f.soft (x)\n z = f.soft (u)\n}\n"
      "<opset_import: [\"\": 21], domain: \"f\">\n"
      "soft (v) => (w) {\n w = Softmax (v)\n}\n");
  EXPECT_EQ(where.at("w"), "host: its extents are not known before the run");
}

TEST_F(ExecutingBodies, MemoryOfGraphsWithinEachOther) {
  const auto graph =
      "g (float[40, 10] x) => (y) {\n p = Softmax (x)\n m = ReduceMax <keepdims = 0> (p)\n"
      " zero = Constant <value = float {0}> ()\n c = Greater (m, zero)\n"
      " h = If (c) <then_branch = a () => (float[40, 10] q) { q = Softmax (x) },"
      " else_branch = b () => (float[40, 10] r) { r = Identity (x) }>\n y = Add (h, p)\n}";
  (void)places(graph);
  // The operands and the result of the addition here, the operand and the result of a softmax there.
  EXPECT_EQ(peak_, 5 * 1600U);
}

TEST_F(ExecutingBodies, MemoryIsKeptForAllRuns) {
  const Result<Model> model = read_onnx_text(
      fmt::format("{}g (float[40, 110] x) => (z) {{\n n = Constant <value = int64 {{3}}> ()\n"
                  " t = Constant <value = bool {{1}}> ()\n u = Softmax (x)\n"
                  " y = Loop (n, t, u) <body = b (int64 i, bool c, float[40, 110] v) => (bool d, float[40, 110] w) {{\n"
                  "  d = Identity (c)\n e = Softmax (v)\n w = Sinh (e)\n }}>\n z = Add (y, u)\n}}",
                  kHead),
      "m");
  ASSERT_TRUE(model.ok()) << model.error().message;
  Memory memory(kMemory);
  std::vector<HostValue> inputs(1);
  ASSERT_FALSE(draw_inputs(*model, 1, memory, inputs));
  const auto expected = Interpreter(*model, memory).run(inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  {
    Executor executor(*model, memory, *device_);
    std::vector<std::uint64_t> calls{device_->counts().calls};
    for (int run = 0; run < 3; ++run) {
      const auto outputs = executor.run(inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.error().message;
      EXPECT_EQ(disagreement((*outputs)[0], (*expected)[0], {1e-5, 1e-5}), "");
      EXPECT_EQ(device_->counts().live_blocks, 1U);
      EXPECT_EQ(device_->counts().live_bytes, executor.plan().device_bytes[0]);
      calls.push_back(device_->counts().calls);
    }
    // One block for the loop, too, and none in later runs.
    EXPECT_EQ(calls[1] - calls[0], calls[2] - calls[1] + 1);
    EXPECT_EQ(calls[3] - calls[2], calls[2] - calls[1]);
    EXPECT_EQ(device_->counts().peak_bytes, executor.plan().device_bytes[0]);
  }
  EXPECT_EQ(device_->counts().live_blocks, 0U);
}

TEST_F(ExecutingBodies, FaultsNameTheNodeInTheBody) {
  if (!is_emulated()) GTEST_SKIP();
  const Result<Model> model = read_onnx_text(
      fmt::format(
          "{}g (float[4, 6] x) => (y) {{\n n = Constant <value = int64 {{2}}> ()\n"
          " t = Constant <value = bool {{1}}> ()\n"
          " [turns] y = Loop (n, t, x) <body = b (int64 i, bool c, float[4, 6] v) => (bool d, float[4, 6] w) {{\n"
          "  d = Identity (c)\n [soft] e = Softmax (v)\n w = Sinh (e)\n }}>\n}}",
          kHead),
      "m");
  ASSERT_TRUE(model.ok()) << model.error().message;
  Memory memory(kMemory);
  std::vector<HostValue> inputs(1);
  ASSERT_FALSE(draw_inputs(*model, 1, memory, inputs));
  Executor executor(*model, memory, *device_);
  const auto expected = executor.run(inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  for (const bool late : {false, true}) {
    bool names = false;
    for (std::uint64_t call = 1;; ++call) {
      ASSERT_TRUE(device_->fail_at(call, late));
      const auto outputs = executor.run(inputs);
      EXPECT_EQ(device_->counts().live_blocks, outputs.ok() ? 1U : 0U);
      EXPECT_EQ(device_->counts().live_values, 0U);
      if (outputs.ok()) break;
      ASSERT_NE(outputs.error().message.find("made to fail"), std::string::npos) << outputs.error().message;
      names = names || outputs.error().message.starts_with("node `turns` (Loop): node `soft` (Softmax): emulated:0: ");
    }
    ASSERT_TRUE(device_->fail_at(0));
    EXPECT_TRUE(names);
    const auto again = executor.run(inputs);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(disagreement((*again)[0], (*expected)[0], {0, 0}), "");
  }
}

}  // namespace
}  // namespace tensorlint::runtime
