#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/passes/solved.h"

namespace tensorlint::dataflow {
namespace {

TEST(Solver, CarriesSymbolsThroughAGraph) {
  const Solved solved(with_header(R"(g (float[N, 3] x, float[N, 3] y) => (float[N, 3] z) {
    s = Add(x, y)
    z = Mul(s, x)
  })"));
  EXPECT_EQ(solved.fact("s"), "float32[N, 3]");
  EXPECT_TRUE(solved.failures().empty());
}

TEST(Solver, WordsForUnknownExtentsAreNoNames) {
  const Solved solved(with_header(R"(g (float[None, "?", "-1", N] x) => (y, d) {
    y = Relu(x)
    s = Shape(x)
    one = Constant <value = int64[1] {1}> ()
    t = Gather(s, one)
    d = Sub(t, one)
  })"));
  EXPECT_EQ(solved.fact("y"), "float32[?, ?, ?, N]");
}

TEST(Solver, ReportsOneMistakeOnce) {
  const Solved solved(with_header(R"(g (float[4, 3] x, int64[4, 3] y) => (float[4, 3] z) {
    [mix] d = Sub(x, y)
    [square] q = Mul(d, d)
    [later] z = Add(q, x)
  })"));
  EXPECT_EQ(solved.failures(), Labels{"mix: same_type"});
}

TEST(Solver, FindsIndependentMistakesBehindAFailure) {
  const Solved solved(with_header(R"(g (float[4, 3] x, int64[4, 3] y, float[5] w) => (float[4, 3] z) {
    [mix] d = Sub(x, y)
    [shape] e = Add(d, w)
    [axis] r = ReduceMean <keepdims = 0> (e, axes)
    z = Identity(r)
  })"));
  EXPECT_EQ(solved.failures(), (Labels{"mix: same_type", "shape: broadcastable"}));
}

TEST(Solver, JoinsBranches) {
  const Solved solved(with_header(R"(g (bool c, float[N, 3] x, float[N, 4] w) => (float[N, M] y) {
    y = If(c) <
      then_branch = a () => (float[N, 3] t) { t = Identity(x) },
      else_branch = b () => (float[N, 4] e) { e = Identity(w) }
    >
  })"));
  EXPECT_TRUE(solved.failures().empty());
  EXPECT_EQ(solved.fact("t"), "float32[N, 3]");
  EXPECT_EQ(solved.fact("e"), "float32[N, 4]");
  const Fact& joined = solved.analysis().fact(solved.model().find_value(GraphId::kMain, "y"));
  ASSERT_NE(joined.shape, ShapeId::kUnranked);
  EXPECT_EQ(solved.analysis().facts().shape_text(joined.shape).substr(0, 3), "[N,");
}

TEST(Solver, BranchesOfDifferentDtypesFail) {
  const Solved solved(with_header(R"(g (bool c, float[3] x, int64[3] w) => (y) {
    [choose] y = If(c) <
      then_branch = a () => (float[3] t) { t = Identity(x) },
      else_branch = b () => (int64[3] e) { e = Identity(w) }
    >
  })"));
  EXPECT_EQ(solved.failures(), Labels{"choose: branches_agree"});
}

/// What fails in the other one fails where engines infer it, and nothing else is known of that branch.
TEST(Solver, OnlyTheBranchThatAConstantChoosesIsVisited) {
  const Solved solved(with_header(R"(g (float[3] x, float[4] w) => (float[3] y) <bool c = {1}> {
    y = If(c) <
      then_branch = a () => (float[3] t) { t = Identity(x) },
      else_branch = b () => (float[3] e) { [strange] v = Strange(x) [unreached] e = Add(x, w) }
    >
  })"));
  ASSERT_EQ(solved.failures(), (Labels{"strange: known_operator", "unreached: broadcastable"}));
  EXPECT_EQ(solved.analysis().violations()[0].certainty, ops::Certainty::kMay);
  EXPECT_TRUE(solved.analysis().violations()[0].engines_differ);
  EXPECT_EQ(solved.fact("y"), "float32[3]");
  EXPECT_EQ(solved.fact("v"), "unknown");
  EXPECT_EQ(solved.analysis().gap(solved.analysis().violations()[0].node), Gap::kNone);
}

TEST(Solver, LearnsEqualitiesFromPreconditions) {
  const Solved solved(with_header(R"(g (float[N, K] x, float[M, P] w) => (y, t, u) {
    y = MatMul(x, w)
    t = Transpose(w)
    [joined] j = Concat <axis = 0> (x, t)
    m = Shape <end = 1> (w)
    one = Constant <value = int64[1] {1}> ()
    m1 = Add(m, one)
    n = Shape <end = 1> (x)
    s = Concat <axis = 0> (n, m1)
    [wrong] u = Reshape(x, s)
  })"));
  EXPECT_EQ(solved.fact("j"), "float32[N + P, K]");
  // [N, K] into [N, M + 1], where M is K.
  EXPECT_EQ(solved.failures(), Labels{"wrong: reshape_element_count"});
}

TEST(Solver, ACountThatDependsOnDataMayBeOne) {
  const Solved solved(with_header(R"(g (float[N] x) => (y) {
    picked = NonZero(x)
    count = Shape <start = 1> (picked)
    two = Constant <value = int64[1] {2}> ()
    more = Add(count, two)
    a = ConstantOfShape(count)
    b = ConstantOfShape(more)
    y = Add(a, b)
  })"));
  EXPECT_TRUE(solved.failures().empty());
}

TEST(Solver, WhatABranchTeachesEndsWithIt) {
  const Solved solved(with_header(R"(g (bool c, float[N, K] x, float[M, P] w) => (y, j) {
    y = If(c) <
      then_branch = a () => (t) { t0 = MatMul(x, w)
        t = Concat <axis = 0> (x, tw)
        tw = Transpose(w) },
      else_branch = b () => (e) { e = Identity(x) }
    >
    m = Shape <end = 1> (w)
    k = Shape <start = 1> (x)
    j = Sub(m, k)
  })"));
  EXPECT_TRUE(solved.failures().empty());
  EXPECT_EQ(solved.fact("t"), "float32[N + P, K]");
  const Fact& difference = solved.analysis().fact(solved.model().find_value(GraphId::kMain, "j"));
  const Content* content = solved.analysis().facts().content(difference.content);
  ASSERT_NE(content, nullptr);
  EXPECT_FALSE(solved.analysis().facts().dims().as_constant(content->integers[0]));
}

constexpr std::string_view kRankByBranch = R"(g (bool c, bool d, float[N, 4] x, float[4, 5] w) => (y, z) {{
    h = If(c) <
      then_branch = a () => (t) {{ t = Identity(x) }},
      else_branch = b () => (e) {{ one = Constant <value = int64[1] {{1}}> ()
        e = Unsqueeze(x, one) }}
    >
    z = Relu(h)
    {}
  }})";

