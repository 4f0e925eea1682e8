#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>

#include "ir/text/printer.h"
#include "ir/text/reader.h"
#include "tests/sanitized.h"

namespace tensorlint {
namespace {

constexpr std::array<std::string_view, 4> kSeeds = {
    R"(<ir_version: 10, opset_import: ["" : 21, "local" : 1], producer_name: "x", metadata_props: ["k": "v"]>
g (float[2] x = {1, 2}, seq(optional(int64[])) s, "q n") => (float y) <float[3] w = {1, -2.5, inf}, int4[3] i = {1, 2, 3}, int64[2] v> {
  [first] y, "" = local.f:o <a = 1, s = "t\"x", f : float = 2, is = [1, 2], t = float[2] n {1, 2}, tp = map(int64, float)> (x, , w) # note
})",
    R"(g (bool c, float x) => (float y) { y = If (c) <then_branch = a () => (float r) <float[1] w = {1}> { r = If (c)
 <then_branch = b () => (q) { q = Neg (x) # } }
 }, else_branch = "z z" () => (q) { q = Op <s = "}{"> (x) }> }, else_branch = d () => (r) { r = Abs (x) }> })",
    R"(g () => () <sparse_tensor(float[3, 4]) p = {float[2] {1, 2}, int64[2] {0, 5}}, float e = ["location": "w", "offset": "4"],
 string[2] s = {"a", "#"}, float16[2] h = {15360, 1.5}, complex64[1] z = {1, 2}> { k = A <ts : tensors = [float {1}, int8[0] {}],
 gs : graphs = [a () => () {}, b () => () {}], e : ints = []> () })",
    R"(<ir_version: 8> main (x) => (y) { y = local.t <alpha = 2e-3> (x) } <domain: "local", overload: "o", opset_import: ["" : 18]>
t <alpha, beta : float = 1.5> (float[K] a) => (b) <float[K] d> { d = Elu <alpha : float = @alpha, b = @beta> (a) b = Neg (d) })",
};

TEST(TextMutation, StartsFromTextsThatAreWellFormed) {
  for (const std::string_view seed : kSeeds) {
    const Result<Model> model = read_onnx_text(seed, "m.onnxtxt");
    EXPECT_TRUE(model.ok()) << model.error().message << "\n" << seed;
  }
}

/// Characters that change the structure, and words that begin something.
constexpr std::array<std::string_view, 34> kPieces = {"(",
                                                      ")",
                                                      "[",
                                                      "]",
                                                      "{",
                                                      "}",
                                                      "<",
                                                      ">",
                                                      "=",
                                                      "=>",
                                                      ",",
                                                      ":",
                                                      ".",
                                                      "?",
                                                      "@",
                                                      "\"",
                                                      "\\",
                                                      "#",
                                                      "\n",
                                                      "-",
                                                      "1",
                                                      "99999999999999999999",
                                                      "1e999",
                                                      "-nan",
                                                      "float",
                                                      "seq(",
                                                      "sparse_tensor(",
                                                      "inf",
                                                      "a () => () {",
                                                      "<b = g () => () {",
                                                      "\xff",
                                                      std::string_view("\0", 1),
                                                      "dtype_7",
                                                      "undefined"};

std::string mutated(std::string text, std::mt19937_64& random) {
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  // Mostly one edit, so that a part of the texts still reads.
  for (std::size_t edits = below(3) != 0 ? 1 : 2 + below(3); edits != 0; --edits) {
    if (text.empty()) return text;
    const std::size_t at = below(text.size());
    switch (below(9)) {
      case 0:
        text.erase(at, 1 + below(8));
        break;
      case 1:
        text.insert(at, kPieces[below(kPieces.size())]);
        break;
      case 2:
        text.replace(at, 1, kPieces[below(kPieces.size())]);
        break;
      case 3:
        text[at] = static_cast<char>(random());
        break;
      case 4:
        text[at] = static_cast<char>('a' + below(26));
        break;
      case 5:
        text[at] = static_cast<char>('0' + below(10));
        break;
      case 6:
        text.insert(at, " # \n");
        break;
      case 7:
        text.insert(below(text.size()), text.substr(at, 1 + below(60)));
        break;
      default:
        text.resize(at);
        break;
    }
  }
  return text;
}

// TENSORLINT_MUTATIONS asks for another number.
TEST(TextMutation, NeitherCrashesNorHangs) {
  const char* const asked = std::getenv("TENSORLINT_MUTATIONS");
  const std::size_t rounds = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 5000 / stride(5);
  std::mt19937_64 random(20240601);
  std::size_t read = 0;
  auto slowest = std::chrono::steady_clock::duration::zero();
  for (std::size_t i = 0; i < rounds * kSeeds.size(); ++i) {
    const std::string text = mutated(std::string(kSeeds[i % kSeeds.size()]), random);
    const auto start = std::chrono::steady_clock::now();
    const Result<Model> model = read_onnx_text(text, "m.onnxtxt");
    slowest = std::max(slowest, std::chrono::steady_clock::now() - start);
    if (!model) {
      EXPECT_NE(model.error().position.line, 0u) << text;
      EXPECT_LE(model.error().position.offset, text.size()) << text;
      continue;
    }
    ++read;
    const std::string once = to_text(*model);
    const Result<Model> again = read_onnx_text(once, "m.onnxtxt");
    ASSERT_TRUE(again.ok()) << again.error().message << "\n" << text << "\n--\n" << once;
    ASSERT_EQ(to_text(*again), once) << text;
  }
  RecordProperty("read", static_cast<int>(read));
  EXPECT_GT(read, rounds * kSeeds.size() / 20);  // the others only test the errors
  EXPECT_LT(slowest, std::chrono::seconds(1));
}

}  // namespace
}  // namespace tensorlint
