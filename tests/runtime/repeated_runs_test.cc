// A later run of an interpreter infers a node again only where its operands have other facts.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/interpreter/interpreter.h"
#include "runtime/values/codec.h"
#include "tests/runtime/read_graph.h"

namespace tensorlint::runtime {
namespace {

HostTensor integers(std::vector<std::int64_t> elements, Memory& memory) {
  HostTensor tensor(DType::kInt64, {static_cast<std::int64_t>(elements.size())}, memory);
  store(tensor, 0, elements.size(), elements.data());
  return tensor;
}

HostTensor floats(Extents extents, double first, Memory& memory) {
  HostTensor tensor(DType::kFloat32, std::move(extents), memory);
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const double number = first + static_cast<double>(i);
    store(tensor, i, 1, &number);
  }
  return tensor;
}

Extents extents_of(Interpreter& interpreter, const std::vector<HostValue>& inputs) {
  const auto outputs = interpreter.run(inputs);
  if (!outputs) ADD_FAILURE() << outputs.error().message;
  return outputs ? outputs->front().tensor().extents() : Extents{-1};
}

TEST(RepeatedRuns, ElementsThatSayAShapeMayChange) {
  const Model model = read_graph("g (float[N] x, int64[R] s) => (float[A, B] y) { y = Reshape (x, s) }");
  Memory memory(kMebi);
  Interpreter interpreter(model, memory);
  const HostTensor x = floats({24}, 0, memory);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(extents_of(interpreter, {x, integers({2, 12}, memory)}), (Extents{2, 12}));
    EXPECT_EQ(extents_of(interpreter, {x, integers({12, 2}, memory)}), (Extents{12, 2}));
    EXPECT_EQ(extents_of(interpreter, {x, integers({12, -1}, memory)}), (Extents{12, 2}));
    EXPECT_EQ(extents_of(interpreter, {x, integers({2, 3, 4}, memory)}), (Extents{2, 3, 4}));
  }
  // More elements than are kept as they are.
  std::vector<std::int64_t> long_shape(20, 1);
  for (const std::size_t at : {std::size_t{0}, std::size_t{19}, std::size_t{7}}) {
    std::vector<std::int64_t> shape = long_shape;
    shape[at] = 24;
    EXPECT_EQ(extents_of(interpreter, {x, integers(shape, memory)}), shape);
  }
}

TEST(RepeatedRuns, ExtentsAndDTypesMayChange) {
  const Model model = read_graph("g (float[N, M] x, float[K] b) => (float[A, B] y) { v = Neg (x) y = Add (v, b) }");
  Memory memory(kMebi);
  Interpreter interpreter(model, memory);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(extents_of(interpreter, {floats({2, 3}, 1, memory), floats({3}, 1, memory)}), (Extents{2, 3}));
    EXPECT_EQ(extents_of(interpreter, {floats({2, 1}, 1, memory), floats({3}, 1, memory)}), (Extents{2, 3}));
    EXPECT_EQ(extents_of(interpreter, {floats({4, 3}, 1, memory), floats({1}, 1, memory)}), (Extents{4, 3}));
  }
  const auto refused = interpreter.run({floats({2, 3}, 1, memory), floats({4}, 1, memory)});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("(Add)"), std::string::npos) << refused.error().message;
  EXPECT_EQ(extents_of(interpreter, {floats({2, 3}, 1, memory), floats({3}, 1, memory)}), (Extents{2, 3}));
}

TEST(RepeatedRuns, ElementsOfSmallOperandsAreThoseOfTheRun) {
  const Model model = read_graph("g (float[N] x, float a) => (float[N] y) { z = Mul (x, a) y = Clip (z, a) }");
  Memory memory(kMebi);
  Interpreter interpreter(model, memory);
  for (const double a : {2.0, -3.0, 2.0, 0.0}) {
    const HostTensor x = floats({4}, -1, memory), factor = floats({}, a, memory);
    const auto outputs = interpreter.run({x, factor});
    ASSERT_TRUE(outputs) << outputs.error().message;
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(number_at(outputs->front().tensor(), i), std::max(number_at(x, i) * a, a));
  }
}

