// Models on the emulated device: what reaches kernels and what does not, what is copied, and what happens when the
// device refuses.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>

#include "tests/runtime/executing.h"

namespace tensorlint::runtime {
namespace {

TEST_F(Executing, LossIsOneKernelAndTwoCopiesIn) {
  const auto where = places(
      "g (float[7, 5] x, float[7, 5] t) => (float y) {\n"
      " d = Sub (x, t)\n s = Mul (d, d)\n y = ReduceMean <keepdims = 0> (s)\n}");
  EXPECT_EQ(where.at("y"), "pointwise_loss squared, mean");
  EXPECT_EQ(where.at("d"), "part of `#2(ReduceMean)`");
  EXPECT_EQ(copies_, (ExecutionPlan::Copies{.in = 2, .bytes_in = 2 * 7 * 5 * 4, .out = 1, .bytes_out = 4}));
  EXPECT_EQ(peak_, 2U * 144 + 16);  // multiples of 16
}

TEST_F(Executing, InnerValueWithAnotherReaderStays) {
  // Its square root needs the squares: a kernel gives these, and another one their mean.
  const auto where = places(
      "g (float[7, 5] x, float[7, 5] t) => (float y, float[7, 5] r) {\n"
      " d = Sub (x, t)\n s = Mul (d, d)\n r = Sqrt (s)\n y = ReduceMean <keepdims = 0> (s)\n}");
  EXPECT_EQ(where.at("s"), "pointwise_loss squared, none");
  EXPECT_EQ(where.at("d"), "part of `#1(Mul)`");
  EXPECT_EQ(where.at("y"), "reduce mean");
  // As an output of the model, and as what a body reads.
  EXPECT_EQ(places("g (float[3] x, float[3] t) => (float[3] s, float y) {\n"
                   " d = Sub (x, t)\n s = Mul (d, d)\n y = ReduceSum <keepdims = 0> (s)\n}")
                .at("y"),
            "reduce sum");
  EXPECT_EQ(places("g (float[3] x, float[3] t, bool c) => (float y, float[3] z) {\n"
                   " d = Sub (x, t)\n s = Mul (d, d)\n y = ReduceSum <keepdims = 0> (s)\n"
                   " z = If (c) <then_branch = a () => (float[3] p) { p = Neg (s) },"
                   " else_branch = b () => (float[3] q) { q = Identity (d) }>\n}")
                .at("y"),
            "reduce sum");
}

TEST_F(Executing, WhatLooksLikeALossIsNotOne) {
  // A cube, a stretched target, rounding on the way, and a factor that is not one.
  EXPECT_EQ(places("g (float[7, 5] x, float[7, 5] t) => (float y) {\n d = Sub (x, t)\n s = Mul (d, d)\n"
                   " c = Mul (s, d)\n y = ReduceMean <keepdims = 0> (c)\n}",
                   1e-5)
                .at("y"),
            "reduce mean");
  EXPECT_EQ(places("g (float[7, 5] x, float[7, 1] t) => (float y) {\n d = Sub (x, t)\n s = Mul (d, d)\n"
                   " y = ReduceMean <keepdims = 0> (s)\n}")
                .at("y"),
            "reduce mean");
  EXPECT_EQ(places("g (float[7, 5] x, float[7, 5] t) => (float y) {\n d = Sub (x, t)\n h = Cast <to = 10> (d)\n"
                   " f = Cast <to = 1> (h)\n s = Mul (f, f)\n y = ReduceMean <keepdims = 0> (s)\n}")
                .at("d"),
            "part of `#3(Mul)`");
}

TEST_F(Executing, MasksSentinelsAndThresholdsAreKept) {
  // Formulas that are a known loss but for some values of x, t or w, off those at which they are compared.
  const std::string square = " s = Mul (d, d)\n", size = " a = Abs (d)\n",
                    zero = " zero = Constant <value_float = 0.0> ()\n";
  const auto constant = [](std::string_view name, std::string_view number) {
    return fmt::format(" {} = Constant <value_float = {}> ()\n", name, number);
  };
  const std::string sentinel = constant("c", "-100.0"), large = constant("c", "300.0"), small = constant("c", "0.0001"),
                    one = constant("one", "1.0"), half = constant("half", "0.5");
  const auto kernel = [&](std::string_view body) {
    return places(fmt::format("g (float[7, 5] x, float[7, 5] t, float[7, 5] w) => (y) {{\n d = Sub (x, t)\n{}\n"
                              " y = ReduceMean <keepdims = 0> (e)\n}}",
                              body),
                  1e-5)
        .at("y");
  };
  for (const std::string& body : std::initializer_list<std::string>{
           square + zero + sentinel + " m = Equal (t, c)\n e = Where (m, zero, s)",
           square + zero + " m = IsNaN (t)\n e = Where (m, zero, s)",
           square + zero + " m = Equal (t, t)\n e = Where (m, s, zero)",
           square + zero + " m = Equal (t, zero)\n e = Where (m, zero, s)",
           size + sentinel + " m = Greater (t, c)\n f = Cast <to = 1> (m)\n e = Mul (a, f)",
           square + large + " e = Clip (s, , c)",
           size + large + " e = Min (a, c)",
           square + zero + large + " m = Less (s, c)\n e = Where (m, s, zero)",
           square + zero + small + " m = Less (s, c)\n e = Where (m, zero, s)",
           square + one + large + constant("five", "5.0") +
               " m = Greater (t, c)\n v = Where (m, five, one)\n e = Mul (s, v)",
           square + large + " v = Min (w, c)\n e = Mul (s, v)",
           square + " v = Relu (w)\n e = Mul (s, v)",
           square + " u = Identity (x)\n r = Round (u)\n q = Sub (r, r)\n e = Add (s, q)",
       })
    EXPECT_EQ(kernel(body), "reduce mean") << body;
  // What a kind's own pieces are written with.
  EXPECT_EQ(kernel(square + " e = Identity (s)"), "pointwise_loss squared, mean");
  EXPECT_EQ(kernel(square + " e = Mul (s, w)"), "pointwise_loss squared, mean");
  EXPECT_EQ(kernel(zero + " m = Less (d, zero)\n n = Neg (d)\n e = Where (m, n, d)"), "pointwise_loss absolute, mean");
  EXPECT_EQ(kernel(" g = Sign (d)\n e = Mul (d, g)"), "pointwise_loss absolute, mean");
  EXPECT_EQ(kernel(square + size + half + one +
                   " m = Less (a, one)\n q = Mul (s, half)\n l = Sub (a, half)\n"
                   " e = Where (m, q, l)"),
            "pointwise_loss smooth_l1, mean");
}

TEST_F(Executing, MasksOfDivergencesAndLogitsAreKept) {
  const auto constant = [](std::string_view name, std::string_view number) {
    return fmt::format(" {} = Constant <value_float = {}> ()\n", name, number);
  };
  const std::string zero = constant("zero", "0.0"), hundredth = constant("c", "0.01"), none = constant("c", "-1.0");
  const auto divergence = [&](std::string_view elements) {
    return places(fmt::format("g (float[7, 5] x, float[7, 5] u) => (y) {{\n t = Sigmoid (u)\n l = Log (t)\n"
                              " d = Sub (l, x)\n k = Mul (t, d)\n{}\n y = ReduceMean <keepdims = 0> (e)\n}}",
                              elements),
                  1e-5)
        .at("y");
  };
  EXPECT_EQ(divergence(zero + " m = Greater (t, zero)\n e = Where (m, k, zero)"), "pointwise_loss kl_divergence, mean");
  EXPECT_EQ(divergence(zero + hundredth + " m = Greater (t, c)\n e = Where (m, k, zero)"), "reduce mean");
  const auto logits = [&](std::string_view elements) {
    return places(fmt::format("g (float[7, 5] x, float[7, 5] u) => (y) {{\n t = Sigmoid (u)\n p = Relu (x)\n"
                              " q = Mul (x, t)\n a = Abs (x)\n b = Neg (a)\n h = Exp (b)\n{} i = Add (one, h)\n"
                              " j = Log (i)\n r = Sub (p, q)\n z = Add (r, j)\n{}\n"
                              " y = ReduceMean <keepdims = 0> (e)\n}}",
                              constant("one", "1.0"), elements),
                  1e-5)
        .at("y");
  };
  EXPECT_EQ(logits(" e = Identity (z)"), "pointwise_loss binary_logits, mean");
  EXPECT_EQ(logits(zero + none + " m = Equal (t, c)\n e = Where (m, zero, z)"), "reduce mean");
  EXPECT_EQ(logits(zero + hundredth + " m = Greater (x, c)\n e = Where (m, z, zero)"), "reduce mean");
}

TEST_F(Executing, FactorsOfNarrowWeightsAreNotStoredInThem) {
  const auto kernel = [&](std::string_view dtype, std::string_view factor) {
    return places(fmt::format("g ({0}[7, 5] x, {0}[7, 5] t, {0}[7, 5] w) => (y) {{\n d = Sub (x, t)\n s = Mul (d, d)\n"
                              " v = Mul (s, w)\n c = Constant <value = {0} {{{1}}}> ()\n e = Mul (v, c)\n"
                              " y = ReduceMean <keepdims = 0> (e)\n}}",
                              dtype, factor),
                  4e-3)
        .at("y");
  };
  EXPECT_EQ(kernel("float", "0.001"), "pointwise_loss squared, mean");
  EXPECT_EQ(kernel("float16", "1000"), "reduce mean");
  EXPECT_EQ(kernel("bfloat16", "0.001"), "reduce mean");
}

TEST_F(Executing, IntegersThatFloat64RoundsAreNoNumbersOfACall) {
  for (const std::string_view number : {"9007199254740993", "-9007199254740993"}) {
    const auto run = [&](std::string_view op, std::string_view result) {
      (void)places(
          fmt::format("g (int64[4] x) => ({} y) {{\n c = Constant <value = int64 {{{}}}> ()\n y = {} (x, c)\n}}",
                      result, number, op),
          0);
    };
    run("Add", "int64[4]");
    run("Equal", "bool[4]");
    (void)places(fmt::format("g (int64[4] x) => (y) {{\n c = Constant <value = int64 {{{}}}> ()\n"
                             " p = Constant <value = int64[2] {{1, 2}}> ()\n y = Pad (x, p, c)\n}}",
                             number),
                 0);
  }
}

TEST_F(Executing, TargetsThatAreNotProbabilities) {
  // As exporters write it, with targets below zero: one selects zero there, the other one has NaN.
  EXPECT_EQ(places("g (float[4, 3] x, float[4, 3] t) => (y) {\n l = Log (t)\n d = Sub (l, x)\n p = Mul (t, d)\n"
                   " o = Constant <value = float {0}> ()\n c = Greater (t, o)\n w = Where (c, p, o)\n"
                   " y = ReduceSum <keepdims = 0> (w)\n}")
                .at("y"),
            "pointwise_loss kl_divergence, sum");
  // Without a guard a target of zero is NaN, which the kernel would hide.
  EXPECT_EQ(places("g (float[4, 3] x, float[4, 3] u) => (y) {\n t = Softmax (u)\n l = Log (t)\n d = Sub (l, x)\n"
                   " p = Mul (t, d)\n y = ReduceSum <keepdims = 0> (p)\n}")
                .at("y"),
            "reduce sum");
  // Held at -100, or not: a probability, or what it is made of.
  EXPECT_EQ(places("g (float[4, 3] x, float[4, 3] u) => (y) {\n t = Sigmoid (u)\n p = Sigmoid (x)\n"
                   " one = Constant <value = float {1}> ()\n h = Constant <value = float {-100}> ()\n"
                   " q = Sub (one, p)\n a = Log (p)\n b = Log (q)\n c = Max (a, h)\n d = Max (b, h)\n"
                   " e = Mul (t, c)\n s = Sub (one, t)\n f = Mul (s, d)\n z = Add (e, f)\n n = Neg (z)\n"
                   " y = ReduceMean <keepdims = 0> (n)\n}")
                .at("y"),
            "pointwise_loss binary, mean");
}

TEST_F(Executing, WeightsScalesAndSigns) {
  const std::string_view head = "g (float[4, 3] x, float[4, 3] t, float[3] w) => (y) {\n";
  const auto with = [&](std::string_view body) { return places(fmt::format("{}{}\n}}", head, body)); };
  EXPECT_EQ(with(" d = Sub (x, t)\n s = Mul (d, d)\n v = Mul (s, w)\n y = ReduceSum <keepdims = 0> (v)").at("y"),
            "pointwise_loss squared, sum");
  // Times -0.5, which the kernel takes as a weight of one element.
  const auto where = with(
      " d = Sub (t, x)\n a = Abs (d)\n h = Constant <value = float {0.5}> ()\n s = Mul (a, h)\n"
      " m = ReduceMean <keepdims = 0> (s)\n n = Identity (w)\n y = Neg (m)");
  EXPECT_EQ(where.at("y"), "pointwise_loss absolute, mean");
  EXPECT_EQ(where.at("h"), "unused");
  EXPECT_EQ(copies_.in, 4U) << "w for n, too";
  // Summed over classes and averaged over rows.
  EXPECT_EQ(with(" d = Sub (x, t)\n s = Mul (d, d)\n one = Constant <value = int64[1] {1}> ()\n"
                 " r = ReduceSum <keepdims = 0> (s, one)\n y = ReduceMean <keepdims = 0> (r)")
                .at("y"),
            "pointwise_loss squared, batch mean");
}

TEST_F(Executing, LossesOfOurDomain) {
  const auto of = [&](std::string_view call) {
    return places(fmt::format("g (float[6, 3] x, float[6, 3] u, float[3] w) => (y) {{\n t = Sigmoid (u)\n"
                              " p = Sigmoid (x)\n v = Exp (w)\n l = ArgMax <axis = 1, keepdims = 0> (u)\n"
                              " y = tensorlint.{}\n}}",
                              call))
        .at("y");
  };
  EXPECT_EQ(of("MseLoss (x, t)"), "pointwise_loss squared, mean");
  EXPECT_EQ(of("L1Loss <reduction = \"none\"> (x, t)"), "pointwise_loss absolute, none");
  EXPECT_EQ(of("SmoothL1Loss <beta = 0.75> (x, t)"), "pointwise_loss smooth_l1, mean");
  EXPECT_EQ(of("HuberLoss <delta = 0.25, reduction = \"sum\"> (x, t)"), "pointwise_loss huber, sum");
  EXPECT_EQ(of("BceLoss (p, t)"), "pointwise_loss binary, mean");
  EXPECT_EQ(of("BceWithLogitsLoss (x, t, v)"), "pointwise_loss binary_logits, mean");
  EXPECT_EQ(of("KlDivLoss <reduction = \"batchmean\"> (x, t)"), "pointwise_loss kl_divergence, batchmean");
  EXPECT_EQ(of("KlDivLoss <log_target = 1> (x, u)"), "pointwise_loss kl_divergence_log, mean");
  EXPECT_EQ(of("CrossEntropyLoss <label_smoothing = 0.25, ignore_index = 1> (x, l, v)"),
            "class_loss cross_entropy, mean");
  EXPECT_EQ(of("CrossEntropyLoss <reduction = \"sum\"> (x, t)"), "class_loss cross_entropy_probabilities, sum");
  EXPECT_EQ(of("NllLoss <reduction = \"none\"> (x, l)"), "class_loss negative_log_likelihood, none");
  EXPECT_EQ(of("MseLoss (x, w)"), "host: its operands are stretched");
}

TEST_F(Executing, EveryDtypeOfLosses) {
  for (const auto& [name, tolerance] :
       {std::pair("double", 1e-12), std::pair("float", 2e-6), std::pair("float16", 2e-3), std::pair("bfloat16", 2e-2)})
    EXPECT_EQ(places(fmt::format("g ({0}[9, 4] x, {0}[9, 4] t) => (y) {{\n d = Sub (x, t)\n s = Mul (d, d)\n"
                                 " y = ReduceMean <keepdims = 0> (s)\n}}",
                                 name),
                     tolerance)
                  .at("y"),
              "pointwise_loss squared, mean")
        << name;
}

TEST_F(Executing, ReductionsOfAllKindsAndWhatHasNone) {
  const std::pair<std::string_view, std::string_view> kinds[] = {
      {"ReduceSum", "reduce sum"},
      {"ReduceMean", "reduce mean"},
      {"ReduceMax", "reduce max"},
      {"ReduceMin", "reduce min"},
      {"ReduceProd", "reduce product"},
      {"ReduceL1", "reduce l1"},
      {"ReduceL2", "reduce l2"},
      {"ReduceSumSquare", "reduce sum of squares"},
      {"ReduceLogSumExp", "reduce log sum exp"},
  };
  for (const auto& [op, kernel] : kinds) {
    EXPECT_EQ(places(fmt::format("g (float[3, 4, 5] x) => (y) {{\n a = Constant <value = int64[2] {{0, -1}}> ()\n"
                                 " y = {} (x, a)\n}}",
                                 op))
                  .at("y"),
              kernel);
    EXPECT_EQ(places(fmt::format("g (float[3, 4, 5] x) => (y) {{ y = {} <keepdims = 0> (x) }}", op), 1e-5).at("y"),
              kernel);
  }
  EXPECT_EQ(places("g (int32[6, 9] x) => (y) { y = ReduceMax (x) }").at("y"), "reduce max");
  EXPECT_EQ(places("g (float[6, 9] x) => (y) { y = ArgMax <axis = -1, keepdims = 0> (x) }").at("y"), "reduce argmax");
  EXPECT_EQ(places("g (float[6, 9] x) => (y) { y = ArgMin <axis = 0> (x) }").at("y"), "reduce argmin");
  EXPECT_EQ(places("g (float[6, 9] x) => (y) { y = Softmax <axis = 0> (x) }").at("y"), "softmax");
  EXPECT_EQ(places("g (float[6, 9] x) => (y) { y = LogSoftmax (x) }").at("y"), "softmax logarithmic");
  EXPECT_EQ(places("g (float[6, 1] x) => (y) { y = Softmax <axis = 1> (x) }", 0).at("y"),
            "host: over one score every probability is 1");
  EXPECT_EQ(places("g (int32[6, 9] x) => (y) { y = ReduceMean (x) }").at("y"), "host: there is no kernel for int32");
  EXPECT_EQ(
      places("g (float[3, 2] x, int64[1] a) => (float[3, 1] y) {\n z = Sub (a, a)\n y = ReduceSum (x, z)\n}").at("y"),
      "host: its axes are not known before the run");
  EXPECT_EQ(
      places("g (float[6, 9] x) => (y) {\n n = NonZero (x)\n f = Cast <to = 1> (n)\n y = ReduceMax (f)\n}").at("y"),
      "host: its extents are not known before the run");
  EXPECT_EQ(places("g (float[2, 3] x) => (y) {\n s = Shape (x)\n y = ReduceProd (s)\n}").at("y"),
            "host: its elements are known before the run");
}

TEST_F(Executing, ValuesStayOnTheDeviceBetweenKernels) {
  const auto where =
      places("g (float[5, 6] x) => (y) {\n p = Softmax (x)\n m = ReduceMax <keepdims = 0> (p)\n y = Neg (m)\n}");
  EXPECT_EQ(where.at("p"), "softmax");
  EXPECT_EQ(where.at("m"), "reduce max");
  EXPECT_EQ(copies_, (ExecutionPlan::Copies{.in = 1, .bytes_in = 120, .out = 1, .bytes_out = 4}));
  EXPECT_EQ(peak_, 256U);
  // Read on both sides: copied back once, and not in again.
  (void)places(
      "g (float[5, 6] x) => (y, z) {\n p = Softmax (x)\n q = Neg (p)\n m = ReduceMax <keepdims = 0> (p)\n"
      " r = Abs (p)\n y = Add (q, r)\n z = Add (m, m)\n}");
  EXPECT_EQ(copies_, (ExecutionPlan::Copies{.in = 1, .bytes_in = 120, .out = 2, .bytes_out = 124}));
}

TEST_F(Executing, BodiesReadWhatKernelsMake) {
  EXPECT_EQ(
      places("g (float[3, 4] x, bool c) => (y) {\n m = ReduceMax (x)\n"
             " y = If (c) <then_branch = a () => (p) { p = Neg (m) }, else_branch = b () => (q) { q = Abs (m) }>\n}")
          .at("m"),
      "reduce max");
}

TEST_F(Executing, ExtentsOfNothing) {
  EXPECT_EQ(places("g (float[0, 5] x, float[0, 5] t) => (float y) {\n d = Sub (x, t)\n s = Mul (d, d)\n"
                   " y = ReduceMean <keepdims = 0> (s)\n}")
                .at("y"),
            "pointwise_loss squared, mean");
  (void)places("g (float[0, 5] x) => (y) { y = Softmax (x) }");
  (void)places("g (float[0, 5] x) => (y) { y = ReduceSum (x) }");
}

TEST_F(Executing, LabelsOutsideOfTheClassesAreAnError) {
  const Result<Model> model = read_onnx_text(
      fmt::format("{}g (float[3, 4] x, int64[3] t) => (y) {{ [loss] y = SoftmaxCrossEntropyLoss (x, t) }}", kHead),
      "m");
  ASSERT_TRUE(model.ok()) << model.error().message;
  Memory memory(kMemory);
  std::vector<HostValue> inputs(2);
  ASSERT_FALSE(draw_inputs(*model, 1, memory, inputs));
  HostTensor labels(DType::kInt64, {3}, memory);
  labels.as_mutable<std::int64_t>()[0] = 1;
  labels.as_mutable<std::int64_t>()[1] = 4;
  labels.as_mutable<std::int64_t>()[2] = -7;
  inputs[1] = HostValue(std::move(labels));
  Executor executor(*model, memory, *device_);
  const auto outputs = executor.run(inputs);
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(
      outputs.error().message,
      "node `loss` (SoftmaxCrossEntropyLoss): 2 labels lie outside of the 4 classes, the first one at position 1");
  EXPECT_EQ(device_->counts().live_blocks, 0U);
}

TEST_F(Executing, LabelsExplainWhatFailsOnTheHost) {
  const Result<Model> model =
      read_onnx_text(fmt::format("{}g (float[3, 4] x, int64[3] t, float[6] u, int64[2] s) => (y, z) {{\n"
                                 " [loss] y = SoftmaxCrossEntropyLoss (x, t)\n [rows] z = Reshape (u, s)\n}}",
                                 kHead),
                     "m");
  ASSERT_TRUE(model.ok()) << model.error().message;
  Memory memory(kMemory);
  std::vector<HostValue> inputs(4);
  ASSERT_FALSE(draw_inputs(*model, 1, memory, inputs));
  const auto tensor = [&](std::initializer_list<std::int64_t> elements) {
    HostTensor made(DType::kInt64, {static_cast<std::int64_t>(elements.size())}, memory);
    std::ranges::copy(elements, made.as_mutable<std::int64_t>().begin());
    return HostValue(std::move(made));
  };
  inputs[3] = tensor({4, 2});
  Executor executor(*model, memory, *device_);
  const auto message = [&] {
    const auto outputs = executor.run(inputs);
    return outputs.ok() ? std::string("it ran") : outputs.error().message;
  };
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    ASSERT_EQ(device_->use_seed(seed), is_emulated());
    inputs[1] = tensor({1, 3, 0});
    const std::string fault = message();
    EXPECT_TRUE(fault.starts_with("node `rows` (Reshape): ")) << fault;
    inputs[1] = tensor({1, 4, -7});
    EXPECT_EQ(
        message(),
        "node `loss` (SoftmaxCrossEntropyLoss): 2 labels lie outside of the 4 classes, the first one at position 1");
    EXPECT_EQ(device_->counts().live_blocks, 0U);
  }
}

TEST_F(Executing, ACallThatDoesNotFitItsOperatorFailsAsOnTheHost) {
  for (const std::string_view call : {"y = Reshape (h, s)", "y = Squeeze (h, one)", "y = Transpose <perm = [0, 0]> (h)",
                                      "y = Expand (h, s)", "y = MatMul (h, h)", "y = Concat <axis = 0> (h, s)"}) {
    const Result<Model> model =
        read_onnx_text(fmt::format("{}g (float[2, 3] x) => (y) {{\n s = Constant <value = int64[2] {{4, 2}}> ()\n"
                                   " one = Constant <value = int64[1] {{1}}> ()\n h = Relu (x)\n {}\n}}",
                                   kHead, call),
                       "m");
    ASSERT_TRUE(model.ok()) << model.error().message;
    Memory memory(kMemory);
    std::vector<HostValue> inputs(1);
    ASSERT_FALSE(draw_inputs(*model, 1, memory, inputs));
    const auto expected = Interpreter(*model, memory).run(inputs);
    ASSERT_FALSE(expected.ok()) << call;
    Executor executor(*model, memory, *device_);
    const auto outputs = executor.run(inputs);
    ASSERT_FALSE(outputs.ok()) << call;
    EXPECT_EQ(outputs.error().message, expected.error().message) << call;
    EXPECT_EQ(device_->counts().live_blocks, 0U);
  }
}

TEST_F(Executing, MemoryOfTheDeviceIsLimited) {
  device_.reset();
  Result<std::unique_ptr<Device>> small = Device::open("emulated:1", 1000);
  ASSERT_TRUE(small.ok()) << small.error().message;
  const Result<Model> model =
      read_onnx_text(fmt::format("{}g (float[30, 20] x) => (y) {{ [sum] y = ReduceSum (x) }}", kHead), "m");
  ASSERT_TRUE(model.ok()) << model.error().message;
  Memory memory(kMemory);
  std::vector<HostValue> inputs(1);
  ASSERT_FALSE(draw_inputs(*model, 1, memory, inputs));
  Executor executor(*model, memory, **small);
  const auto outputs = executor.run(inputs);
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().message,
            "node `sum` (ReduceSum): emulated:1: 2416 bytes of the device are needed and the limit is 1000");
  EXPECT_EQ((*small)->counts().calls, 0U);
}

