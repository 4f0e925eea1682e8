#include "tests/ops/op_test.h"

namespace tensorlint::ops {
namespace {

TEST(Reduction, AxesFromAttributeOrOperand) {
  const Outcome attribute = Op("ReduceMean", 13).in("float32[N, 3, 4]").ints("axes", {-1}).infer();
  EXPECT_EQ(attribute.result(), "float32[N, 3, 1]");
  const Outcome operand = Op("ReduceMean", 18).in("float32[N, 3, 4]").constant({1}).with("keepdims", 0).infer();
  EXPECT_EQ(operand.result(), "float32[N, 4]");
  EXPECT_TRUE(operand.failures.empty());
}

TEST(Reduction, AllAxesOfAnyRank) {
  EXPECT_EQ(Op("ReduceMean", 18).in("float32[...]").with("keepdims", 0).infer().result(), "float32[]");
  EXPECT_EQ(Op("ReduceMean", 18).in("float32[...]").infer().result(), "float32[...]");
  EXPECT_EQ(
      Op("ReduceMean", 18).in("float32[...]").with("keepdims", 0).with("noop_with_empty_axes", 1).infer().result(),
      "float32[...]");
}

TEST(Reduction, BrokenAxes) {
  const Outcome outside = Op("ReduceSum", 13).in("float32[2, 3]").constant({2}).infer();
  ASSERT_EQ(outside.failures, std::vector<std::string>{"reduce_axes_in_range"});
  EXPECT_EQ(outside.messages[0], "axis 2 outside {0} of rank 2");
  EXPECT_EQ(Op("ReduceSum", 13).in("float32[2, 3]").constant({1, -1}).infer().failures,
            std::vector<std::string>{"reduce_axes_once?"});
}

TEST(Reduction, KeepdimsIsOneOrNot) {
  EXPECT_EQ(Op("ReduceMax", 13).in("float32[4, 3]").ints("axes", {1}).with("keepdims", 2).infer().result(),
            "float32[4]");
  EXPECT_EQ(Op("ReduceSum", 13).in("float32[4, 3]").constant({-1}).with("keepdims", -1).infer().result(), "float32[4]");
  EXPECT_EQ(Op("ReduceSum", 13).in("float32[4, 3]").constant({1, -1}).infer().result(), "float32[4, 1]");
  // Runtimes differ.
  EXPECT_EQ(Op("ArgMax", 13).in("float32[4, 3]").with("axis", 1).with("keepdims", 2).infer().result(), "int64[...]");
}

TEST(Arithmetic, Broadcasting) {
  EXPECT_EQ(Op("Add", 14).in("float32[N, 3]").in("float32[3]").infer().result(), "float32[N, 3]");
  EXPECT_EQ(Op("Mul", 14).in("float32[N, 3]").in("float32[4]").infer().failures,
            std::vector<std::string>{"broadcastable"});
}

}  // namespace
}  // namespace tensorlint::ops