TEST(Solver, ABranchWhoseRankFailsLaterWasNotTaken) {
  const Solved solved(with_header(fmt::format(kRankByBranch, "y = Gemm(h, w)")));
  EXPECT_EQ(solved.fact("h"), "float32[N, 4]");
  EXPECT_EQ(solved.fact("z"), "float32[N, 4]");
  EXPECT_EQ(solved.fact("y"), "float32[N, 5]");
  EXPECT_EQ(solved.fact("e"), "float32[N, 1, 4]");
}

TEST(Solver, ABranchThatAnInputChoosesMayFailLater) {
  const Solved rank(with_header(fmt::format(kRankByBranch, "[product] y = Gemm(h, w)")));
  EXPECT_EQ(rank.failures(), Labels{"product: gemm_rank"});
  ASSERT_EQ(rank.analysis().violations().size(), 1U);
  EXPECT_EQ(rank.analysis().violations()[0].certainty, ops::Certainty::kMay);
  constexpr std::string_view kExtents = R"(g (bool c, float[2, 3] x, float[2, 4] v, float[3] w) => (y) {{
    [choice] h = If({}) < then_branch = a () => (t) {{ t = Identity(x) }}, else_branch = b () => (e) {{ e = Identity(v) }} >
    [sum] y = Add(h, w)
  }})";
  EXPECT_EQ(Solved(with_header(fmt::format(kExtents, "c"))).failures(), Labels{"sum: broadcastable"});
  // What a shape decides is a guard, and both branches may fail for reasons that exclude each other.
  EXPECT_TRUE(Solved(with_header(R"(g (float[N, 4] x, float[4, 5] w) => (y) <int64 first = {0}, int64 few = {9}> {
    n = Shape(x)
    k = Gather(n, first)
    c = Less(k, few)
    h = If(c) < then_branch = a () => (t) { t = Identity(x) },
                else_branch = b () => (e) { one = Constant <value = int64[1] {1}> () e = Unsqueeze(x, one) } >
    y = Gemm(h, w)
  })"))
                  .failures()
                  .empty());
}

