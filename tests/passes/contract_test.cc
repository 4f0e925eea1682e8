// Probes: what they cost, when they are left out, and which sizes and elements they find.
#include "passes/contract/contract.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "ir/ops/inference.h"
#include "passes/contract/demanding_calls.h"
#include "passes/contract/single_sizes.h"
#include "passes/contract/working_sizes.h"
#include "tests/passes/solved.h"

namespace tensorlint::contract {
namespace {

using dataflow::Solved;
using dataflow::with_header;

constexpr std::string_view kMask = R"(g (float[B, S, S] scores, float[1, 12, 12] mask) => (y) {
  [mask] y = Add (scores, mask)
})";

std::vector<std::string> single_sizes(const Solved& solved) {
  std::vector<std::string> texts;
  const DimPool& dims = solved.analysis().facts().dims();
  for (const SingleSize& single : find_single_sizes(solved.analysis(), {}).found)
    texts.push_back(fmt::format("{} in [{}, {}] at {}", dims.to_text(single.extent.symbol), single.least, single.most,
                                solved.model().label(single.failure().node)));
  return texts;
}

/// "equal N M", "bound 1..N", "divisor N 2", "range ids 0..9", with "~" where other inputs run, too.
std::vector<std::string> lines(const Solved& solved) {
  std::vector<std::string> texts;
  const DimPool& dims = solved.analysis().facts().dims();
  for (const Requirement& line : find_contract(solved.analysis(), {}).requirements) {
    const std::string subject = line.kind == RequirementKind::kRange
                                    ? std::string(solved.model().name_of(line.elements_of))
                                    : dims.to_text(line.subject);
    std::string text = fmt::format("{}{} {}", line.is_exact ? "" : "~", to_text(line.kind), subject);
    if (line.kind == RequirementKind::kEqual) text += " " + dims.to_text(line.equals);
    if (line.kind == RequirementKind::kDivisor) text += fmt::format(" {}", line.divisor);
    if (line.least || line.most)
      text += fmt::format(" {}..{}", line.least ? dims.to_text(*line.least) : "",
                          line.most ? dims.to_text(*line.most) : "");
    texts.push_back(std::move(text));
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Prober, AProbeHasSizesInsteadOfNames) {
  const Solved solved(with_header(kMask));
  Prober prober(solved.analysis(), {});
  ASSERT_EQ(prober.extents().size(), 2U);
  const Probe* fits = prober.probe({7, 12});
  ASSERT_NE(fits, nullptr);
  EXPECT_TRUE(fits->runs());
  const Probe* fails = prober.probe({7, 13});
  ASSERT_NE(fails, nullptr);
  ASSERT_EQ(fails->failures.size(), 1U);
  EXPECT_EQ(solved.model().label(fails->failures[0].node), "mask");
}

TEST(Prober, AFormulaOfTheInputsFollowsItsNames) {
  const Solved solved(with_header(R"(g (float["N + 1", 2] x, float[N, 2] z) => (y) { y = Concat <axis = 1> (x, z) })"));
  const Prober prober(solved.analysis(), {});
  ASSERT_EQ(prober.extents().size(), 1U);
  EXPECT_TRUE(prober.extents()[0].is_bare);  // the second input has it by itself
  EXPECT_EQ(prober.extents()[0].input, solved.value("z"));
  const dataflow::Analysis sized = prober.solve({5});
  EXPECT_EQ(sized.facts().shape_text(sized.fact(solved.value("x")).shape), "[6, 2]");
}

TEST(Prober, ProbesEndWithTheBudget) {
  const Solved solved(with_header(kMask));
  Prober prober(solved.analysis(), {}, {.visits = 100, .probes = 2});
  EXPECT_EQ(prober.probes_left(), 2U);
  EXPECT_NE(prober.probe({1, 1}), nullptr);
  EXPECT_NE(prober.probe({1, 1}), nullptr) << "remembered";
  EXPECT_EQ(prober.probes_left(), 1U);
  EXPECT_NE(prober.probe({1, 2}), nullptr);
  EXPECT_EQ(prober.probe({1, 3}), nullptr);
  EXPECT_EQ(Prober(solved.analysis(), {}, {.visits = 0, .probes = 2}).probes_left(), 0U);
}

TEST(Prober, ALoopThatIsLongForTheseSizesEndsWithTheBudget) {
  // A solve with N iterations may cost some times as much as the one without a number, not N times.
  const Solved solved(with_header(R"(g (float[N, 2] x, bool go) => (y) {
  shape = Shape <start = 0, end = 1> (x)
  count = Squeeze (shape)
  y = Loop (count, go, x) <body = step (int64 i, bool c, float[a, b] v) => (bool d, float[e, f] w) {
    d = Identity (c)
    w = Concat <axis = 0> (v, v)
  }>
})"));
  Prober prober(solved.analysis(), {});
  const std::uint64_t before = solved.analysis().meter().steps();
  prober.probe({100'000});
  EXPECT_LT(solved.analysis().meter().steps(), 100 * before);
}

TEST(Meetings, WhatHandsItsExtentsOnMeetsNothing) {
  const Solved solved(with_header(R"(g (float[N, M, 4] x, float[4, 5] w) => (y, s) {
  a = MatMul (x, w)
  b = Transpose <perm = [1, 0, 2]> (a)
  y = ReduceSum (b)
  s = Shape (x)
})"));
  EXPECT_TRUE(find_demanding_calls(solved.analysis()).empty());
}

TEST(Meetings, OneOfEqualCallsIsEnough) {
  const Solved solved(with_header(R"(g (float[S, S] x, float[12, 12] m) => (y, z) {
  [first] y = Add (x, m)
  [second] z = Add (x, m)
})"));
  const std::vector<NodeId> meetings = find_demanding_calls(solved.analysis());
  ASSERT_EQ(meetings.size(), 1U);
  const Prober prober(solved.analysis(), {});
  EXPECT_TRUE(fails_alone(prober, meetings[0], {13}));
  EXPECT_FALSE(fails_alone(prober, meetings[0], {12}));
}

TEST(SingleSizes, TheSizeComesFromWhatTheNodeCompares) {
  EXPECT_EQ(single_sizes(Solved(with_header(kMask))), (Texts{"S in [12, 12] at mask"}));
}

TEST(SingleSizes, BoundsDivisorsAndEqualAxesAreNone) {
  EXPECT_EQ(single_sizes(Solved(with_header(R"(g (float[N, 2] x, float[M, 2] z) => (y) {
  [join] y = Concat <axis = 1> (x, z)
})"))),
            Texts{});
  EXPECT_EQ(single_sizes(Solved(with_header(R"(g (float[N, T, 5] x, float[M, 5] z, int64[2] shape) => (y) {
  flat_shape = Constant <value_ints = [-1, 5]> ()
  flat = Reshape (x, flat_shape)
  [join] y = Concat <axis = 1> (flat, z)
})"))),
            Texts{})
      << "M is N times T";
}

TEST(SingleSizes, WhatNeedNotRunProvesNothing) {
  EXPECT_EQ(single_sizes(Solved(with_header(R"(g (float[S, 2] x, float[12, 2] m, bool c) => (y) {
  y = If (c) <then_branch = a () => (p) { p = Add (x, m) }, else_branch = b () => (q) { q = Relu (x) }>
})"))),
            Texts{});
}

TEST(SingleSizes, WhatFailsAnywayIsReportedAlready) {
  EXPECT_EQ(single_sizes(Solved(with_header(R"(g (float[S, 2] x, float[12, 3] m) => (y) { y = Add (x, m) })"))),
            Texts{});
}

TEST(SingleSizes, AnInputWithAnInitializerIsAConstant) {
  EXPECT_EQ(single_sizes(Solved(with_header(R"(g (float[2, 3] x, float[K] w) => (y) <float[3] w = {1, 2, 3}>
{ y = Add (x, w) })"))),
            Texts{});
}

TEST(Contract, Lines) {
  EXPECT_EQ(lines(Solved(with_header(kMask))), (Texts{"~equal S 12"}));
  EXPECT_EQ(lines(Solved(with_header(R"(g (float[N, 2] x, float[M, 2] z) => (y) {
  y = Concat <axis = 1> (x, z)
})"))),
            (Texts{"equal M N"}));
  EXPECT_EQ(lines(Solved(with_header(R"(g (float[N, 2] x) => (y) {
  shape = Constant <value_ints = [-1, 6]> ()
  y = Reshape (x, shape)
})"))),
            (Texts{"divisor N 3"}));
  EXPECT_EQ(lines(Solved(with_header(R"(g (float[1, 1, N] x, float[1, 1, 5] w) => (y) { y = Conv (x, w) })"))),
            (Texts{"bound N 5.."}));
}

TEST(Contract, ElementsAreBoundedByTheExtentThatTheyIndex) {
  EXPECT_EQ(lines(Solved(with_header(R"(g (float[30, 2] table, int64[N] ids) => (y) { y = Gather (table, ids) })"))),
            (Texts{"range ids -30..29"}));
  EXPECT_EQ(lines(Solved(with_header(R"(g (float[R, 2] table, int64[N] ids) => (y) { y = Gather (table, ids) })"))),
            (Texts{"range ids -R..R - 1"}));
  // Of tuples, each part along its own axis.
  EXPECT_EQ(
      lines(Solved(with_header(R"(g (float[R, 7, 2] table, int64[N, 1] ids) => (y) { y = GatherND (table, ids) })"))),
      (Texts{"range ids -R..R - 1"}));
  EXPECT_EQ(
      lines(Solved(with_header(R"(g (float[9, 7, 2] table, int64[N, 2] ids) => (y) { y = GatherND (table, ids) })"))),
      (Texts{"range ids -7..6"}));
  EXPECT_EQ(lines(Solved(with_header(R"(g (float[9, 2] x, int64[N, 1] ids, float[N, 2] rows) => (y) {
  y = ScatterND (x, ids, rows)
})"))),
            (Texts{"range ids -9..8"}));
}

TEST(Contract, LengthsAreWithinTheSequences) {
  constexpr std::string_view kReverse = "g (float[{}, N] x, int64[N] n) => (y) {{ y = ReverseSequence (x, n) }}";
  EXPECT_EQ(lines(Solved(with_header(fmt::format(kReverse, "T")))), (Texts{"range n 0..T"}));
  EXPECT_EQ(lines(Solved(with_header(fmt::format(kReverse, "6")))), (Texts{"range n 0..6"}));
}

TEST(Contract, PositionsMayBeAsManyAsTheirTableHasRows) {
  EXPECT_EQ(lines(Solved(with_header(R"(g (int64[B, S] words, float[1500, 2] table) => (rows) {
  zero = Constant <value_int = 0> ()
  one = Constant <value_int = 1> ()
  extents = Shape (words)
  length = Gather (extents, one)
  positions = Range (zero, length, one)
  behind = Add (positions, one)
  rows = Gather (table, behind)
})"))),
            (Texts{"bound S ..1499"}));
}

TEST(Contract, ADivisorBelowABound) {
  // 8, 16, ..., 40: twice the size that was found first is beyond the mask.
  EXPECT_EQ(lines(Solved(with_header(R"(g (float[S, 6] x, float[40, 6] table) => (parts, rows) {
  zero = Constant <value_int = 0> ()
  one = Constant <value_int = 1> ()
  shape = Constant <value_ints = [16, -1]> ()
  extents = Shape (x)
  length = Gather (extents, zero)
  positions = Range (zero, length, one)
  rows = Gather (table, positions)
  parts = Reshape (x, shape)
})"))),
            (Texts{"divisor S 8", "bound S ..40"}));
}

TEST(Contract, NumbersAreSaidOnceAndPlainly) {
  // The product alone would let each axis make up for the other; the mask says what one of them is.
  EXPECT_EQ(lines(Solved(with_header(R"(g (float[B, S, 4] x, float[12, 4] mask) => (y) {
  shape = Constant <value_ints = [2, 12, 4]> ()
  z = Reshape (x, shape)
  y = Add (x, mask)
  w = Add (z, x)
})"))),
            (Texts{"equal B 2", "equal S 12"}));
  EXPECT_EQ(lines(Solved(with_header(R"(g (float[B, 6, H, W] x) => (y) {
  shape = Constant <value_ints = [-1, 35, 6]> ()
  y = Reshape (x, shape)
})"))),
            (Texts{"divisor B*H*W 35"}));
}

TEST(Contract, BranchesThatSuitSmallInputsAloneHaveSizesToo) {
  // The branch for one frame drops its axis, as exporters write squeeze(2): more frames leave a rank that Gemm refuses.
  const Solved solved(with_header(R"(g (float[N, 4, T] x, float[4, 3] w) => (y) {
  pooled = MaxPool <kernel_shape = [1], strides = [8]> (x)
  extent = Shape <start = 2, end = 3> (pooled)
  one = Constant <value_ints = [1]> ()
  axes = Constant <value_ints = [2]> ()
  single = Equal (extent, one)
  row = If (single) <
    then_branch = squeezed () => (float[a, b] s) { s = Squeeze (pooled, axes) },
    else_branch = kept () => (float[a, b, c] k) { k = Identity (pooled) }
  >
  y = Gemm (row, w)
})"));
  EXPECT_EQ(lines(solved), (Texts{"bound T ..8"}));
}

TEST(Contract, AnElementThatIsIgnoredRunsToo) {
  EXPECT_EQ(lines(Solved(with_header(R"(g (float[N, 5] x, int64[N] t) => (y) {
  y = SoftmaxCrossEntropyLoss <ignore_index = -100> (x, t)
})"))),
            (Texts{"~range t 0..4"}));
}

TEST(Contract, AxesThatAreNotTrackedLeaveItIncomplete) {
  for (const std::size_t rank : {ops::kMaxRank, ops::kMaxRank + 1}) {
    std::string dims = "1";
    for (std::size_t axis = 1; axis < rank; ++axis) dims += ", 1";
    const Solved solved(with_header(fmt::format("g (float[{0}] x, float[{0}] z) => (y) {{ y = Add (x, z) }}", dims)));
    const Contract contract = find_contract(solved.analysis(), {});
    EXPECT_TRUE(contract.requirements.empty());
    EXPECT_EQ(contract.is_complete, rank == ops::kMaxRank);
  }
}

TEST(Contract, AModelThatAsksForNothingHasNoLines) {
  const Solved solved(with_header("g (float[N, 2] x) => (y) { y = Relu (x) }"));
  const Contract contract = find_contract(solved.analysis(), {});
  EXPECT_TRUE(contract.requirements.empty());
  EXPECT_TRUE(contract.has_sizes);
  EXPECT_TRUE(contract.is_complete);
}

}  // namespace
}  // namespace tensorlint::contract
