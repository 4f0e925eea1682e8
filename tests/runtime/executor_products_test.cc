// Products, windows and normalizations on the emulated device: each operator through a small model gives what the
// interpreter gives, within the bounds of its kernel, and what has no kernel says why.
#include "tests/runtime/executing.h"

namespace tensorlint::runtime {
namespace {

class ExecutingProducts : public Executing {};

TEST_F(ExecutingProducts, MatMulOfAllRanks) {
  const auto of = [&](std::string_view a, std::string_view b) {
    return places(fmt::format("g (float[{}] a, float[{}] b) => (y) {{ y = MatMul (a, b) }}", a, b), 1e-5).at("y");
  };
  EXPECT_EQ(of("5, 7", "7, 3"), "matrix_product");
  EXPECT_EQ(of("7", "7, 3"), "matrix_product");
  EXPECT_EQ(of("5, 7", "7"), "matrix_product");
  EXPECT_EQ(of("7", "7"), "matrix_product");
  EXPECT_EQ(of("2, 5, 7", "7, 3"), "matrix_product");
  EXPECT_EQ(of("5, 7", "2, 7, 3"), "matrix_product");
  EXPECT_EQ(of("2, 1, 5, 7", "3, 7, 4"), "matrix_product");
  EXPECT_EQ(of("7", "2, 3, 7, 4"), "matrix_product");
  EXPECT_EQ(of("2, 3, 4, 7", "7"), "matrix_product");
  EXPECT_EQ(of("66, 20", "20, 70"), "matrix_product");
  EXPECT_EQ(of("0, 7", "7, 3"), "matrix_product");
  EXPECT_EQ(of("5, 0", "0, 3"), "matrix_product");
  EXPECT_EQ(of("2, 1, 2, 1, 2, 1, 2, 2, 2", "2, 2"), "matrix_product");
  EXPECT_EQ(of("2, 2, 2, 2, 2, 2, 2, 2, 2", "2, 2"), "host: its matrices lie along more than 6 axes");
}

TEST_F(ExecutingProducts, GemmTurnsScalesAndAdds) {
  const auto of = [&](std::string_view attributes, std::string_view a, std::string_view b, std::string_view c) {
    return places(fmt::format("g (float[{}] a, float[{}] b, float[{}] c) => (y) {{ y = Gemm <{}> (a, b, c) }}", a, b, c,
                              attributes),
                  1e-5)
        .at("y");
  };
  EXPECT_EQ(of("alpha = 0.5, beta = 2.0", "5, 7", "7, 3", "5, 3"), "matrix_product, addend");
  EXPECT_EQ(of("transA = 1", "7, 5", "7, 3", "3"), "matrix_product, addend");
  EXPECT_EQ(of("transB = 1", "5, 7", "3, 7", "5, 1"), "matrix_product, addend");
  EXPECT_EQ(of("transA = 1, transB = 1, beta = 0.0", "7, 5", "3, 7", "1"), "matrix_product, addend");
  EXPECT_EQ(of("alpha = -1.5", "0, 7", "7, 3", "1, 3"), "matrix_product, addend");
  EXPECT_EQ(places("g (float[5, 7] a, float[7, 3] b) => (y) { y = Gemm (a, b) }").at("y"), "matrix_product");
  EXPECT_EQ(copies_, (ExecutionPlan::Copies{.in = 2, .bytes_in = 4 * (35 + 21), .out = 1, .bytes_out = 60}));
}

TEST_F(ExecutingProducts, EveryDtypeOfProducts) {
  for (const auto& [name, tolerance] :
       {std::pair("double", 1e-12), std::pair("float", 1e-5), std::pair("float16", 3e-3), std::pair("bfloat16", 2e-2)})
    EXPECT_EQ(
        places(fmt::format("g ({0}[9, 14] a, {0}[14, 6] b) => (y) {{ y = MatMul (a, b) }}", name), tolerance).at("y"),
        "matrix_product")
        << name;
  EXPECT_EQ(places("g (int32[2, 3] a, int32[3, 2] b) => (y) { y = MatMul (a, b) }").at("y"),
            "host: there is no kernel for int32");
  EXPECT_EQ(
      places("g (float[4, 2] x) => (y) {\n n = NonZero (x)\n f = Cast <to = 1> (n)\n y = MatMul (x, f)\n}").at("y"),
      "host: its extents are not known before the run");
}

TEST_F(ExecutingProducts, ProductsPassValuesOnOnTheDevice) {
  const auto where = places(
      "g (float[6, 8] x, float[8, 5] w, float[5] b) => (y) {\n"
      " h = Gemm (x, w, b)\n p = Softmax (h)\n t = MatMul (p, b)\n y = ReduceSum <keepdims = 0> (t)\n}",
      1e-5);
  EXPECT_EQ(where.at("h"), "matrix_product, addend");
  EXPECT_EQ(where.at("t"), "matrix_product");
  EXPECT_EQ(copies_, (ExecutionPlan::Copies{.in = 3, .bytes_in = 4 * (48 + 40 + 5), .out = 1, .bytes_out = 4}));
  // The same value twice.
  EXPECT_EQ(places("g (float[6, 6] x) => (y) { y = MatMul (x, x) }", 1e-5).at("y"), "matrix_product");
  EXPECT_EQ(copies_.in, 1U);
}

}  // namespace
}  // namespace tensorlint::runtime
