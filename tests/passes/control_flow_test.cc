// Loops, scans, maps and branches: which iterations are followed, what is stacked, and what bodies have to agree on.
#include "tests/passes/solved.h"

namespace tensorlint::dataflow {
namespace {

// ---- Loop: how often it runs

/// A loop of these operands that doubles `v` in each iteration, adds the iteration's number to `n` and stacks `v`.
Solved doubling(std::string_view trips, std::string_view go, std::string_view more_inputs = "") {
  return Solved(with_header(fmt::format(
      R"(g (float[1, 3] x{}) => (z, total, s)
    <int64 three = {{3}}, int64 zero = {{0}}, int64 minus = {{-2}}, int64 sixteen = {{16}}, int64 seventeen = {{17}}, int64 one = {{1}},
     bool yes = {{1}}, bool no = {{0}}> {{
    z, total, s = Loop({}, {}, x, zero) <
      body = b (int64 i, bool c, float[R, 3] v, int64 n) => (bool c_out, float[Q, 3] v_out, int64 n_out, float[3] seen) {{
        c_out = Identity(c)
        v_out = Concat <axis = 0> (v, x)
        n_out = Add(n, i)
        seen = ReduceMax <keepdims = 0> (v, axis)
        axis = Constant <value = int64[1] {{0}}> ()
      }}
    >
  }})",
      more_inputs, trips, go)));
}

TEST(ControlFlow, AConstantTripCountIsFollowed) {
  const Solved solved = doubling("three", "yes");
  EXPECT_EQ(solved.fact("z"), "float32[4, 3]");
  EXPECT_EQ(solved.content("total"), "3");
  EXPECT_EQ(solved.fact("s"), "float32[3, 3]");
  EXPECT_EQ(solved.range("i"), (Range{0, 2, false}));
}

TEST(ControlFlow, WithoutAConditionTheCountDecides) {
  const Solved solved = doubling("three", "");
  EXPECT_EQ(solved.fact("z"), "float32[4, 3]");
  EXPECT_EQ(solved.content("total"), "3");
  EXPECT_EQ(solved.fact("s"), "float32[3, 3]");
}

/// The first iteration says that the condition is open, and it is not the only one.
TEST(ControlFlow, NumbersOfIterationsAreThoseOfAll) {
  for (const std::string_view made : {"Identity(i)", "Add(i, i)", "Identity(v)"}) {
    const Solved solved(
        with_header(fmt::format("g (int64 x, bool stop) => (z, s) <int64 three = {{3}}> {{ z, s = Loop(three, \"\", x) "
                                "<body = b (int64 i, bool "
                                "c, int64 v) => (d, w, t) {{ d = Identity(stop) w = Identity(v) t = {} }}> }}",
                                made)));
    EXPECT_EQ(solved.range("i"), (Range{0, 2, false})) << made;
    EXPECT_TRUE(solved.range("s").hi >= 2) << made;
  }
}

TEST(ControlFlow, ALoopThatDoesNotRun) {
  for (const Solved& solved : {doubling("zero", "yes"), doubling("minus", "yes"), doubling("three", "no"),
                               doubling("zero", "go", ", bool go"), doubling("", "no")}) {
    EXPECT_EQ(solved.fact("z"), "float32[1, 3]");
    EXPECT_EQ(solved.content("total"), "0");
    EXPECT_EQ(solved.fact("s"), "float32[0, 3]");
  }
}

TEST(ControlFlow, AnOpenConditionOrCountMayEndItAnywhere) {
  for (const Solved& solved : {doubling("three", "go", ", bool go"), doubling("trips", "yes", ", int64 trips"),
                               doubling("", "yes"), doubling("trips", "", ", int64 trips")}) {
    EXPECT_EQ(solved.fact("z"), "float32[?, 3]");
    EXPECT_EQ(solved.content("total"), "none");
    EXPECT_EQ(solved.fact("s"), "float32[?, 3]");
  }
}

TEST(ControlFlow, SixteenIterationsAreFollowedAndNoMore) {
  const Solved sixteen = doubling("sixteen", "yes");
  EXPECT_EQ(sixteen.fact("z"), "float32[17, 3]");
  EXPECT_EQ(sixteen.content("total"), "120");
  EXPECT_EQ(sixteen.fact("s"), "float32[16, 3]");
  const Solved seventeen = doubling("seventeen", "yes");
  EXPECT_EQ(seventeen.fact("z"), "float32[?, 3]");
  EXPECT_EQ(seventeen.content("total"), "none");
  EXPECT_EQ(seventeen.fact("s"), "float32[17, 3]");
  EXPECT_EQ(seventeen.range("i"), (Range{0, 16, false}));
}

TEST(ControlFlow, ABodyThatEndsTheLoopLeavesTheCountOpen) {
  const Solved solved(with_header(R"(g (float[3] x) => (z, s) <int64 trips = {3}, bool yes = {1}> {
    z, s = Loop(trips, yes, x) <
      body = b (int64 i, bool c, float[3] v) => (bool c_out, float[3] v_out, float[3] seen) {
        c_out = Not(c)
        v_out = Relu(v)
        seen = Identity(v)
      }
    >
  })"));
  EXPECT_EQ(solved.fact("z"), "float32[3]");
  EXPECT_EQ(solved.fact("s"), "float32[?, 3]");
}

TEST(ControlFlow, WhatALoopDoesNotChangeStaysKnown) {
  const Solved solved(with_header(R"(g (int64 trips, float[N, 3] x) => (a, b) <int64[2] keep = {4, 5}, bool yes = {1}> {
    a, b = Loop(trips, yes, keep, x) <
      body = b (int64 i, bool c, int64[2] k, float[N, 3] v) => (bool c_out, int64[2] k_out, float[N, 3] v_out) {
        c_out = Identity(c)
        k_out = Identity(k)
        v_out = Relu(v)
      }
    >
  })"));
  EXPECT_EQ(solved.content("a"), "4 5");
  EXPECT_EQ(solved.fact("b"), "float32[N, 3]");
}

TEST(ControlFlow, ACarriedRangeIsWidenedOnlyWhereItGrows) {
  const Solved solved(with_header(R"(g (int64 trips) => (a, b) <int64 zero = {0}, int64 one = {1}, bool yes = {1}> {
    a, b = Loop(trips, yes, zero, zero) <
      body = b (int64 i, bool c, int64 n, int64 m) => (bool c_out, int64 n_out, int64 m_out) {
        c_out = Identity(c)
        n_out = Add(n, one)
        m_out = Sub(one, m)
      }
    >
  })"));
  EXPECT_EQ(solved.content("a"), "none");
  // It grows without end: nothing is known of it any more. m is 0 and 1 in turn.
  EXPECT_GT(solved.range("a").hi, 1e18);
  EXPECT_TRUE(solved.failures().empty());
}

TEST(ControlFlow, TheConditionHoldsInTheBody) {
  const Solved solved(with_header(R"(g (int64 trips, bool go, float[3] x) => (z) {
    z = Loop(trips, go, x) <
      body = b (int64 i, bool c, float[3] v) => (bool c_out, float[3] v_out) {
        c_out = Identity(c)
        v_out = If(c) <
          then_branch = t () => (float[3] r) { r = Relu(v) },
          else_branch = e () => (float[4] f) { f = Concat<axis = 0>(v, v) }
        >
      }
    >
  })"));
  EXPECT_EQ(solved.fact("z"), "float32[3]");
}

// ---- what a body and its node agree on

Solved with_body(std::string_view body) {
  return Solved(with_header(fmt::format(
      R"(g (float[3] x) => (z) <int64 trips = {{2}}, bool yes = {{1}}> {{
    z = Loop(trips, yes, x) < body = b {} >
  }})",
      body)));
}

