// Attention on the emulated device: the operator and what exporters write out give what the interpreter gives, in one
// kernel where no inner value has another reader.
#include "tests/runtime/executing.h"

namespace tensorlint::runtime {
namespace {

constexpr std::string_view kOpset23 = "<ir_version: 11, opset_import: [\"\": 23]>\n";

class ExecutingAttention : public Executing {
 protected:
  /// Of [2, 3, 5, 8] queries, 7 keys and values of 6 elements, and a mask.
  std::map<std::string, std::string> written(std::string_view body, std::string_view mask = "float[5, 7] m",
                                             std::string_view results = "y", double tolerance = 1e-5,
                                             std::string_view dtype = "float") {
    return places(
        fmt::format("g ({3}[2, 3, 5, 8] q, {3}[2, 3, 7, 8] k, {3}[2, 3, 7, 6] v{0}{1}) => ({2})\n"
                    "<float c = {{0.25}}, float zero = {{0}}, float low = {{-10000}}, float16 half = {{0.5}}> {{\n"
                    " t = Transpose <perm = [0, 1, 3, 2]> (k)\n{4}\n}}",
                    mask.empty() ? "" : ", ", mask, results, dtype, body),
        tolerance);
  }
  std::string operator_place(std::string_view inputs, std::string_view call, std::string_view head = kOpset23,
                             double tolerance = 1e-5) {
    return places(fmt::format("g ({}) => (y) {{ y = Attention {} }}", inputs, call), tolerance, head).at("y");
  }
};

TEST_F(ExecutingAttention, ProductSoftmaxProduct) {
  const auto where = written(" s = MatMul (q, t)\n d = Mul (s, c)\n p = Softmax (d)\n [last] y = MatMul (p, v)", "");
  EXPECT_EQ(where.at("y"), "attention");
  for (const char* const inner : {"t", "s", "d", "p"}) EXPECT_EQ(where.at(inner), "part of `last`") << inner;
  EXPECT_EQ(copies_.in, 3U);
  EXPECT_EQ(copies_.out, 1U);
  EXPECT_EQ(written(" s = MatMul (q, t)\n p = Softmax (s)\n y = MatMul (p, v)", "").at("y"), "attention");
  // Factors are scaled apart, and the result's heads are put beside each other.
  const auto turned = written(
      " a = Mul (c, q)\n b = Div (t, c)\n s = MatMul (a, b)\n p = Softmax <axis = 3> (s)\n o = MatMul (p, v)\n"
      " [last] y = Transpose <perm = [0, 2, 1, 3]> (o)",
      "");
  EXPECT_EQ(turned.at("y"), "attention");
  EXPECT_EQ(turned.at("o"), "part of `last`");
  EXPECT_EQ(turned.at("a"), "part of `last`");
}

// Heads of 128 take 87040 bytes of a block, heads of 256 156672: a device of sm_86 has 101376.
TEST(AttentionPlan, HeadsThatADeviceHasNoSharedMemoryFor) {
  const auto place_of = [](std::string_view graph, std::uint64_t shared_bytes) {
    const Result<Model> model = read_onnx_text(fmt::format("{}{}", kOpset23, graph), "m.onnxtxt");
    EXPECT_TRUE(model.ok()) << model.error().message;
    const std::string devices[] = {"cuda:0"};
    const auto plan = plan_execution(*model, std::vector<HostValue>(3), devices, {.shared_bytes = shared_bytes});
    EXPECT_TRUE(plan.ok()) << plan.error().message;
    std::string places;
    for (const NodePlace& place : plan->places)
      places += (place.kind == NodePlace::Kind::kKernel ? "" : "host: ") + place.reason + "; ";
    return places;
  };
  for (const std::string_view width : {"128", "256"}) {
    const std::string inputs =
        fmt::format("g (float[2, 4, 5, {0}] q, float[2, 4, 7, {0}] k, float[2, 4, 7, {0}] v) => (y) ", width);
    const std::string call = inputs + "{ y = Attention (q, k, v) }";
    EXPECT_EQ(place_of(call, std::uint64_t{227} << 10), "attention; ") << width;
    EXPECT_EQ(place_of(call, 101376),
              width == "128" ? "attention; "
                             : "host: its kernel takes 156672 bytes of shared memory, and the device has 101376; ");
    // Written out, its parts have kernels of their own.
    const std::string written =
        inputs +
        "{ t = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul (q, t) p = Softmax (s) [last] y = MatMul (p, v) }";
    EXPECT_EQ(place_of(written, 101376).ends_with("attention; "), width == "128") << place_of(written, 101376);
    EXPECT_EQ(place_of(written, 101376).find("host"), std::string::npos);
  }
}

TEST_F(ExecutingAttention, Masks) {
  const std::string_view ends = "\n p = Softmax (d)\n y = MatMul (p, v)";
  const auto of = [&](std::string_view body, std::string_view mask) {
    return written(fmt::format(" s = MatMul (q, t)\n{}{}", body, ends), mask).at("y");
  };
  EXPECT_EQ(of(" d = Add (s, m)", "float[5, 7] m"), "attention, mask added");
  EXPECT_EQ(of(" d = Add (m, s)", "float[2, 1, 5, 7] m"), "attention, mask added");
  EXPECT_EQ(of(" x = Div (s, c)\n d = Add (m, x)", "float[2, 3, 5, 7] m"), "attention, mask added");
  EXPECT_EQ(of(" x = Mul (c, s)\n d = Add (x, m)", "float[2, 1, 1, 7] m"), "attention, mask added");
  EXPECT_EQ(of(" d = Add (s, m)", "float m"), "attention, mask added");
  EXPECT_EQ(of(" d = Where (m, s, low)", "bool[5, 7] m"), "attention, mask selects");
  EXPECT_EQ(of(" x = Mul (s, c)\n d = Where (m, low, x)", "bool[2, 1, 5, 7] m"), "attention, mask selects");
}

TEST_F(ExecutingAttention, RowsWithoutKeys) {
  // Masked with -infinity: by the formula 0 / 0, which some exporters select away.
  const std::string_view head = " i = Constant <value_float = -inf> ()\n s = MatMul (q, t)\n d = Where (m, s, i)\n";
  EXPECT_EQ(written(fmt::format("{} p = Softmax (d)\n y = MatMul (p, v)", head), "bool[5, 1] m").at("y"),
            "attention, mask selects");
  EXPECT_EQ(
      written(fmt::format("{} p = Softmax (d)\n n = IsNaN (p)\n w = Where (n, zero, p)\n y = MatMul (w, v)", head),
              "bool[5, 1] m")
          .at("y"),
      "attention, mask selects");
}

TEST_F(ExecutingAttention, DtypesAndCasts) {
  for (const auto& [dtype, tolerance] : {std::pair("float16", 5e-3), std::pair("bfloat16", 5e-2)}) {
    EXPECT_EQ(written(" s = MatMul (q, t)\n p = Softmax (s)\n y = MatMul (p, v)", "", "y", tolerance, dtype).at("y"),
              "attention");
  }
  EXPECT_EQ(written(" s = MatMul (q, t)\n d = Mul (s, half)\n f = Cast <to = 1> (d)\n p = Softmax (f)\n"
                    " w = Cast <to = 10> (p)\n y = MatMul (w, v)",
                    "", "y", 5e-3, "float16")
                .at("y"),
            "attention");
  EXPECT_EQ(written(" s = MatMul (q, t)\n p = Softmax (s)\n y = MatMul (p, v)", "", "y", 1e-12, "double").at("y"),
            "matrix_product");
}

TEST_F(ExecutingAttention, WhatStaysApart) {
  const auto of = [&](std::string_view body, std::string_view mask = "float[5, 7] m", std::string_view results = "y") {
    return written(body, mask, results).at("y");
  };
  // Weights that somebody reads, scores that somebody reads, another axis, a mask that is scaled, two masks.
  EXPECT_EQ(of(" s = MatMul (q, t)\n p = Softmax (s)\n y = MatMul (p, v)", "", "y, p"), "matrix_product");
  EXPECT_EQ(of(" s = MatMul (q, t)\n p = Softmax (s)\n o = MatMul (p, v)\n r = ReduceSum <keepdims = 0> (s)\n"
               " y = Add (o, r)",
               "")
                .substr(0, 11),
            "elementwise");
  EXPECT_EQ(of(" s = MatMul (q, t)\n p = Softmax <axis = 2> (s)\n y = MatMul (p, v)", ""), "matrix_product");
  EXPECT_EQ(of(" s = MatMul (q, t)\n a = Add (s, m)\n d = Mul (a, c)\n p = Softmax (d)\n y = MatMul (p, v)"),
            "matrix_product");
  EXPECT_EQ(of(" s = MatMul (q, t)\n a = Add (s, m)\n d = Add (a, m)\n p = Softmax (d)\n y = MatMul (p, v)"),
            "matrix_product");
  EXPECT_EQ(
      places("g (float[7, 7] x) => (y) {\n s = MatMul (x, x)\n p = Softmax (s)\n y = MatMul (p, p)\n}", 1e-5).at("y"),
      "matrix_product");
  // A mask with more axes than the scores.
  EXPECT_EQ(places("g (float[5, 8] q, float[8, 7] k, float[7, 6] v, float[2, 5, 7] m) => (y) {\n s = MatMul (q, k)\n"
                   " d = Add (s, m)\n p = Softmax (d)\n y = MatMul (p, v)\n}",
                   1e-5)
                .at("y"),
            "matrix_product");
  // Heads that are too long.
  EXPECT_EQ(
      places("g (float[2, 300] q, float[300, 3] k, float[3, 4] v) => (y) {\n s = MatMul (q, k)\n p = Softmax (s)\n"
             " y = MatMul (p, v)\n}",
             1e-5)
          .at("y"),
      "matrix_product");
}

TEST_F(ExecutingAttention, TransposesThatOthersReadAreReadTransposed) {
  const auto where = written(" s = MatMul (q, t)\n p = Softmax (s)\n y = MatMul (p, v)\n z = Relu (t)", "", "y, z");
  EXPECT_EQ(where.at("y"), "attention");
  EXPECT_EQ(where.at("t"), "move transpose");
}

TEST_F(ExecutingAttention, MatricesWithoutAStackAndStretchedOnes) {
  EXPECT_EQ(places("g (float[70, 8] q, float[8, 67] k, float[67, 6] v) => (y) {\n s = MatMul (q, k)\n p = Softmax (s)\n"
                   " y = MatMul (p, v)\n}",
                   1e-5)
                .at("y"),
            "attention");
  EXPECT_EQ(places("g (float[2, 4, 5, 8] q, float[4, 8, 7] k, float[2, 1, 7, 6] v) => (y) {\n s = MatMul (q, k)\n"
                   " p = Softmax (s)\n y = MatMul (p, v)\n}",
                   1e-5)
                .at("y"),
            "attention");
}

TEST_F(ExecutingAttention, Operator) {
  const std::string_view four = "float[2, 4, 5, 8] q, float[2, 4, 7, 8] k, float[2, 4, 7, 6] v";
  EXPECT_EQ(operator_place(four, "(q, k, v)"), "attention");
  EXPECT_EQ(operator_place(four, "<scale = 0.5, is_causal = 1> (q, k, v)"), "attention, causal");
  EXPECT_EQ(operator_place("float[2, 4, 5, 8] q, float[2, 2, 7, 8] k, float[2, 2, 7, 6] v", "(q, k, v)"), "attention");
  EXPECT_EQ(operator_place("float[2, 5, 32] q, float[2, 7, 16] k, float[2, 7, 12] v",
                           "<q_num_heads = 4, kv_num_heads = 2> (q, k, v)"),
            "attention");
  for (const std::string_view mask : {"float[5, 7] m", "float[2, 4, 5, 7] m", "float[4, 1, 7] m"})
    EXPECT_EQ(operator_place(fmt::format("{}, {}", four, mask), "(q, k, v, m)"), "attention, mask added") << mask;
  EXPECT_EQ(operator_place(fmt::format("{}, bool[2, 1, 5, 7] m", four), "<is_causal = 1> (q, k, v, m)"),
            "attention, causal, mask selects");
  EXPECT_EQ(operator_place("float16[1, 2, 70, 16] q, float16[1, 2, 66, 16] k, float16[1, 2, 66, 16] v", "(q, k, v)",
                           kOpset23, 5e-3),
            "attention");
}

TEST_F(ExecutingAttention, OperatorsThatStay) {
  const std::string_view four = "float[2, 4, 5, 8] q, float[2, 4, 7, 8] k, float[2, 4, 7, 6] v";
  EXPECT_EQ(operator_place(four, "<softcap = 2.0> (q, k, v)"), "host: there is no kernel for capped scores");
  EXPECT_EQ(operator_place(fmt::format("{}, float[2, 4, 3, 8] a, float[2, 4, 3, 6] b", four), "(q, k, v, , a, b)"),
            "host: there is no kernel for caches of keys and values");
  EXPECT_EQ(operator_place("double[2, 4, 5, 8] q, double[2, 4, 7, 8] k, double[2, 4, 7, 6] v", "(q, k, v)"),
            "host: there is no kernel for float64");
  EXPECT_EQ(operator_place("float[1, 1, 2, 300] q, float[1, 1, 2, 300] k, float[1, 1, 2, 4] v", "(q, k, v)"),
            "host: there is no kernel for heads of more than 256 elements");
  EXPECT_EQ(
      places(fmt::format("g ({}) => (y, p) {{ y, a, b, p = Attention (q, k, v) }}", four), 1e-5, kOpset23).at("y"),
      "host: there is no kernel for its further results");
}

}  // namespace
}  // namespace tensorlint::runtime
