// Extents and attributes that evaluators count on: without these constraints they would read or write past an end, or
// divide by 0.
#include "tests/ops/op_test.h"

namespace tensorlint::ops {
namespace {

using Labels = std::vector<std::string>;

TEST(OperandExtents, Rotary) {
  const auto rotary = [](const char* data, const char* cosine, const char* sine, std::int64_t rotated) {
    return Op("RotaryEmbedding", 23)
        .in(data)
        .in(cosine)
        .in(sine)
        .in("int64[1, 3]")
        .with("rotary_embedding_dim", rotated)
        .infer();
  };
  EXPECT_TRUE(rotary("float32[1, 2, 3, 4]", "float32[9, 2]", "float32[9, 2]", 4).failures.empty());
  EXPECT_TRUE(rotary("float32[1, 2, 3, D]", "float32[N, 50]", "float32[N, 50]", 100).failures.empty());
  const Outcome wide = rotary("float32[1, 2, 3, 4]", "float32[3, 50]", "float32[3, 50]", 100);
  EXPECT_EQ(wide.failures, Labels{"rotary_size"});
  EXPECT_EQ(wide.messages[0], "`rotary_embedding_dim` of RotaryEmbedding is 100, heads have 4 elements");
  EXPECT_EQ(rotary("float32[1, 2, 3, 4]", "float32[3, 2]", "float32[3, 2]", -2).failures, Labels{"rotary_size"});
  EXPECT_EQ(rotary("float32[1, 2, 3, 4]", "float32[3, 2]", "float32[1, 2]", 0).failures, Labels{"rotary_cache"});
  EXPECT_EQ(Op("RotaryEmbedding", 23)
                .in("float32[1, 3, 7]")
                .in("float32[9, 1]")
                .in("float32[9, 1]")
                .in("int64[1, 3]")
                .with("num_heads", 2)
                .infer()
                .failures,
            Labels{"rotary_heads"});
}

TEST(OperandExtents, AttentionHeads) {
  const auto attention = [](const char* operand) {
    return Op("Attention", 23).in("float32[1, 2, 3, 4]").in(operand).in(operand).infer().failures;
  };
  EXPECT_TRUE(attention("float32[1, 2, 3, 4]").empty());
  EXPECT_EQ(attention("float32[1, 0, 3, 4]"), Labels{"attention_heads"});
  const auto flex = [](const char* operand) {
    return Op("FlexAttention", 1, "ai.onnx.preview").in("float32[1, 2, 3, 4]").in(operand).in(operand).infer().failures;
  };
  EXPECT_TRUE(flex("float32[1, 1, 3, 4]").empty());
  EXPECT_EQ(flex("float32[1, 0, 3, 4]"), Labels{"attention_heads"});
}

TEST(OperandExtents, AttentionLengths) {
  const auto attention = [](const char* lengths) {
    return Op("Attention", 24)
        .in("float32[3, 2, 3, 4]")
        .in("float32[3, 2, 3, 4]")
        .in("float32[3, 2, 3, 4]")
        .absent()
        .absent()
        .absent()
        .in(lengths)
        .infer()
        .failures;
  };
  EXPECT_TRUE(attention("int64[3]").empty());
  EXPECT_TRUE(attention("int64[N]").empty());
  EXPECT_EQ(attention("int64[1]"), Labels{"attention_lengths"});
  EXPECT_EQ(attention("int64[0]"), Labels{"attention_lengths"});
  EXPECT_EQ(attention("int64[]"), Labels{"attention_lengths"});
}

TEST(OperandExtents, SoftmaxPrecision) {
  const auto flex = [](std::int64_t precision) {
    return Op("FlexAttention", 1, "ai.onnx.preview")
        .in("float16[1, 2, 3, 4]")
        .in("float16[1, 2, 3, 4]")
        .in("float16[1, 2, 3, 4]")
        .with("softmax_precision", precision)
        .infer()
        .failures;
  };
  for (const std::int64_t precision : {1, 10, 11, 16}) EXPECT_TRUE(flex(precision).empty()) << precision;
  for (const std::int64_t precision : {-1, 7, 8, 1234}) EXPECT_EQ(flex(precision), Labels{"attention_precision"});
  EXPECT_EQ(Op("Attention", 23)
                .in("float32[1, 2, 3, 4]")
                .in("float32[1, 2, 3, 4]")
                .in("float32[1, 2, 3, 4]")
                .with("softmax_precision", 6)
                .infer()
                .failures,
            Labels{"attention_precision"});
}

TEST(OperandExtents, LinearAttentionGates) {
  const auto linear = [](const char* decay, const char* beta) {
    return Op("LinearAttention", 27)
        .in("float32[2, 5, 12]")
        .in("float32[2, 5, 6]")
        .in("float32[2, 5, 8]")
        .absent()
        .in(decay)
        .in(beta)
        .with("q_num_heads", 4)
        .with("kv_num_heads", 2)
        .results(2)
        .infer()
        .failures;
  };
  EXPECT_TRUE(linear("float32[2, 5, 2]", "float32[2, 5, 1]").empty());
  EXPECT_TRUE(linear("float32[2, 5, 6]", "float32[2, T, H]").empty());
  EXPECT_EQ(linear("float32[2, 5, 3]", "float32[2, 5, 2]"), Labels{"linear_attention_gates"});
  EXPECT_EQ(linear("float32[2, 5, 2]", "float32[2, 4, 2]"), Labels{"linear_attention_gates"});
  EXPECT_EQ(linear("float32[2, 0, 2]", "float32[2, 5, 2]"), Labels{"linear_attention_gates"});
}

TEST(OperandExtents, CausalConvolution) {
  const auto convolution = [](const char* weights) {
    return Op("CausalConvWithState", 27).in("float32[1, 2, 5]").in(weights).results(2).infer().failures;
  };
  EXPECT_TRUE(convolution("float32[2, 1, 1]").empty());
  EXPECT_TRUE(convolution("float32[2, 1, K]").empty());
  EXPECT_EQ(convolution("float32[2, 1, 0]"), Labels{"causal_conv_shapes"});
}

TEST(OperandExtents, ZeroPointsOfConvolutions) {
  const auto integer = [](const char* data_zero, const char* filter_zero) {
    return Op("ConvInteger", 10)
        .in("uint8[1, 1, 4, 4]")
        .in("uint8[3, 1, 2, 2]")
        .in(data_zero)
        .in(filter_zero)
        .infer()
        .failures;
  };
  EXPECT_TRUE(integer("uint8[]", "uint8[3]").empty());
  EXPECT_TRUE(integer("uint8[1]", "uint8[1]").empty());
  EXPECT_EQ(integer("uint8[20]", "uint8[]"), Labels{"conv_zero_point"});
  EXPECT_EQ(integer("uint8[0]", "uint8[]"), Labels{"conv_zero_point"});
  const auto linear = [](const char* parameter) {
    return Op("QLinearConv", 10)
        .in("uint8[1, 1, 4, 4]")
        .in("float32[]")
        .in("uint8[]")
        .in("uint8[3, 1, 2, 2]")
        .in("float32[3]")
        .in(parameter)
        .in("float32[]")
        .in("uint8[]")
        .infer()
        .failures;
  };
  for (const char* fits : {"uint8[]", "uint8[1]", "uint8[3]", "uint8[N]"}) EXPECT_TRUE(linear(fits).empty()) << fits;
  for (const char* misfit : {"uint8[1, 2]", "uint8[2]", "uint8[0]", "uint8[1, 3]"})
    EXPECT_EQ(linear(misfit), Labels{"quantization_scale_shape"}) << misfit;
}

TEST(OperandExtents, ParametersOfProducts) {
  const auto linear = [](const char* a_scale, const char* b_scale, const char* y_scale) {
    return Op("QLinearMatMul", 21)
        .in("uint8[5, 2, 4]")
        .in(a_scale)
        .in("uint8[]")
        .in("uint8[5, 4, 3]")
        .in(b_scale)
        .in("uint8[]")
        .in(y_scale)
        .in("uint8[]")
        .infer()
        .failures;
  };
  for (const char* a : {"float32[]", "float32[1]", "float32[2]", "float32[5, 2, 1]", "float32[N]"})
    EXPECT_TRUE(linear(a, "float32[]", "float32[]").empty()) << a;
  for (const char* b : {"float32[3]", "float32[5, 1, 3]", "float32[1, 1, 3]"})
    EXPECT_TRUE(linear("float32[]", b, "float32[]").empty()) << b;
  EXPECT_TRUE(linear("float32[]", "float32[]", "float32[2]").empty());
  const Labels misfit{"quantization_scale_shape"};
  for (const char* a : {"float32[0]", "float32[3]", "float32[5, 2, 4]", "float32[1, 5, 2, 1]"})
    EXPECT_EQ(linear(a, "float32[]", "float32[]"), misfit) << a;
  EXPECT_EQ(linear("float32[]", "float32[2]", "float32[]"), misfit);
  EXPECT_EQ(linear("float32[]", "float32[]", "float32[0]"), misfit);
  const Outcome outcome =
      Op("MatMulInteger", 10).in("uint8[5, 2, 4]").in("uint8[4, 3]").in("uint8[7]").in("uint8[3]").infer();
  EXPECT_EQ(outcome.failures, Labels{"matmul_zero_point"});
  EXPECT_EQ(outcome.messages[0],
            "{2} has shape [7], for A of shape [5, 2, 4] it has to have one element, or one a row");
}

TEST(OperandExtents, QuantizationPrecision) {
  const auto quantize = [](std::int64_t precision) {
    return Op("QuantizeLinear", 23)
        .in("float32[3]")
        .in("float32[]")
        .in("uint8[]")
        .with("precision", precision)
        .infer()
        .failures;
  };
  for (const std::int64_t precision : {0, 1, 10, 16}) EXPECT_TRUE(quantize(precision).empty()) << precision;
  for (const std::int64_t precision : {-1, 2, 8, 99})
    EXPECT_EQ(quantize(precision), Labels{"quantization_precision"}) << precision;
}

TEST(OperandExtents, Stft) {
  const auto stft = [](const char* signal, const char* window) {
    Op op("STFT", 17);
    op.in(signal).scalar(2);
    if (*window != '\0') op.in(window);
    return op.infer();
  };
  EXPECT_TRUE(stft("float32[1, 8, 1]", "float32[4]").failures.empty());
  EXPECT_TRUE(stft("float32[1, N, 1]", "float32[W]").failures.empty());
  EXPECT_EQ(stft("float32[1, 8, 1]", "float32[0]").failures, Labels{"signal_length"});
  EXPECT_EQ(stft("float32[1, 8, 1]", "float32[0]").messages[0], "length of the window {2} is 0, at least 1 needed");
  EXPECT_EQ(stft("float32[1, 0, 1]", "").failures, Labels{"signal_length"});
}

TEST(OperandExtents, NormalisationParameters) {
  const auto batch = [](std::int64_t opset, const char* parameter) {
    return Op("BatchNormalization", opset)
        .in("float32[2, 3, 4]")
        .in(parameter)
        .in("float32[3, 4]")
        .in("float32[3, 4]")
        .in("float32[3, 4]")
        .with("spatial", 0)
        .infer()
        .failures;
  };
  EXPECT_TRUE(batch(7, "float32[3, 4]").empty());
  EXPECT_EQ(batch(7, "float32[3]"), Labels{"normalization_parameter"});
  EXPECT_TRUE(batch(6, "float32[3]").empty());
  const auto group = [](std::int64_t opset, const char* parameter) {
    return Op("GroupNormalization", opset)
        .in("float32[2, 6, 4]")
        .in(parameter)
        .in(parameter)
        .with("num_groups", 2)
        .infer()
        .failures;
  };
  EXPECT_TRUE(group(18, "float32[2]").empty());
  EXPECT_TRUE(group(21, "float32[6]").empty());
  EXPECT_EQ(group(18, "float32[6]"), (Labels{"normalization_parameter", "normalization_parameter"}));
  EXPECT_EQ(group(21, "float32[2]"), (Labels{"normalization_parameter", "normalization_parameter"}));
  for (const char* one : {"float32[]", "float32[1]"})  // which onnxruntime repeats
    for (const std::int64_t opset : {18, 21})
      EXPECT_EQ(group(opset, one), (Labels{"normalization_parameter?", "normalization_parameter?"}));
}

}  // namespace
}  // namespace tensorlint::ops