TEST(ControlFlow, ABodyTakesAndGivesWhatItsNodeHands) {
  EXPECT_EQ(
      with_body("(int64 i, bool c) => (bool c_out, float[3] v_out) { c_out = Identity(c) v_out = Relu(x) }").messages(),
      Labels{"body_arity: the body takes 2 values, 3 given"});
  EXPECT_EQ(with_body("(int64 i, bool c, float[3] v) => (bool c_out) { c_out = Identity(c) }").messages(),
            Labels{"body_arity: the body gives 1 value, its node needs 2"});
  EXPECT_EQ(with_body("(int64 i, bool c, float[3] v) => (bool c_out, float[3] v_out, float[3] more) "
                      "{ c_out = Identity(c) v_out = Relu(v) more = Relu(v) }")
                .messages(),
            Labels{"body_arity: the body gives 3 values, its node needs 2"});
}

TEST(ControlFlow, ABodyDeclaresWhatItIsHanded) {
  const std::string_view rest = "=> (bool c_out, float[3] v_out) { c_out = Identity(c) v_out = Relu(x) }";
  EXPECT_EQ(with_body(fmt::format("(int64 i, bool c, float[3] v) {}", rest)).messages(), Labels{});
  EXPECT_EQ(with_body(fmt::format("(int32 i, bool c, float[3] v) {}", rest)).messages(),
            Labels{"body_input_type: {0} enters the body as int64, which declares it as int32"});
  EXPECT_EQ(with_body(fmt::format("(int64 i, int64 c, float[3] v) {}", rest)).messages().at(0),
            "body_input_type: {1} enters the body as bool, which declares it as int64");
  EXPECT_EQ(with_body(fmt::format("(int64 i, bool c, double[3] v) {}", rest)).messages().at(0),
            "body_input_type: {2} enters the body as float32, which declares it as float64");
  // What is carried may have another shape in the next iteration.
  EXPECT_EQ(with_body(fmt::format("(int64 i, bool c, float[4] v) {}", rest)).messages(), Labels{});
}

