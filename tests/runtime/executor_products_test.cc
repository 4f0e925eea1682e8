// Products, windows and normalizations on the emulated device: each operator through a small model gives what the
// interpreter gives, within the bounds of its kernel, and what has no kernel says why.
#include "tests/runtime/executing.h"

namespace tensorlint::runtime {
namespace {

class ExecutingProducts : public Executing {};

TEST_F(ExecutingProducts, MatMulOfAllRanks) {
  const auto of = [&](std::string_view a, std::string_view b) { return place_of_call("MatMul", a, b); };
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

TEST_F(ExecutingProducts, EinsumOfTwoOperands) {
  const auto of = [&](std::string_view equation, std::string_view a, std::string_view b) {
    return place_of_einsum(equation, a, b);
  };
  const std::string_view kernel = "matrix_product";
  EXPECT_EQ(of("ij,jk->ik", "5, 7", "7, 3"), kernel);
  EXPECT_EQ(of("ij,jk", "5, 7", "7, 3"), kernel);
  EXPECT_EQ(of("ij,jk->ki", "5, 7", "7, 3"), kernel);
  EXPECT_EQ(of("ij,kj->ik", "5, 7", "3, 7"), kernel);
  EXPECT_EQ(of("mf,bft->bmt", "5, 7", "2, 7, 3"), kernel);
  EXPECT_EQ(of("atd,bsd->abts", "2, 3, 7", "4, 5, 7"), kernel);
  EXPECT_EQ(of("atd,bsd->stba", "2, 3, 7", "4, 5, 7"), kernel);
  EXPECT_EQ(of("bqhd,bkhd->bhqk", "2, 3, 4, 5", "2, 6, 4, 5"), kernel);
  EXPECT_EQ(of("bhqk,bkhd->bqhd", "2, 4, 3, 6", "2, 6, 4, 5"), kernel);
  EXPECT_EQ(of("bd,bd->b", "6, 5", "6, 5"), kernel);
  EXPECT_EQ(of("bd,bd->bd", "6, 5", "6, 5"), kernel);
  EXPECT_EQ(of("i,j->ij", "6", "5"), kernel);
  EXPECT_EQ(of("i,j->ji", "6", "5"), kernel);
  EXPECT_EQ(of("i,i->", "6", "6"), kernel);
  EXPECT_EQ(of("bij,bij->b", "3, 4, 5", "3, 4, 5"), kernel);
  EXPECT_EQ(of("...ij,...jk->...ik", "2, 3, 4, 5", "3, 5, 6"), kernel);
  EXPECT_EQ(of("...ij,jk->...ik", "2, 3, 4, 5", "5, 6"), kernel);
  // Extents of 1 stretch, also those that are summed over.
  EXPECT_EQ(of("bij,bjk->bik", "1, 4, 5", "3, 5, 6"), kernel);
  EXPECT_EQ(of("ij,jk->ik", "4, 1", "5, 6"), kernel);
  EXPECT_EQ(of("ij,jk->ik", "4, 0", "0, 6"), kernel);
  EXPECT_EQ(of("ijk,kl->jl", "1, 4, 5", "5, 6"), kernel);
  EXPECT_EQ(of("ijk,kl->jl", "2, 4, 5", "5, 6"), "host: there is no kernel for sums of one operand");
  EXPECT_EQ(of("kl,ijk->jl", "5, 6", "2, 4, 5"), "host: there is no kernel for sums of one operand");
  EXPECT_EQ(of("bij,bji->b", "3, 4, 5", "3, 5, 4"),
            "host: there is no kernel for sums over axes that are not adjacent");
  EXPECT_EQ(of("ii,ij->ij", "4, 4", "4, 3"), "host: there is no kernel for diagonals");
  EXPECT_EQ(places("g (float[4, 3] a) => (y) { y = Einsum <equation = \"ij->ji\"> (a) }").at("y"),
            "host: there is no kernel for 1 operands");
  EXPECT_EQ(place_of_call("Einsum <equation = \"ij,jk->ik\">", "4, 3", "3, 2", "int64"),
            "host: there is no kernel for int64");
}

TEST_F(ExecutingProducts, EveryDtypeOfProducts) {
  for (const auto& [name, tolerance] :
       {std::pair("double", 1e-12), std::pair("float", 1e-5), std::pair("float16", 3e-3), std::pair("bfloat16", 2e-2)})
    EXPECT_EQ(place_of_call("MatMul", "9, 14", "14, 6", name, tolerance), "matrix_product") << name;
  EXPECT_EQ(place_of_call("MatMul", "2, 3", "3, 2", "int32"), "host: there is no kernel for int32");
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

TEST_F(ExecutingProducts, Convolutions) {
  const auto of = [&](std::string_view x, std::string_view w, std::string_view attributes = "") {
    return place_of_call(fmt::format("Conv <{}>", attributes), x, w);
  };
  EXPECT_EQ(of("2, 3, 7, 8", "4, 3, 3, 3"), "convolution");
  EXPECT_EQ(of("2, 3, 17", "5, 3, 4", "strides = [2], pads = [1, 2], dilations = [3]"), "convolution");
  EXPECT_EQ(of("1, 4, 9, 6", "8, 2, 3, 2", "group = 2, strides = [2, 1], pads = [1, 0, 2, 1], dilations = [1, 2]"),
            "convolution");
  EXPECT_EQ(of("2, 5, 6, 6", "5, 1, 3, 3", "group = 5, pads = [1, 1, 1, 1]"), "convolution");  // depthwise
  EXPECT_EQ(of("2, 6, 5, 4", "8, 6, 1, 1"), "convolution");
  for (const std::string_view padding : {"SAME_UPPER", "SAME_LOWER", "VALID"})
    EXPECT_EQ(of("1, 2, 9, 8", "4, 2, 4, 3", fmt::format("auto_pad = \"{}\", strides = [2, 3]", padding)),
              "convolution");
  EXPECT_EQ(of("0, 3, 7, 8", "4, 3, 3, 3"), "convolution");
  EXPECT_EQ(of("1, 2, 3, 4, 5", "4, 2, 2, 2, 2"), "host: there is no kernel for 3 spatial axes");
  EXPECT_EQ(of("1, 2, 5", "4, 2, 3", "strides = [536870912]"), "host: its windows are too large for a kernel");
  EXPECT_EQ(
      places("g (float[2, 3, 6, 6] x, float[4, 3, 3, 3] w, float[4] b) => (y) { y = Conv (x, w, b) }", 1e-5).at("y"),
      "convolution, bias");
  for (const auto& [name, tolerance] : {std::pair("double", 1e-12), std::pair("float16", 5e-3)})
    EXPECT_EQ(place_of_call("Conv", "1, 3, 6, 6", "4, 3, 3, 3", name, tolerance), "convolution");
  EXPECT_EQ(copies_.in, 2U);
}

TEST_F(ExecutingProducts, Pools) {
  const auto of = [&](std::string_view op, std::string_view x, std::string_view attributes) {
    return places(fmt::format("g (float[{}] x) => (y) {{ y = {} <{}> (x) }}", x, op, attributes)).at("y");
  };
  EXPECT_EQ(of("MaxPool", "2, 3, 7, 8", "kernel_shape = [3, 2], strides = [2, 2]"), "pooling max");
  EXPECT_EQ(of("MaxPool", "2, 3, 17", "kernel_shape = [4], pads = [1, 2], dilations = [2]"), "pooling max");
  EXPECT_EQ(of("MaxPool", "1, 2, 7, 6", "kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1"), "pooling max");
  EXPECT_EQ(of("AveragePool", "2, 3, 7, 8", "kernel_shape = [3, 2], pads = [1, 0, 1, 1]"), "pooling average");
  EXPECT_EQ(of("AveragePool", "2, 3, 7, 8", "kernel_shape = [3, 2], pads = [1, 0, 1, 1], count_include_pad = 1"),
            "pooling average");
  EXPECT_EQ(of("AveragePool", "1, 2, 7, 6",
               "kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 0, 0], ceil_mode = 1, count_include_pad = 1"),
            "pooling average");
  EXPECT_EQ(of("AveragePool", "1, 2, 9", "kernel_shape = [4], strides = [2], auto_pad = \"SAME_LOWER\""),
            "pooling average");
  EXPECT_EQ(of("MaxPool", "1, 2, 4, 4, 4", "kernel_shape = [2, 2, 2]"), "host: there is no kernel for 3 spatial axes");
  EXPECT_EQ(of("GlobalAveragePool", "2, 3, 7, 8", ""), "reduce mean");
  EXPECT_EQ(of("GlobalMaxPool", "2, 3, 4, 2, 8", ""), "reduce max");
  EXPECT_EQ(of("GlobalAveragePool", "2, 0, 4", ""), "host: its operand has no elements");
  EXPECT_EQ(places("g (int8[1, 2, 6] x) => (y) { y = MaxPool <kernel_shape = [2]> (x) }").at("y"),
            "host: there is no kernel for int8");
  EXPECT_EQ(places("g (float[1, 2, 6] x) => (y, i) { y, i = MaxPool <kernel_shape = [2]> (x) }").at("y"),
            "host: there is no kernel for its second result");
}

TEST_F(ExecutingProducts, AClassifierStaysOnTheDevice) {
  const auto where = places(
      "g (float[2, 3, 8, 8] x, float[4, 3, 3, 3] w, float[4] b, float[4, 5] v) => (y) {\n"
      " c = Conv <pads = [1, 1, 1, 1]> (x, w, b)\n p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (c)\n"
      " q = GlobalAveragePool (p)\n f = Flatten (q)\n s = Gemm (f, v)\n t = ArgMax <axis = 1, keepdims = 0> (s)\n"
      " y = SoftmaxCrossEntropyLoss (s, t)\n}",
      1e-5);
  EXPECT_EQ(where.at("c"), "convolution, bias");
  EXPECT_EQ(where.at("p"), "pooling max");
  EXPECT_EQ(where.at("q"), "reduce mean");
  EXPECT_EQ(where.at("s"), "matrix_product");
  EXPECT_EQ(where.at("y"), "class_loss cross_entropy, mean");
}

TEST_F(ExecutingProducts, NormalizationsOfTheLastAxes) {
  const auto of = [&](std::string_view x, std::string_view w, std::string_view attributes = "") {
    return places(fmt::format(
                      "g (float[{}] x, float[{}] w, float[{}] b) => (y) {{ y = LayerNormalization <{}> (x, w, b) }}", x,
                      w, w, attributes),
                  1e-5)
        .at("y");
  };
  EXPECT_EQ(of("3, 5, 40", "40"), "normalization");
  EXPECT_EQ(of("3, 5, 40", "5, 40", "axis = 1, epsilon = 0.001"), "normalization");
  EXPECT_EQ(of("2, 700", "1"), "normalization");
  EXPECT_EQ(of("2, 3, 4, 5", "4, 1", "axis = 2"), "host: there is no kernel for a scale or bias that is stretched");
  EXPECT_EQ(of("0, 5", "5"), "host: it normalizes nothing");
  EXPECT_EQ(places("g (float[3, 9] x, float[9] w) => (y) { y = LayerNormalization (x, w) }", 1e-5).at("y"),
            "normalization");
  EXPECT_EQ(places("g (float[3, 9] x, float[9] w) => (y, m) { y, m = LayerNormalization (x, w) }", 1e-5).at("y"),
            "host: there is no kernel for its second result");
  EXPECT_EQ(places("g (float[3, 9] x, float[9] w) => (y) { y = RMSNormalization (x, w) }", 1e-5,
                   "<ir_version: 10, opset_import: [\"\": 23]>\n")
                .at("y"),
            "normalization by root mean square");
  for (const auto& [name, tolerance] :
       {std::pair("double", 1e-12), std::pair("float16", 5e-3), std::pair("bfloat16", 3e-2)})
    EXPECT_EQ(
        places(fmt::format("g ({0}[4, 33] x, {0}[33] w) => (y) {{ y = LayerNormalization (x, w) }}", name), tolerance)
            .at("y"),
        "normalization");
}

TEST_F(ExecutingProducts, NormalizationsOfChannels) {
  const std::string_view head18 = "<ir_version: 10, opset_import: [\"\": 18]>\n";
  EXPECT_EQ(
      places("g (float[2, 3, 4, 5] x, float[3] s, float[3] b) => (y) { y = InstanceNormalization (x, s, b) }", 1e-5)
          .at("y"),
      "normalization");
  EXPECT_EQ(places("g (float[2, 6, 4, 5] x, float[6] s, float[6] b) => (y) {"
                   " y = GroupNormalization <num_groups = 2> (x, s, b) }",
                   1e-5)
                .at("y"),
            "normalization");
  EXPECT_EQ(places("g (float[2, 6, 7] x, float[2] s, float[2] b) => (y) {"
                   " y = GroupNormalization <num_groups = 2> (x, s, b) }",
                   1e-5, head18)
                .at("y"),
            "normalization");
  const auto batch = [&](std::string_view x, std::string_view attributes) {
    return places(
               fmt::format("g (float[{}] x, float[3] s, float[3] b, float[3] m, float[3] u) => (y) {{\n v = Exp (u)\n"
                           " y = BatchNormalization <{}> (x, s, b, m, v)\n}}",
                           x, attributes),
               1e-5)
        .at("y");
  };
  EXPECT_EQ(batch("2, 3, 4, 5", ""), "normalization by given statistics");
  EXPECT_EQ(batch("7, 3", "epsilon = 0.01"), "normalization by given statistics");
  EXPECT_EQ(places("g (float[2, 3, 4] x, float[3] s, float[3] m) => (y) {\n"
                   " y, n, v = BatchNormalization <training_mode = 1> (x, s, s, m, s)\n}",
                   1e-5)
                .at("y"),
            "host: there is no kernel for statistics of the batch");
}

}  // namespace
}  // namespace tensorlint::runtime