TEST(Solver, TheFailureMayBeDeepInABodyThatAlwaysRuns) {
  std::string chain;
  for (int i = 0; i < 300; ++i) chain += fmt::format("v{} = Relu({})\n", i, i == 0 ? "h" : fmt::format("v{}", i - 1));
  const std::string body = fmt::format(
      "yes = Constant <value = bool {{1}}> ()\n y = If(yes) < then_branch = p () => (q) {{ {} q = Gemm(v299, w) }}, "
      "else_branch = r () => (u) {{ u = Identity(x) }} >",
      chain);
  const Solved solved(with_header(fmt::format(kRankByBranch, body)));
  EXPECT_EQ(solved.fact("h"), "float32[N, 4]");
  EXPECT_EQ(solved.fact("y"), "float32[N, 5]");
}

TEST(Solver, BranchesThatBothWorkAreJoined) {
  const Solved solved(with_header(fmt::format(kRankByBranch, "y = MatMul(h, w)")));
  EXPECT_EQ(solved.fact("h"), "float32[...]");
}

TEST(Solver, ABodyThatMayNotRunDoomsNoBranch) {
  const Solved solved(with_header(fmt::format(kRankByBranch, R"(y = If(d) <
      then_branch = p () => (q) { q = Gemm(h, w) },
      else_branch = r () => (u) { u = Identity(x) }
    >)")));
  EXPECT_TRUE(solved.failures().empty());
  EXPECT_EQ(solved.fact("h"), "float32[...]");
}

TEST(Solver, WhatFailsInAnyCaseIsReportedOnce) {
  const Solved both(with_header(fmt::format(
      kRankByBranch, "[late] v = ReduceSum(h, axes)\n axes = Constant <value = int64[1] {7}> ()\n y = Gemm(h, w)")));
  EXPECT_EQ(both.failures(), Labels{"late: reduce_axes_in_range"});
  const Solved neither(with_header(fmt::format(
      kRankByBranch,
      "f = Flatten(w)\n zero = Constant <value = int64[2] {0, 1}> ()\n k = Unsqueeze(h, zero)\n y = Gemm(k, w)")));
  EXPECT_EQ(neither.fact("h"), "float32[...]");
}

constexpr std::string_view kGrowingLoop = R"(g (float[2, 3] x) => (z, s) <int64 trips = {{{}}}, bool go = {{1}}> {{
    z, s = Loop(trips, go, x) <
      body = b (int64 i, bool c, float[R, 3] v) => (bool c_out, float[Q, 3] v_out, float[R, 3] scanned) {{
        c_out = Identity(c)
        v_out = Concat <axis = 0> (v, v)
        scanned = Identity(x)
      }}
    >
  }})";

TEST(Solver, FollowsAConstantTripCountExactly) {
  const Solved solved(with_header(fmt::format(kGrowingLoop, 3)));
  EXPECT_TRUE(solved.failures().empty());
  EXPECT_EQ(solved.fact("z"), "float32[16, 3]");
  EXPECT_EQ(solved.fact("s"), "float32[3, 2, 3]");
}

TEST(Solver, AnUnknownTripCountKeepsWhatEveryIterationKeeps) {
  const Solved solved(with_header(R"(g (float[2, 3] x, int64 trips) => (z, s) <bool go = {1}> {
    z, s = Loop(trips, go, x) <
      body = b (int64 i, bool c, float[R, 3] v) => (bool c_out, float[Q, 3] v_out, float[R, 3] scanned) {
        c_out = Identity(c)
        v_out = Concat <axis = 0> (v, v)
        scanned = Identity(x)
      }
    >
  })"));
  EXPECT_TRUE(solved.failures().empty());
  EXPECT_EQ(solved.fact("z"), "float32[?, 3]");
  EXPECT_EQ(solved.fact("s"), "float32[?, 2, 3]");
}

TEST(Solver, ACarriedValueKeepsItsType) {
  const Solved solved(with_header(R"(g (float[3] x, int64 trips) => (z) <bool go = {1}> {
    [loop] z = Loop(trips, go, x) <
      body = b (int64 i, bool c, float[3] v) => (bool c_out, int64[3] v_out) {
        c_out = Identity(c)
        v_out = Cast <to = 7> (v)
      }
    >
  })"));
  EXPECT_EQ(solved.failures(), Labels{"loop: carried_keeps_type"});
}