// ---- Scan

/// `attributes` and operands of a Scan whose body adds x to the state and gives the state twice.
Solved scan(std::string_view attributes, std::string_view inputs, std::string_view operands,
            std::string_view x = "float[3] x", int opset = 21) {
  return Solved(fmt::format(R"(<ir_version: 8, opset_import: ["": {}]>
  g ({}) => (last, all) {{
    last, all = Scan <num_scan_inputs = 1{},
      body = b (float[3] state, {}) => (float[3] next, float[3] seen) {{
        next = Add(state, x)
        seen = Identity(next)
      }}
    > ({})
  }})",
                            opset, inputs, attributes, x, operands));
}

TEST(ControlFlow, ScansAlongAnyAxis) {
  const Solved last = scan(", scan_input_axes = [-1], scan_output_axes = [-1]", "float[3] s, float[3, 5] xs", "s, xs");
  EXPECT_EQ(last.fact("x"), "float32[3]");
  EXPECT_EQ(last.fact("last"), "float32[3]");
  EXPECT_EQ(last.fact("all"), "float32[3, 5]");
  const Solved middle = scan(", scan_input_axes = [1], scan_output_axes = [1]", "float[3] s, float[3, T] xs", "s, xs");
  EXPECT_EQ(middle.fact("all"), "float32[3, T]");
  const Solved first = scan(", scan_output_axes = [0]", "float[3] s, float[T, 3] xs", "s, xs");
  EXPECT_EQ(first.fact("all"), "float32[T, 3]");
  EXPECT_TRUE(first.failures().empty() && middle.failures().empty() && last.failures().empty());
}

TEST(ControlFlow, AScanAxisOutsideTheRank) {
  EXPECT_EQ(scan(", scan_output_axes = [2]", "float[3] s, float[5, 3] xs", "s, xs").messages(),
            Labels{"scan_output_axis_in_range: `scan_output_axes` stacks {r1} along axis 2, it has rank 2"});
  EXPECT_EQ(scan(", scan_output_axes = [-3]", "float[3] s, float[5, 3] xs", "s, xs").messages(),
            Labels{"scan_output_axis_in_range: `scan_output_axes` stacks {r1} along axis -3, it has rank 2"});
  EXPECT_EQ(scan(", scan_output_axes = [-2]", "float[3] s, float[5, 3] xs", "s, xs").fact("all"), "float32[5, 3]");
  EXPECT_EQ(scan(", scan_output_axes = [2]", "float[3] s, float[5, 3] xs", "s, xs").fact("all"), "unknown");
  EXPECT_EQ(scan(", scan_input_axes = [2]", "float[3] s, float[3, 5] xs", "s, xs").fact("x"), "float32[...]");
  EXPECT_EQ(scan(", scan_input_axes = [-3]", "float[3] s, float[3, 5] xs", "s, xs").fact("x"), "float32[...]");
}