TEST_F(Executing, ExtentsThatNoMemoryHasAreRefusedBeforeTheDeviceIsAsked) {
  // 2^62 elements, and a product beyond 2^64.
  for (const std::string_view extents : {"int64[1] {4611686018427387904}", "int64[2] {4294967296, 4294967299}"}) {
    const Result<Model> model = read_onnx_text(
        fmt::format("{}g () => (y) {{\n n = Constant <value = {}> ()\n x = ConstantOfShape (n)\n y = ReduceSum (x)\n}}",
                    kHead, extents),
        "m");
    ASSERT_TRUE(model.ok()) << model.error().message;
    Memory memory(kMemory);
    const std::uint64_t before = device_->counts().calls;
    Executor executor(*model, memory, *device_);
    EXPECT_FALSE(executor.run({}).ok());
    EXPECT_EQ(device_->counts().calls, before);
  }
}

TEST(Devices, NamesThatAreNone) {
  for (const std::string_view name :
       {"", "cpu", "gpu:0", "cuda", "cuda:", "cuda:x", "emulated:-1", "emulated:0 ", "../x:0"}) {
    const auto opened = Device::open(name, kMemory);
    ASSERT_FALSE(opened.ok()) << name;
    EXPECT_NE(opened.error().message.find("is not a device"), std::string::npos) << opened.error().message;
  }
  const auto cuda = Device::open("cuda:0", kMemory);
  if (!cuda) {
    EXPECT_TRUE(cuda.error().message.starts_with("cuda:0")) << cuda.error().message;
  }
}