TEST(Solver, AnOptionalAndWhatItHoldsMayTakeTurns) {
  const Solved solved(with_header(R"(g (optional(float[3]) o, float[3] x, int64 trips) => (z) <bool go = {1}> {
    z = Loop(trips, go, o) <
      body = b (int64 i, bool c, optional(float[3]) v) => (bool c_out, float[3] v_out) {
        c_out = Identity(c)
        v_out = Identity(x)
      }
    >
  })"));
  EXPECT_TRUE(solved.failures().empty());
}

TEST(Solver, ABodyThatDeclaresAnOptionalMayBeHandedWhatItHolds) {
  // In opset 16 OptionalHasElement takes optionals alone.
  const Solved solved(R"(<ir_version: 8, opset_import: ["": 16]>
  g (optional(float[3]) o, float[3] x) => (z) <int64 trips = {3}, bool go = {1}> {
    z = Loop(trips, go, o) <
      body = b (int64 i, bool c, optional(float[3]) v) => (bool c_out, float[3] v_out) {
        c_out = Identity(c)
        has = OptionalHasElement(v)
        v_out = Identity(x)
      }
    >
  })");
  EXPECT_TRUE(solved.failures().empty());
  EXPECT_EQ(solved.fact("z"), "float32[3]");
}

TEST(Solver, AFailureInsideABodyNamesItsIteration) {
  // The carried value doubles its rows: the Add only fits in the first iteration.
  const Solved solved(with_header(R"(g (float[2, 3] x) => (z) <int64 trips = {3}, bool go = {1}> {
    z = Loop(trips, go, x) <
      body = b (int64 i, bool c, float[R, 3] v) => (bool c_out, float[Q, 3] v_out) {
        c_out = Identity(c)
        [fits_once] w = Add(v, x)
        v_out = Concat <axis = 0> (w, w)
      }
    >
  })"));
  ASSERT_EQ(solved.failures(), Labels{"fits_once: broadcastable"});
  EXPECT_EQ(solved.analysis().violations()[0].iteration, 2);
}

TEST(Solver, ScanTakesAxesOffAndPutsThemOn) {
  const Solved solved(with_header(R"(g (float[3] start, float[T, 3] xs) => (last, all) {
    last, all = Scan <num_scan_inputs = 1,
      body = b (float[3] state, float[3] x) => (float[3] next, float[3] seen) {
        next = Add(state, x)
        seen = Identity(next)
      }
    > (start, xs)
  })"));
  EXPECT_TRUE(solved.failures().empty());
  EXPECT_EQ(solved.fact("last"), "float32[3]");
  EXPECT_EQ(solved.fact("all"), "float32[T, 3]");
}

TEST(Solver, TheConditionOfALoopIsBool) {
  const auto failures = [](std::string_view condition) {
    return Solved(with_header(fmt::format(R"(g (float[2] x, int64 trips, bool go) => (z) {{
      [loop] z = Loop(trips, go, x) <
        body = b (int64 i, bool c, float[2] v) => (c_out, float[2] v_out) {{
          c_out = {}
          v_out = Add(v, v)
        }}
      >
    }})",
                                          condition)))
        .failures();
  };
  EXPECT_EQ(failures("Identity(c)"), Labels{});
  EXPECT_EQ(failures("Cast <to = 1> (c)"), Labels{"loop: body_condition_is_bool"});
  EXPECT_EQ(failures("Identity(i)"), Labels{"loop: body_condition_is_bool"});
}

TEST(Solver, ScansOverOneLength) {
  const auto failures = [](std::string_view first, std::string_view second) {
    const Solved solved(with_header(fmt::format(R"(g (float[{}] a, float[{}] b) => (z) {{
      [scan] z = Scan <num_scan_inputs = 2,
        body = b (float p, float q) => (float r) {{ r = Add(p, q) }}
      > (a, b)
    }})",
                                                first, second)));
    Labels labels = solved.failures();
    for (std::size_t i = 0; i < labels.size(); ++i)
      if (solved.analysis().violations()[i].certainty == ops::Certainty::kMay) labels[i] += "?";
    return labels;
  };
  EXPECT_EQ(failures("3", "3"), Labels{});
  EXPECT_EQ(failures("N", "M"), Labels{});
  EXPECT_EQ(failures("N", "N"), Labels{});
  // The reference implementation leaves the rest of a longer operand out.
  EXPECT_EQ(failures("3", "4"), Labels{"scan: scan_lengths?"});
  EXPECT_EQ(failures("4", "3"), Labels{"scan: scan_lengths"});
}