TEST(ControlFlow, AScansBodyDeclaresSlices) {
  EXPECT_EQ(scan("", "float[3] s, float[5, 4] xs", "s, xs", "float[3] x").messages().at(0),
            "body_input_type: {1} enters the body with shape [4], which declares [3]");
  EXPECT_EQ(scan("", "float[3] s, float[5, 3, 1] xs", "s, xs", "float[3] x").messages().at(0),
            "body_input_type: {1} enters the body with shape [3, 1], which declares [3]");
  EXPECT_EQ(scan("", "float[3] s, double[5, 3] xs", "s, xs", "float[3] x").messages().at(0),
            "body_input_type: {1} enters the body as float64, which declares it as float32");
  EXPECT_EQ(scan("", "float[3] s, float[5, N] xs", "s, xs", "float[3] x").messages(), Labels{});
}

TEST(ControlFlow, InOpset8AScanHasABatch) {
  const Solved whole = scan("", "float[B, 3] s, float[B, T, 3] xs", ", s, xs", "float[3] x", 8);
  EXPECT_EQ(whole.messages(), Labels{});
  EXPECT_EQ(whole.fact("x"), "float32[3]");
  EXPECT_EQ(whole.fact("last"), "float32[B, 3]");
  EXPECT_EQ(whole.fact("all"), "float32[B, T, 3]");
  const Solved counted = scan("", "int64[B] n, float[B, 3] s, float[B, 5, 3] xs", "n, s, xs", "float[3] x", 8);
  EXPECT_EQ(counted.fact("last"), "float32[B, 3]");
  EXPECT_EQ(counted.fact("all"), "float32[B, 5, 3]");
}

TEST(ControlFlow, WhatABatchElementLeavesOutIsZero) {
  // The body gives numbers from 2 to 3; behind the end of a sequence there are zeros.
  const auto clipped = [](std::string_view lengths) {
    return Solved(fmt::format(R"(<ir_version: 8, opset_import: ["": 8]>
    g (int64[2] n, float[2, 3] s, float[2, 5, 3] xs) => (last, all) {{
      last, all = Scan <num_scan_inputs = 1,
        body = b (float[3] state, float[3] x) => (float[3] next, float[3] seen) {{
          next = Identity(state)
          seen = Clip <min = 2.0, max = 3.0> (x)
        }}
      > ({}, s, xs)
    }})",
                              lengths));
  };
  EXPECT_EQ(clipped("").range("all").lo, 2);
  EXPECT_LT(clipped("n").range("all").lo, 0);
}

// ---- SequenceMap

TEST(ControlFlow, MapsASequence) {
  const Solved solved(with_header(R"(g (seq(float[N, 3]) xs, float[3] w) => (ys) {
    ys = SequenceMap(xs, w) <
      body = b (float[N, 3] x, float[3] v) => (float[N, 3] y) { y = Add(x, v) }
    >
  })"));
  EXPECT_TRUE(solved.failures().empty());
  EXPECT_EQ(solved.fact("y"), "float32[?, 3]");
  EXPECT_EQ(solved.fact("ys"), "seq(float32[?, 3])");
}

// ---- If

Solved branches(std::string_view condition, std::string_view then_branch, std::string_view else_branch,
                std::string_view results = "y") {
  return Solved(
      with_header(fmt::format(R"(g (bool c, float[N, 3] x, int64[2] k) => ({}) <bool yes = {{1}}, bool no = {{0}}> {{
    {} = If({}) < then_branch = a {}, else_branch = b {} >
  }})",
                              results, results, condition, then_branch, else_branch)));
}

TEST(ControlFlow, TheTakenBranchDecides) {
  const std::string_view a = "() => (float[N, 3] t) { t = Relu(x) }", b = "() => (float[3, N] e) { e = Transpose(x) }";
  EXPECT_EQ(branches("yes", a, b).fact("y"), "float32[N, 3]");
  EXPECT_EQ(branches("no", a, b).fact("y"), "float32[3, N]");
  EXPECT_EQ(branches("yes", a, b).fact("e"), "unknown");
  EXPECT_EQ(branches("no", a, b).fact("t"), "unknown");
  EXPECT_EQ(branches("c", a, b).fact("y"), "float32[?, ?]");
}