TEST_F(Executing, ThereAreTwoDevicesAndABlockBelongsToOne) {
  if (!is_emulated()) GTEST_SKIP();
  EXPECT_FALSE(Device::open("emulated:2", kMemory).ok());
  Result<std::unique_ptr<Device>> other = Device::open("emulated:1", kMemory);
  ASSERT_TRUE(other.ok());
  const DeviceBlock block = (*other)->allocate(64);
  EXPECT_THROW((void)device_->place(block, 0, 64), DeviceFault);
  const DeviceValue value = (*other)->place(block, 0, 64);
  const float data[16] = {1};
  EXPECT_THROW(device_->copy_in(value, data, 64), DeviceFault);
  EXPECT_THROW((*other)->copy_in(value, data, 68), DeviceFault);  // more than it has
  (*other)->copy_in(value, data, 64);
  (*other)->synchronize();
  float read[16];
  (*other)->copy_out(read, value, 64);
  (*other)->synchronize();
  EXPECT_EQ(read[0], 1);
}

TEST_F(Executing, TheEmulatorFindsWorkUnderWayOnAnyPartOfMemoryThatIsUsedAgain) {
  if (!is_emulated()) GTEST_SKIP();
  const float data[32] = {};
  struct Between {
    std::uint64_t first = 0, bytes = 0;
    bool has_work = false;
  };
  const std::vector<Between> cases[] = {{},
                                        {{0, 128}},
                                        {{0, 64}, {0, 64}},
                                        {{48, 16}, {64, 48}},
                                        {{0, 64, true}},
                                        {{0, 16, true}, {112, 16, true}},
                                        {{48, 64, true}},
                                        {{0, 128, true}, {64, 16}}};
  const auto run = [&](const std::vector<Between>& between, std::uint64_t seed, bool is_ordered) {
    Result<std::unique_ptr<Device>> opened = Device::open("emulated:1", kMemory);
    if (!opened) throw DeviceFault{{opened.error().message}, {}, false};
    Device& device = **opened;
    device.use_seed(seed);
    device.make_events(1);
    const DeviceBlock block = device.allocate(128);
    float read[32];
    {
      const DeviceValue first = device.place(block, 0, 128);
      device.copy_in(first, data, 128);
      device.synchronize();
      device.copy_out(read, first, 128);
      device.record(kTensorlintCopiesOut, 0);
    }
    if (is_ordered) device.wait(kTensorlintCopiesIn, 0);
    for (const Between& each : between) {
      const DeviceValue value = device.place(block, each.first, each.bytes);
      if (each.has_work) device.copy_in(value, data, each.bytes);
    }
    const DeviceValue last = device.place(block, 64, 32);
    device.copy_in(last, data, 32);
    device.synchronize();
  };
  for (const std::vector<Between>& between : cases) {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 16; ++seed) {
      EXPECT_NO_THROW(run(between, seed, true));
      try {
        run(between, seed, false);
      } catch (const DeviceFault& fault) {
        EXPECT_NE(fault.message.find("an event is missing"), std::string::npos) << fault.message;
        ++found;
      }
    }
    EXPECT_GT(found, 0) << between.size();
  }
}

TEST_F(Executing, TheHostCannotReachDeviceMemory) {
  if (!is_emulated()) GTEST_SKIP();
  const DeviceBlock block = device_->allocate(64);
  const DeviceValue value = device_->place(block, 0, 64);
  EXPECT_DEATH(static_cast<volatile char*>(value.data())[0] = 1, "");
}

}  // namespace
}  // namespace tensorlint::runtime