TEST(Solver, ReadsFormulasInTheNamesOfDims) {
  const Solved solved(with_header(R"(g (float["a + 1", "b + 1"] x, float[a] y, float["2*n"] p, float[n, 2] q) => (z) <
    int64[1] all = {-1}
  > {
    flat = Reshape(x, all)
    z = Reshape(q, all)
    sum = Add(p, z)
  })"));
  EXPECT_EQ(solved.fact("flat"), "float32[a + a*b + b + 1]");
  EXPECT_EQ(solved.fact("x"), "float32[a + 1, b + 1]");
  EXPECT_EQ(solved.fact("sum"), "float32[2*n]");
  EXPECT_EQ(solved.failures(), Labels{});
}

TEST(Solver, TracksNoShapeOfMoreAxesThanRuntimesHave) {
  std::string dims = "1";
  for (int axis = 1; axis < 65; ++axis) dims += ", 1";
  const Solved solved(with_header(fmt::format("g (float[{}] x) => (z) {{ z = Relu(x) }}", dims)));
  EXPECT_EQ(solved.fact("z"), "float32[...]");
}

constexpr std::string_view kFunctionModel = R"(<ir_version: 10, opset_import: ["": 21, "local": 1]>
  g (float[N, 3] x, float[5] w) => (y, z) {
    y = local.double(x)
    z = local.double(w)
  }
  <domain: "local", opset_import: ["": 21]>
  double (a) => (b) {
    b = Add(a, a)
  })";

TEST(Solver, FunctionsAreInferredPerCall) {
  const Solved solved{std::string(kFunctionModel)};
  EXPECT_TRUE(solved.failures().empty());
  EXPECT_EQ(solved.fact("y"), "float32[N, 3]");
  EXPECT_EQ(solved.fact("z"), "float32[5]");
}

TEST(Solver, AttributesReachTheBodyOfAFunction) {
  const Solved solved(R"(<ir_version: 10, opset_import: ["": 21, "local": 1]>
  g (float[2, 3] x) => (y) {
    y = local.join <where = 1> (x)
  }
  <domain: "local", opset_import: ["": 21]>
  join <where> (a) => (b) {
    b = Concat <axis: int = @where> (a, a)
  })");
  EXPECT_EQ(solved.fact("y"), "float32[2, 6]");
}

TEST(Solver, AFunctionThatCallsItselfEnds) {
  const Solved solved(R"(<ir_version: 10, opset_import: ["": 21, "local": 1]>
  g (float[2] x) => (y) { y = local.f(x) }
  <domain: "local", opset_import: ["": 21, "local": 1]>
  f (a) => (b) { b = local.f(a) })");
  EXPECT_TRUE(solved.failures().empty());
}

TEST(Solver, DoublingCallsAreInferredOnceEach) {
  std::string text = "<ir_version: 10, opset_import: [\"\": 21, \"l\": 1]>\ng (float[2] x) => (y) { y = l.f60(x) }\n";
  for (int i = 60; i >= 1; --i)
    text += fmt::format(
        "<domain: \"l\", opset_import: [\"\": 21, \"l\": 1]>\nf{0} (a) => (c) {{ b = l.f{1}(a)\n c = l.f{1}(b) }}\n", i,
        i - 1);
  text += "<domain: \"l\", opset_import: [\"\": 21]>\nf0 (a) => (b) { b = Identity(a) }\n";
  const Solved solved(text);
  EXPECT_EQ(solved.fact("y"), "float32[2]");
}

TEST(Solver, CyclesAreLeftOutAndSaid) {
  const Solved solved(with_header(R"(g (float[2] x) => (y) {
    a = Add(x, b)
    b = Identity(a)
    y = Identity(x)
  })"));
  EXPECT_TRUE(solved.failures().empty());
  ASSERT_EQ(solved.analysis().early_uses().size(), 1U);
  EXPECT_TRUE(solved.analysis().early_uses()[0].in_cycle);
  EXPECT_EQ(solved.fact("y"), "float32[2]");
}