TEST(RepeatedRuns, OperandsOfABodyChangeInEachIteration) {
  // Slices of 1, 2, 3, 4 elements, whose sums add up.
  const Model model = read_graph(
      "g (float[N] x) => (float y) { n = Constant <value_int = 4> () t = Constant <value = bool {1}> () "
      "z = Constant <value = float {0}> () y = Loop (n, t, z) <body = b (int64 i, bool c, float s) => (bool d, float "
      "r) "
      "{ d = Identity (c) one = Constant <value_ints = [1]> () zero = Constant <value_ints = [0]> () "
      "j = Reshape (i, one) end = Add (j, one) part = Slice (x, zero, end) "
      "sum = ReduceSum <keepdims = 0> (part) r = Add (s, sum) }> }");
  Memory memory(kMebi);
  Interpreter interpreter(model, memory);
  for (int i = 0; i < 3; ++i) {
    const auto outputs = interpreter.run({floats({6}, 1, memory)});
    ASSERT_TRUE(outputs) << outputs.error().message;
    EXPECT_EQ(number_at(outputs->front().tensor(), 0), 1 + 3 + 6 + 10);
  }
}

TEST(RepeatedRuns, TimesAreMeasuredWhereTheyAreAskedFor) {
  const Model model = read_graph("g (float[N] x) => (float[N] y) { v = Neg (x) w = Neg (v) y = Exp (w) }");
  Memory memory(kMebi);
  Interpreter silent(model, memory), measured(model, memory, {.measures_time = true, .observer = {}});
  for (int i = 0; i < 2; ++i)
    for (Interpreter* const each : {&silent, &measured}) EXPECT_TRUE(each->run({floats({4}, 1, memory)}));
  EXPECT_TRUE(silent.timings().empty());
  const auto timings = measured.timings();
  ASSERT_EQ(timings.size(), 2U);
  EXPECT_EQ(timings.at("Neg").calls, 4U);
  EXPECT_EQ(timings.at("Exp").calls, 2U);
  EXPECT_GT(timings.at("Neg").seconds, 0);
}

TEST(Shapes, CopiesShareExtents) {
  Memory memory(kMebi);
  const HostTensor x = floats({2, 3}, 0, memory), copy = x;
  EXPECT_EQ(&copy.extents(), &x.extents());
  EXPECT_EQ(x.shape(), Shape({2, 3}));
  EXPECT_FALSE(x.shape() == Shape({3, 2}));
  EXPECT_EQ(x.reshaped({6}).extents(), Extents{6});
  EXPECT_EQ(x.extents(), (Extents{2, 3}));
  EXPECT_EQ(Shape().size(), 1U);
  EXPECT_EQ(HostTensor().size(), 0U);
  EXPECT_EQ(Shape({4, 0, std::int64_t{1} << 50}).size(), 0U);
  EXPECT_THROW(Shape({std::int64_t{1} << 40, std::int64_t{1} << 40}), RunFault);
  EXPECT_THROW(Shape(Extents(kMaxAxes + 1, 1)), RunFault);
}

TEST(SmallTensors, AreInTheAccount) {
  Memory memory(4096);
  for (const std::int64_t bytes : {0, 1, 64, 65, 512, 513, 2048}) {
    const HostTensor tensor(DType::kUint8, {bytes}, memory);
    EXPECT_GE(memory.live(), static_cast<std::uint64_t>(bytes));
    EXPECT_LE(memory.live(), static_cast<std::uint64_t>(bytes) + 1024);
  }
  EXPECT_EQ(memory.live(), 0U);
  std::vector<HostTensor> held;
  const auto fill = [&] {
    for (int i = 0; i < 64; ++i) held.emplace_back(DType::kUint8, Extents{64}, memory);
  };
  EXPECT_THROW(fill(), RunFault);
  held.clear();
  EXPECT_EQ(memory.live(), 0U);
}

}  // namespace
}  // namespace tensorlint::runtime
