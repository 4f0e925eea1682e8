// Which kernels are worth their copies: plans, and runs that are split by them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "tests/runtime/executing.h"

namespace tensorlint::runtime {
namespace {

const std::string kDevices[] = {"cuda:0"};

/// By the first result of a node of the main graph: whether a kernel computes it. Nothing is run.
std::map<std::string, bool> kernels_by_cost(std::string_view graph, ExecutionPlan::Copies* copies = nullptr) {
  const Result<Model> model = read_onnx_text(fmt::format("{}{}", kHead, graph), "m");
  EXPECT_TRUE(model.ok()) << model.error().message;
  std::map<std::string, bool> kernels;
  if (!model) return kernels;
  const Result<ExecutionPlan> plan = plan_execution(*model, {}, kDevices, {.sides = Sides::kCost});
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  if (!plan) return kernels;
  std::vector<NodePlace> places = plan->places;
  for (const auto& [id, body] : plan->bodies) places.insert(places.end(), body.places.begin(), body.places.end());
  for (const NodePlace& place : places)
    kernels[std::string(model->name_of(model->results(model->node(place.node))[0]))] =
        place.kind == NodePlace::Kind::kKernel;
  if (copies != nullptr) *copies = plan->copies();
  return kernels;
}

TEST(SidesByCost, SmallValuesStay) {
  EXPECT_FALSE(kernels_by_cost("g (float[8, 9] x) => (y) { y = Softmax (x) }").at("y"));
}

TEST(SidesByCost, OneCopyOfMuchForLittle) {
  // 4 MiB in and 4 bytes out: the interpreter reads as much, and more with another node.
  EXPECT_FALSE(kernels_by_cost("g (float[1024, 1024] x) => (y) { y = ReduceSum (x) }").at("y"));
  const auto chain = kernels_by_cost("g (float[1024, 1024] x) => (y) {\n p = Softmax (x)\n y = ReduceMax (p)\n}");
  EXPECT_TRUE(chain.at("p"));
  EXPECT_TRUE(chain.at("y"));
}

TEST(SidesByCost, ACopyBackIsCounted) {
  // In and out is as much as the interpreter reads and writes.
  EXPECT_FALSE(kernels_by_cost("g (float[1024, 1024] x) => (y) { y = Softmax (x) }").at("y"));
  ExecutionPlan::Copies copies;
  const auto mixed = kernels_by_cost(
      "g (float[1024, 1024] x) => (y, z) {\n p = Softmax (x)\n q = LogSoftmax (p)\n y = ReduceMax (q)\n"
      " z = Sinh (y)\n}",
      &copies);
  EXPECT_TRUE(mixed.at("q"));
  EXPECT_FALSE(mixed.at("z"));
  EXPECT_EQ(copies, (ExecutionPlan::Copies{.in = 1, .bytes_in = 1 << 22, .out = 1, .bytes_out = 4}));
}

TEST(SidesByCost, LossesCountAllThatTheyStandFor) {
  // Difference, square and mean read and write five times what is copied.
  const auto loss = kernels_by_cost(
      "g (float[512, 512] x, float[512, 512] t) => (y) {\n d = Sub (x, t)\n s = Mul (d, d)\n"
      " y = ReduceMean <keepdims = 0> (s)\n}");
  EXPECT_TRUE(loss.at("y"));
  EXPECT_TRUE(loss.at("d"));
}

TEST(SidesByCost, BodiesAreSplitToo) {
  const auto body = kernels_by_cost(
      "g (float[1024, 1024] x, bool c) => (y) {\n y = If (c) <then_branch = a () => (float[1, 1] p) {\n"
      " e = Softmax (x)\n p = ReduceMax (e)\n }, else_branch = b () => (float[1, 1] q) { q = ReduceMax (x) }>\n}");
  EXPECT_TRUE(body.at("p"));
  EXPECT_FALSE(body.at("q"));
}

TEST_F(Executing, SplitByCostRunsAsPlanned) {
  const Result<Model> model = read_onnx_text(
      fmt::format("{}g (float[96, 1024] x, float[6, 4] u) => (y, z) {{\n p = Softmax (x)\n q = LogSoftmax (p)\n"
                  " y = ReduceMax (q)\n z = Softmax (u)\n}}",
                  kHead),
      "m");
  ASSERT_TRUE(model.ok()) << model.error().message;
  Memory memory(kMemory);
  std::vector<HostValue> inputs(2);
  ASSERT_FALSE(draw_inputs(*model, 1, memory, inputs));
  const auto expected = Interpreter(*model, memory).run(inputs);
  ASSERT_TRUE(expected.ok());
  Executor executor(*model, memory, *device_, 0, Sides::kCost);
  const auto outputs = executor.run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(disagreement((*outputs)[i], (*expected)[i], {2e-6, 2e-6}), "");
  EXPECT_EQ(executor.copies(), (ExecutionPlan::Copies{.in = 1, .bytes_in = 96 * 4096, .out = 1, .bytes_out = 4}));
}

}  // namespace
}  // namespace tensorlint::runtime
