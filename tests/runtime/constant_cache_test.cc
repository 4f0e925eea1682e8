#include "runtime/interpreter/constant_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "runtime/interpreter/interpreter.h"
#include "runtime/values/codec.h"
#include "tests/runtime/read_graph.h"

namespace tensorlint::runtime {
namespace {

constexpr auto kNode = static_cast<NodeId>(1);

HostTensor numbers(std::vector<double> elements, Memory& memory) {
  HostTensor tensor(DType::kFloat32, {static_cast<std::int64_t>(elements.size())}, memory);
  store(tensor, 0, elements.size(), elements.data());
  return tensor;
}

/// The bits of the first output.
std::string bits(Interpreter& interpreter, const std::vector<HostValue>& inputs) {
  const auto outputs = interpreter.run(inputs);
  if (!outputs) return outputs.error().message;
  const HostTensor& tensor = outputs->front().tensor();
  return {reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()};
}

HostTensor of_bytes(std::uint64_t bytes, Memory& memory) {
  return {DType::kUint8, {static_cast<std::int64_t>(bytes)}, memory};
}

TEST(ConstantCache, KeepsUpToABound) {
  Memory memory(64 * kMebi);
  ConstantCache cache(memory);
  EXPECT_EQ(cache.results(kNode), nullptr);
  cache.keep(kNode, {of_bytes(kMebi, memory), HostValue()});
  ASSERT_NE(cache.results(kNode), nullptr);
  EXPECT_EQ(cache.results(kNode)->size(), 2U);
  constexpr auto kValue = static_cast<ValueId>(3);
  cache.keep(kValue, of_bytes(ConstantCache::kMost, memory));
  EXPECT_TRUE(cache.constant(kValue).is_absent());
  EXPECT_FALSE(cache.has_room(ConstantCache::kMost));
  EXPECT_TRUE(cache.has_room(kMebi));
  EXPECT_GE(memory.live(), kMebi);
  EXPECT_LE(memory.live(), kMebi + 1024);
}

TEST(ConstantCache, GivesMemoryUpThatTensorsNeed) {
  Memory memory(8 * kMebi);
  ConstantCache cache(memory);
  cache.keep(kNode, {of_bytes(5 * kMebi, memory)});
  EXPECT_FALSE(cache.has_room(4 * kMebi));
  {
    const ConstantCache::Results held = cache.results(kNode);
    EXPECT_THROW(of_bytes(4 * kMebi, memory), RunFault);  // somebody reads them
    EXPECT_EQ(cache.results(kNode), nullptr);
    cache.keep(kNode, *held);
  }
  ASSERT_NE(cache.results(kNode), nullptr);
  of_bytes(4 * kMebi, memory);
  EXPECT_EQ(cache.results(kNode), nullptr);
  EXPECT_EQ(memory.live(), 0U);
}

TEST(ConstantCache, OneThatCannotGiveUpKeepsNothing) {
  Memory memory(8 * kMebi);
  ConstantCache first(memory), second(memory);
  second.keep(kNode, {of_bytes(kMebi, memory)});
  EXPECT_EQ(second.results(kNode), nullptr);
  EXPECT_FALSE(second.has_room(1));
  EXPECT_TRUE(first.has_room(1));
}

TEST(ConstantCache, LaterRunsAreNotRefused) {
  // The first takes the whole limit: w becomes v and y in place. What is kept of them has to go.
  const Model model = read_graph(
      "g (float x) => (float[N] y) { n = Constant <value_ints = [786432]> () w = ConstantOfShape (n) "
      "v = Exp (w) y = Sub (v, x) }");
  Memory memory(3 * kMebi + 4096);
  Interpreter interpreter(model, memory);
  const HostTensor x = numbers({2}, memory).reshaped({});
  const std::string first = bits(interpreter, {x});
  ASSERT_EQ(first.size(), 3 * kMebi) << first;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bits(interpreter, {x}) == first, true) << i;
}

TEST(ConstantCache, NumbersAreDrawnAnewAndTheSameInEachRun) {
  const Model model = read_graph(
      "g (float x) => (float[4] y) { s = Constant <value_ints = [4]> () z = ConstantOfShape (s) "
      "r = RandomNormal <shape = [4]> () q = RandomNormalLike (z) p = Add (r, q) y = Add (p, x) }");
  Memory memory(kMebi);
  Interpreter interpreter(model, memory, {.seed = 7, .work_limit = 0, .observer = {}});
  const HostTensor x = numbers({2}, memory).reshaped({});
  const std::string first = bits(interpreter, {x});
  ASSERT_EQ(first.size(), 16U);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bits(interpreter, {x}), first);
}

