#include "tests/ops/op_test.h"

namespace tensorlint::ops {
namespace {

using Labels = std::vector<std::string>;

Op ms(std::string_view name) { return Op(name, 1, "com.microsoft"); }

TEST(Contrib, Shapes) {
  EXPECT_EQ(ms("FusedMatMul")
                .in("float32[B, 3, 4]")
                .in("float32[5, 4]")
                .with("transB", 1)
                .with("alpha", 2.0)
                .infer()
                .result(),
            "float32[B, 3, 5]");
  EXPECT_EQ(ms("FusedGemm")
                .in("float32[N, 4]")
                .in("float32[4, 5]")
                .in("float32[5]")
                .with("activation", "Relu")
                .infer()
                .result(),
            "float32[N, 5]");
  EXPECT_EQ(ms("MatMulNBits")
                .in("float16[N, T, 64]")
                .in("uint8[32, 2, 16]")
                .in("float16[32, 2]")
                .with("K", 64)
                .with("N", 32)
                .with("block_size", 32)
                .with("bits", 4)
                .infer()
                .result(),
            "float16[N, T, 32]");
  EXPECT_EQ(
      ms("FusedConv").in("float32[N, 3, 8, 8]").in("float32[4, 3, 3, 3]").with("activation", "Relu").infer().result(),
      "float32[N, 4, 6, 6]");
  for (const std::string_view name : {"NhwcConv", "NhwcFusedConv"})
    EXPECT_EQ(ms(name).in("float32[N, 8, 9, 3]").in("float32[4, 3, 3, 3]").infer().result(), "float32[N, 6, 7, 4]");
  EXPECT_EQ(ms("QLinearGlobalAveragePool")
                .in("uint8[N, 8, 9, 3]")
                .in("float32[]")
                .in("uint8[]")
                .in("float32[]")
                .in("uint8[]")
                .with("channels_last", 1)
                .infer()
                .result(),
            "uint8[N, 1, 1, 3]");
  EXPECT_EQ(ms("SkipLayerNormalization")
                .in("float32[N, T, 8]")
                .in("float32[T, 8]")
                .in("float32[8]")
                .in("float32[8]")
                .results(4)
                .infer()
                .results,
            (Labels{"float32[N, T, 8]", "float32[N, T, 1]", "float32[N, T, 1]", "float32[N, T, 8]"}));
  EXPECT_EQ(ms("Attention")
                .in("float32[N, T, 16]")
                .in("float32[16, 48]")
                .in("float32[48]")
                .absent()
                .in("float32[2, N, 4, P, 4]")
                .with("num_heads", 4)
                .results(2)
                .infer()
                .results,
            (Labels{"float32[N, T, 16]", "float32[2, N, 4, T + P, 4]"}));
  EXPECT_EQ(ms("MultiHeadAttention")
                .in("float32[N, Q, 16]")
                .in("float32[N, K, 16]")
                .in("float32[N, K, 24]")
                .with("num_heads", 4)
                .results(3)
                .infer()
                .results,
            (Labels{"float32[N, Q, 24]", "float32[N, 4, K, 4]", "float32[N, 4, K, 6]"}));
  EXPECT_EQ(ms("GroupQueryAttention")
                .in("float32[N, T, 48]")
                .absent()
                .absent()
                .absent()
                .absent()
                .in("int32[N]")
                .in("int32[]")
                .with("num_heads", 4)
                .with("kv_num_heads", 1)
                .infer()
                .result(),
            "float32[N, T, 32]");
  EXPECT_EQ(ms("EmbedLayerNormalization")
                .in("int32[N, T]")
                .absent()
                .in("float32[100, 8]")
                .in("float32[64, 8]")
                .absent()
                .in("float32[8]")
                .in("float32[8]")
                .results(2)
                .infer()
                .results,
            (Labels{"float32[N, T, 8]", "int32[N]"}));
  EXPECT_EQ(ms("QLinearConcat")
                .in("float32[]")
                .in("uint8[]")
                .in("uint8[N, 2]")
                .in("float32[]")
                .in("uint8[]")
                .in("uint8[N, 3]")
                .in("float32[]")
                .in("uint8[]")
                .with("axis", 1)
                .infer()
                .result(),
            "uint8[N, 5]");
  EXPECT_EQ(ms("QLinearAdd")
                .in("uint8[N, 2]")
                .in("float32[]")
                .in("uint8[]")
                .in("uint8[2]")
                .in("float32[]")
                .in("uint8[]")
                .in("float32[]")
                .in("uint8[]")
                .infer()
                .result(),
            "uint8[N, 2]");
  EXPECT_EQ(ms("QGemm")
                .in("uint8[2, 3]")
                .in("float32[]")
                .in("uint8[]")
                .in("int8[3, 4]")
                .in("float32[]")
                .in("int8[]")
                .infer()
                .result(),
            "float32[2, 4]");
  EXPECT_EQ(Op("SimplifiedLayerNormalization", 14).in("float16[N, 8]").in("float16[8]").infer().result(),
            "float16[N, 8]");
  // Written by runtimes into opsets that ONNX's own version is not part of.
  EXPECT_TRUE(Op("LayerNormalization", 14).in("float32[N, 8]").in("float32[8]").infer().failures.empty());
}

TEST(Contrib, SchemasAreOpen) {
  // Other releases know attributes, operands and types that ours does not.
  Op op = ms("Gelu");
  EXPECT_TRUE(op.in("bfloat16[N]").in("float32[]").with("something_new", 1).infer().failures.empty());
  EXPECT_EQ(ms("FusedMatMul").in("float32[2, 3]").infer().failures, Labels{"operand_count"});
  EXPECT_EQ(ms("FusedMatMul").in("float32[2, 3]").in("float16[3, 2]").infer().failures, Labels{"same_type"});
}

TEST(Contrib, Broken) {
  EXPECT_EQ(ms("FusedMatMul").in("float32[2, 3]").in("float32[2, 3]").infer().failures, Labels{"matmul_inner"});
  EXPECT_EQ(ms("BiasGelu").in("float32[2, 3]").in("float32[4]").infer().failures, Labels{"contrib_vector"});
  EXPECT_EQ(
      ms("SkipLayerNormalization").in("float32[2, 3, 8]").in("float32[2, 4, 8]").in("float32[8]").infer().failures,
      Labels{"contrib_skip"});
  EXPECT_EQ(ms("MatMulNBits")
                .in("float32[2, 3]")
                .in("uint8[4, 1, 16]")
                .in("float32[4]")
                .with("K", 32)
                .with("N", 4)
                .with("block_size", 32)
                .infer()
                .failures,
            Labels{"contrib_packed_inner"});
  const auto packed = [](std::string_view weights, std::string_view scales, std::string_view zero_points) {
    return ms("MatMulNBits")
        .in("float32[2, 32]")
        .in(weights)
        .in(scales)
        .in(zero_points)
        .with("K", 32)
        .with("N", 8)
        .with("block_size", 16)
        .infer()
        .failures;
  };
  EXPECT_EQ(packed("uint8[8, 2, 8]", "float32[8, 2]", "uint8[8, 1]"), Labels{});
  EXPECT_EQ(packed("uint8[8, 2, 8]", "float32[16]", "uint8[8]"), Labels{});
  EXPECT_EQ(packed("uint8[n, 2, 8]", "float32[16]", "float32[8, 2]"), Labels{});
  EXPECT_EQ(packed("uint8[8, 1, 16]", "float32[16]", "uint8[8]"), Labels{"contrib_packed_weights"});
  EXPECT_EQ(packed("uint8[128]", "float32[16]", "uint8[8]"), Labels{"contrib_packed_weights"});
  EXPECT_EQ(packed("uint8[8, 2, 8]", "float32[8]", "uint8[8]"), Labels{"contrib_packed_weights"});
  EXPECT_EQ(packed("uint8[8, 2, 8]", "float32[16]", "uint8[4]"), Labels{"contrib_packed_weights"});
  EXPECT_EQ(ms("Attention").in("float32[2, 3, 16]").in("float32[8, 48]").with("num_heads", 4).infer().failures,
            Labels{"contrib_attention_shapes"});
  EXPECT_EQ(ms("Attention").in("float32[2, 3, 16]").in("float32[16, 48]").with("num_heads", 0).infer().failures,
            Labels{"contrib_attention_heads"});
  EXPECT_EQ(ms("ReduceSumInteger").in("uint8[2, 3]").ints("axes", {2}).with("keepdims", 1).infer().failures,
            Labels{"contrib_axis"});
  EXPECT_EQ(ms("ReduceSumInteger").in("uint8[2, 3]").ints("axes", {1, -1}).with("keepdims", 1).infer().failures,
            Labels{"contrib_axis_once"});
  EXPECT_EQ(ms("QLinearConcat")
                .in("float32[]")
                .in("uint8[]")
                .in("uint8[4, 2]")
                .in("float32[]")
                .in("uint8[]")
                .in("uint8[5, 3]")
                .in("float32[]")
                .in("uint8[]")
                .with("axis", 1)
                .infer()
                .failures,
            Labels{"contrib_concat"});
  EXPECT_EQ(ms("QLinearMul")
                .in("uint8[4, 2]")
                .in("float32[]")
                .in("uint8[]")
                .in("uint8[3]")
                .in("float32[]")
                .in("uint8[]")
                .in("float32[]")
                .in("uint8[]")
                .infer()
                .failures,
            Labels{"contrib_broadcast"});
}

}  // namespace
}  // namespace tensorlint::ops