TEST(ControlFlow, TheOtherBranchDeclaresTheSameType) {
  const std::string_view a = "() => (float[N, 3] t) { t = Relu(x) }", b = "() => (int64[2] e) { e = Identity(k) }";
  EXPECT_EQ(branches("yes", a, b).messages(),
            Labels{"branches_agree: {r0} is float32[N, 3] from `then_branch` and int64[2] from `else_branch`"});
  EXPECT_EQ(branches("no", a, b).messages(),
            Labels{"branches_agree: {r0} is float32[?, 3] from `then_branch` and int64[2] from `else_branch`"});
  EXPECT_EQ(branches("c", a, b).messages(),
            Labels{"branches_agree: {r0} is float32[N, 3] from `then_branch` and int64[2] from `else_branch`"});
}

TEST(ControlFlow, BranchesTakeNothingAndGiveWhatIfGives) {
  const std::string_view fine = "() => (float[N, 3] t) { t = Relu(x) }";
  EXPECT_EQ(branches("c", "(float[3] q) => (float[N, 3] t) { t = Relu(x) }", fine).messages(),
            Labels{"body_arity: `then_branch` has 1 input, a branch takes none"});
  EXPECT_EQ(branches("c", fine, "(float[3] q, float[3] r) => (float[N, 3] e) { e = Relu(x) }").messages(),
            Labels{"body_arity: `else_branch` has 2 inputs, a branch takes none"});
  EXPECT_EQ(branches("c", fine, "() => (float[N, 3] e, float[N, 3] f) { e = Relu(x) f = Relu(x) }").messages(),
            Labels{"body_arity: `else_branch` gives 2 values, If has 1 result"});
  EXPECT_EQ(branches("c", fine, fine, "y, z").messages().at(0),
            "body_arity: `then_branch` gives 1 value, If has 2 results");
}

// ---- functions

Solved with_function(std::string_view call, std::string_view function) {
  return Solved(fmt::format(R"(<ir_version: 10, opset_import: ["": 21, "local": 1]>
  g (float[N, 3] x, float[3] w) => (y) {{ {} }}
  <domain: "local", opset_import: ["": 21]>
  {})",
                            call, function));
}

TEST(ControlFlow, ACallHasAsManyOperandsAsTheFunctionTakes) {
  EXPECT_EQ(with_function("y = local.f(x, w)", "f (a) => (b) { b = Relu(a) }").messages(),
            Labels{"call_arity: `f` takes 1 operand, 2 given"});
  EXPECT_EQ(with_function("y = local.f(x, w, w)", "f (a, c) => (b) { b = Add(a, c) }").messages(),
            Labels{"call_arity: `f` takes 2 operands, 3 given"});
  EXPECT_EQ(with_function("y, z = local.f(x)", "f (a) => (b) { b = Relu(a) }").messages(),
            Labels{"call_arity: `f` gives 1 result, 2 asked for"});
  EXPECT_EQ(with_function("y, z, u = local.f(x)", "f (a) => (b, c) { b = Relu(a) c = Relu(a) }").messages(),
            Labels{"call_arity: `f` gives 2 results, 3 asked for"});
  EXPECT_EQ(with_function("y = local.f(x)", "f (a, c) => (b) { b = Clip(a, c) }").messages(), Labels{});
}

TEST(ControlFlow, AttributesOfACallComeBeforeDefaults) {
  const std::string_view function = "f <axis: int = 0> (a) => (b) { b = Concat <axis: int = @axis> (a, a) }";
  EXPECT_EQ(with_function("y = local.f(w)", function).fact("y"), "float32[6]");
  EXPECT_EQ(with_function("y = local.f <axis = 1> (x)", function).fact("y"), "float32[N, 6]");
  EXPECT_EQ(with_function("y = local.f(x)", function).fact("y"), "float32[2*N, 3]");
}

}  // namespace
}  // namespace tensorlint::dataflow