TEST(Solver, UnsortedNodesAreSolvedInOrder) {
  const Solved solved(with_header(R"(g (float[2] x) => (y) {
    y = Identity(a)
    a = Identity(x)
  })"));
  EXPECT_EQ(solved.fact("y"), "float32[2]");
  ASSERT_EQ(solved.analysis().early_uses().size(), 1U);
  EXPECT_FALSE(solved.analysis().early_uses()[0].in_cycle);
}

TEST(Solver, DeclarationsThatContradictAreReported) {
  const Solved dtype(with_header("g (float[2] x) => (int64[2] y) { [abs] y = Identity(x) }"));
  EXPECT_EQ(dtype.failures(), Labels{"abs: declared_type"});
  const Solved extent(with_header("g (float[2] x) => (float[3] y) { [abs] y = Identity(x) }"));
  EXPECT_EQ(extent.failures(), Labels{"abs: declared_shape"});
}

TEST(Solver, DeclarationsTellWhatAnUnknownOperatorDoesNot) {
  const Solved solved(R"(<ir_version: 10, opset_import: ["": 21, "custom": 1]>
  g (float[2] x) => (z) <float[2, 5] y> {
    y = custom.Widen(x)
    z = Identity(y)
  })");
  EXPECT_TRUE(solved.failures().empty());
  EXPECT_EQ(solved.fact("z"), "float32[2, 5]");
}

TEST(Solver, UserDeclarationsReplaceInputTypes) {
  AnalysisOptions options;
  options.values["x"] = {
      .dtypes = DTypeSet(DType::kInt64), .has_shape = true, .dims = {"B", "7"}, .range = {}, .device = {}};
  const Solved solved(with_header("g (float[2] x, float[2] y) => (z) { [add] z = Add(x, y) }"), options);
  EXPECT_EQ(solved.fact("x"), "int64[B, 7]");
  EXPECT_EQ(solved.failures(), (Labels{"add: same_type", "add: broadcastable"}));
}

// Four loops of 16 in a loop of 16, each adding 1 to 600 numbers: more than the budget allows. What the first
// iterations showed of the inner values need not hold in those that are not followed.
TEST(Solver, NothingIsKnownInBodiesThatAreNotFollowedToTheEnd) {
  std::string inner, numbers = "0";
  for (int i = 1; i < 600; ++i) numbers += fmt::format(", {}", i);
  for (int i = 0; i < 4; ++i)
    inner += fmt::format(
        "    v{} = Loop (trips, , v{}) <body = b{} (int64 i{}, bool c{}, int64[600] s{}) => (bool d{}, int64[600] t{}) "
        "{{ "
        "d{} = Identity (c{}) t{} = Add (s{}, one) }}>\n",
        i + 1, i, i, i, i, i, i, i, i, i, i, i);
  const Solved solved(
      fmt::format("<ir_version: 10, opset_import: [\"\": 21]>\n"
                  "g () => (y) <int64 trips = {{16}}, int64 one = {{1}}, int64[600] w = {{{}}}> {{\n"
                  "  y = Loop (trips, , w) <body = o (int64 i, bool c, int64[600] v0) => (bool d, int64[600] v4) {{\n"
                  "    d = Identity (c)\n{}  }}>\n}}\n",
                  numbers, inner));
  EXPECT_TRUE(solved.failures().empty());
  for (const std::string_view value : {"t0", "t3", "s3", "y"})
    EXPECT_TRUE(solved.range(value).hi >= 599 + 16 * 4 * 16) << value << " is " << solved.fact(value);
}

TEST(Origin, IsNoConditionOrTripCount) {
  const Solved solved(with_header(R"(g (bool flag, int64 trips, bool go, int64 start) => (a, z) {
    a = If (flag) <then_branch = t () => (x) { x = Constant <value_int = 1> () }, else_branch = e () => (y) { y = Constant <value_int = 2> () }>
    b = Relu (a)
    z = Loop (trips, go, start) <body = l (int64 i, bool c, int64 s) => (bool c2, int64 n) { c2 = Identity (c) n = Add (s, s) }>
  })"));
  const auto origin = [&](std::string_view name) {
    const Origin found = origin_of(solved.analysis(), solved.model().find_value(GraphId::kMain, name), Aspect::kShape);
    return std::string(solved.model().text(solved.model().value(found.value).name));
  };
  EXPECT_EQ(origin("b"), "a");
  EXPECT_EQ(origin("z"), "start");
}

}  // namespace
}  // namespace tensorlint::dataflow
