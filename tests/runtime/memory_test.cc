#include "runtime/values/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory_resource>
#include <string>
#include <vector>

#include "ir/text/reader.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"
#include "tests/runtime/read_graph.h"
#include "tests/sanitized.h"

namespace tensorlint::runtime {
namespace {

TEST(BlockStore, LargeBlocksAreTakenAgain) {
  BlockStore store;
  const BlockStore::Block first = store.take(kMebi, 0);
  ASSERT_NE(first.elements, nullptr);
  std::memset(first.elements, 1, first.bytes);
  store.give_back(first, 2 * kMebi);
  const BlockStore::Block smaller = store.take(kMebi - kMebi / 16, 2 * kMebi);
  ASSERT_NE(smaller.elements, nullptr);
  if (!kSanitized) {
    EXPECT_EQ(smaller.elements, first.elements);
  }
  EXPECT_GE(smaller.bytes, kMebi - kMebi / 16);
  const BlockStore::Block other = store.take(kMebi, 2 * kMebi);
  EXPECT_NE(other.elements, smaller.elements);
  store.give_back(smaller, 0);
  store.give_back(other, 2 * kMebi);
}

TEST(BlockStore, MuchLargerBlocksAreNotTaken) {
  BlockStore store;
  const BlockStore::Block large = store.take(4 * kMebi, 0);
  store.give_back(large, 4 * kMebi);
  const BlockStore::Block small = store.take(kMebi, 4 * kMebi);
  EXPECT_LT(small.bytes, 2 * kMebi);
  store.give_back(small, 0);
}

TEST(BlockStore, WhatTheSystemHasNotIsNull) {
  if (kSanitized) GTEST_SKIP() << "AddressSanitizer ends a program that asks for so much";
  BlockStore store;
  EXPECT_EQ(store.take(SIZE_MAX / 2, 0).elements, nullptr);
  EXPECT_EQ(store.take(SIZE_MAX, 0).elements, nullptr);
}

TEST(StringTensors, WhatTheyHoldIsInTheAccount) {
  Memory memory(kMebi);
  {
    HostTensor strings(DType::kString, {100}, memory);
    const std::uint64_t empty = memory.live();
    EXPECT_GE(empty, 100 * sizeof(std::pmr::string));
    strings.mutable_strings()[3] = std::string(10'000, 'x');
    EXPECT_GE(memory.live(), empty + 10'000);
    EXPECT_LE(memory.live(), empty + 10'100);
    const std::uint64_t one = memory.live() - empty;
    HostTensor copy(DType::kString, {100}, memory);
    copy_elements(copy, 0, strings, 0, 100);
    EXPECT_EQ(memory.live(), 2 * (empty + one));
    const HostTensor shared = copy.reshaped({10, 10});
    EXPECT_EQ(memory.live(), 2 * (empty + one));
    EXPECT_EQ(shared.strings()[3].size(), 10'000U);
    EXPECT_FALSE(copy.is_sole_owner());
  }
  EXPECT_EQ(memory.live(), 0U);
}

TEST(StringTensors, PastTheLimitNothingIsAllocated) {
  Memory memory(kMebi);
  HostTensor strings(DType::kString, {4}, memory);
  const std::uint64_t empty = memory.live();
  EXPECT_THROW(strings.mutable_strings()[0].resize(2 * kMebi), RunFault);
  EXPECT_THROW(strings.mutable_strings()[0].reserve(std::size_t{1} << 60), RunFault);
  EXPECT_THROW(HostTensor(DType::kString, {std::int64_t{1} << 50}, memory), RunFault);
  EXPECT_EQ(memory.live(), empty);
  HostTensor many(DType::kString, {2000}, memory);
  strings.mutable_strings()[0] = std::string(1000, 'x');
  EXPECT_THROW(fill(many, strings), RunFault);
  EXPECT_LE(memory.peak(), memory.limit());
}

/// The peak of all tensors while the model runs, and its first output.
std::uint64_t peak_of(std::string_view graph, std::vector<double>& output) {
  const Result<Model> model =
      read_onnx_text("<ir_version: 10, opset_import: [\"\": 18]>\n" + std::string(graph), "m.onnxtxt");
  if (!model) ADD_FAILURE() << model.error().message;
  Memory memory(64 * kMebi);
  std::vector<HostValue> inputs;
  HostTensor x(DType::kFloat32, {1 << 18}, memory);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto value = static_cast<double>(i % 7) - 3;
    store(x, i, 1, &value);
  }
  inputs.emplace_back(std::move(x));
  Interpreter interpreter(*model, memory);
  const auto outputs = interpreter.run(inputs);
  EXPECT_TRUE(outputs.ok()) << (outputs ? "" : outputs.error().message);
  output.resize(1 << 18);
  load(outputs->front().tensor(), 0, output.size(), output.data());
  for (std::size_t i = 0; i < output.size(); ++i)  // the input is as it was
    if (number_at(inputs.front().tensor(), i) != static_cast<double>(i % 7) - 3) ADD_FAILURE() << "input " << i;
  return memory.peak();
}

TEST(InPlace, AChainTakesTheMemoryOfItsOperands) {
  std::vector<double> y;
  const std::uint64_t peak = peak_of(
      "g (float[262144] x) => (float[262144] y) { a = Neg (x) b = Add (a, x) c = Sub (a, x) d = Mul (b, c) "
      "e = Relu (d) m = Greater (e, c) f = Where (m, e, c) y = Clip (f) }",
      y);
  // x, a, b; then b's block is d, e and f. bool takes a quarter.
  EXPECT_LE(peak, 3 * kMebi + kMebi / 2);
  for (std::size_t i = 0; i < 7; ++i) {
    const double x = static_cast<double>(i) - 3, c = -2 * x;
    EXPECT_EQ(y[i], std::max(0.0, c)) << i;
  }
}

TEST(InPlace, ValuesThatAreReadAgainStay) {
  std::vector<double> y;
  peak_of(
      "g (float[262144] x) => (float[262144] y, float[262144] a) { a = Neg (x) b = Exp (a) c = Identity (a) d = Abs "
      "(c) "
      "s = Constant <value_ints = [262144]> () r = Reshape (a, s) e = Neg (r) f = Add (e, d) y = Add (f, a) }",
      y);
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(y[i], std::abs(static_cast<double>(i) - 3)) << i;
}

TEST(InPlace, OneOperandTwiceIsItsOwnSquare) {
  std::vector<double> y;
  peak_of("g (float[262144] x) => (float[262144] y) { a = Neg (x) y = Mul (a, a) }", y);
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(y[i], (static_cast<double>(i) - 3) * (static_cast<double>(i) - 3));
}

TEST(InPlace, BodiesReadValuesAroundThem) {
  std::vector<double> y;
  peak_of(
      "g (float[262144] x) => (float[262144] y) { a = Neg (x) n = Constant <value_int = 3> () z = Sub (x, x) "
      "y = Loop <body = b (int64 i, bool c, float[262144] v) => (bool go, float[262144] w) { go = Identity (c) p = Exp "
      "(a) "
      "q = Neg (a) w = Add (v, q) }> (n, , z) }",
      y);
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(y[i], 3 * (static_cast<double>(i) - 3)) << i;
}

}  // namespace
}  // namespace tensorlint::runtime