TEST(ConstantCache, AnInputThatOverridesItsDefaultCounts) {
  const Model model = read_graph("g (float x, float[2] w = {1, 2}) => (float[2] y) { v = Neg (w) y = Add (v, x) }");
  Memory memory(kMebi);
  Interpreter interpreter(model, memory);
  const HostTensor x = numbers({0}, memory).reshaped({}), w = numbers({5, 6}, memory);
  const std::string by_default = bits(interpreter, {x, HostValue()}), given = bits(interpreter, {x, w});
  float element = 0;
  ASSERT_EQ(given.size(), 8U);
  std::memcpy(&element, given.data(), sizeof element);
  EXPECT_EQ(element, -5);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(bits(interpreter, {x, HostValue()}), by_default);
    EXPECT_EQ(bits(interpreter, {x, HostValue()}), by_default);
    EXPECT_EQ(bits(interpreter, {x, w}), given);
    EXPECT_EQ(bits(interpreter, {x, w}), given);
  }
}

TEST(ConstantCache, NarrowWeightsAreWidenedOrPacked) {
  const Model model = read_graph(
      "g (float16[M, 64] x) => (float16[M, 32] y) { n = Constant <value_ints = [64, 32]> () z = ConstantOfShape (n) "
      "e = Exp (z) w = Cast <to = 10> (e) y = MatMul (x, w) }");
  constexpr std::uint64_t kWeights = 64 * 32, kBeside = 8192;
  for (const std::int64_t rows : {1, 4, 65}) {
    Memory memory(kMebi);
    Interpreter interpreter(model, memory);
    HostTensor x(DType::kFloat16, {rows, 64}, memory);
    const std::vector<double> ones(x.size(), 1);
    store(x, 0, x.size(), ones.data());
    const std::string first = bits(interpreter, {x});
    ASSERT_EQ(first.size(), static_cast<std::size_t>(rows) * 64) << first;
    EXPECT_LT(memory.live(), x.bytes() + kBeside);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(bits(interpreter, {x}), first);
    // The results of nodes, z and e in float32 and w in float16, and what the product reads.
    const std::uint64_t read = kWeights * (rows == 4 ? 8 : 4), kept = x.bytes() + kWeights * 10 + read;
    EXPECT_GE(memory.live(), kept) << rows;
    EXPECT_LT(memory.live(), kept + kBeside) << rows;
  }
}

TEST(ConstantCache, ConstantsThatAreHeldCount) {
  const Model model = read_graph("g (float x) => (float[2] y) <float[2] w = {1, 2}> { v = Neg (w) y = Add (v, x) }");
  Memory memory(kMebi);
  Interpreter interpreter(model, memory);
  const HostTensor x = numbers({0}, memory).reshaped({});
  for (int i = 0; i < 3; ++i) bits(interpreter, {x});
  interpreter.hold(model.operands(model.node(NodeId{}))[0], numbers({5, 6}, memory));
  float element = 0;
  const std::string held = bits(interpreter, {x});
  ASSERT_EQ(held.size(), 8U);
  std::memcpy(&element, held.data(), sizeof element);
  EXPECT_EQ(element, -5);
}

TEST(ConstantCache, ObserversSeeWhatIsKept) {
  const Model model =
      read_graph("g (float x) => (float[2] y) <float[2] w = {1, 2}> { v = Neg (w) u = Exp (v) y = Add (u, x) }");
  Memory memory(kMebi);
  int seen = 0;
  Interpreter interpreter(model, memory,
                          {.seed = 0, .work_limit = 0, .observer = [&](NodeId, std::span<const HostValue> results) {
                             EXPECT_FALSE(results.front().is_absent());
                             ++seen;
                           }});
  const HostTensor x = numbers({0}, memory).reshaped({});
  for (int i = 1; i <= 4; ++i) {
    bits(interpreter, {x});
    EXPECT_EQ(seen, 3 * i);
  }
}

TEST(ConstantCache, WorkIsLimitedAsIfNothingWereKept) {
  const Model model = read_graph(
      "g (float x) => (float y) { n = Constant <value_int = 10> () y = Loop <body = b (int64 i, bool c, float v) => "
      "(bool go, float u) { go = Identity (c) s = Constant <value_ints = [512]> () z = ConstantOfShape (s) "
      "e = Mul (z, z) t = ReduceSum <keepdims = 0> (e) u = Add (v, t) }> (n, , x) }");
  Memory memory(kMebi);
  Interpreter interpreter(model, memory, {.seed = 0, .work_limit = 3'000'000, .observer = {}});
  const HostTensor x = numbers({0}, memory).reshaped({});
  for (int i = 0; i < 3; ++i) EXPECT_NE(bits(interpreter, {x}).find("the run takes more work"), std::string::npos) << i;
}

}  // namespace
}  // namespace tensorlint::runtime
