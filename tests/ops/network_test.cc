#include "tests/ops/op_test.h"

namespace tensorlint::ops {
namespace {

using Labels = std::vector<std::string>;

TEST(MatMul, Shapes) {
  EXPECT_EQ(Op("MatMul", 13).in("float32[2, N]").in("float32[N, 3]").infer().result(), "float32[2, 3]");
  EXPECT_EQ(Op("MatMul", 13).in("float32[B, 1, 4, K]").in("float32[5, K, 3]").infer().result(), "float32[B, 5, 4, 3]");
  EXPECT_EQ(Op("MatMul", 13).in("float32[4]").in("float32[2, 4, 3]").infer().result(), "float32[2, 3]");
  EXPECT_EQ(Op("MatMul", 13).in("float32[2, 4]").in("float32[4]").infer().result(), "float32[2]");
  EXPECT_EQ(Op("MatMul", 13).in("float32[4]").in("float32[4]").infer().result(), "float32[]");
  EXPECT_EQ(Op("MatMulInteger", 10).in("uint8[2, 3]").in("int8[3, 4]").in("uint8[]").in("int8[4]").infer().result(),
            "int32[2, 4]");
  // Independent symbols may agree.
  EXPECT_TRUE(Op("MatMul", 13).in("float32[2, N]").in("float32[K, 3]").infer().failures.empty());
}

TEST(MatMul, Broken) {
  const Outcome inner = Op("MatMul", 13).in("float32[2, 5]").in("float32[4, 3]").infer();
  EXPECT_EQ(inner.failures, Labels{"matmul_inner"});
  EXPECT_EQ(inner.messages[0],
            "{0} of shape [2, 5] and {1} of shape [4, 3] cannot be multiplied: inner extents 5 and 4");
  EXPECT_EQ(inner.result(), "float32[2, 3]");
  EXPECT_EQ(Op("MatMul", 13).in("float32[]").in("float32[4]").infer().failures, Labels{"matmul_rank"});
  EXPECT_EQ(Op("MatMul", 13).in("float32[2, 3, 4]").in("float32[3, 4, 5]").infer().failures,
            Labels{"matmul_broadcast"});
  EXPECT_EQ(Op("MatMulInteger", 10).in("uint8[2, 3]").in("int8[3, 4]").in("uint8[3]").infer().failures,
            Labels{"matmul_zero_point"});
}

TEST(Gemm, ShapesAndFailures) {
  EXPECT_EQ(Op("Gemm", 13).in("float32[N, 3]").in("float32[4, 3]").in("float32[4]").with("transB", 1).infer().result(),
            "float32[N, 4]");
  EXPECT_TRUE(Op("Gemm", 13).in("float32[2, 3]").in("float32[3, 4]").in("float32[2, 1]").infer().failures.empty());
  EXPECT_TRUE(Op("Gemm", 13).in("float32[2, 3]").in("float32[3, 4]").in("float32[]").infer().failures.empty());
  EXPECT_EQ(Op("Gemm", 13).in("float32[2, 3]").in("float32[4, 3]").infer().failures, Labels{"gemm_inner"});
  EXPECT_EQ(
      Op("Gemm", 13).in("float32[2, 3]").in("float32[4, 5]").with("transB", 1).infer().messages,
      Labels{"{0} of shape [2, 3] and {1} of shape [4, 5], transposed, cannot be multiplied: inner extents 3 and 5"});
  EXPECT_EQ(Op("Gemm", 13).in("float32[2, 1, 3]").in("float32[3, 4]").infer().failures, Labels{"gemm_rank"});
  EXPECT_EQ(Op("Gemm", 13).in("float32[2, 3]").in("float32[3, 4]").in("float32[3]").infer().failures,
            Labels{"gemm_addend"});
  EXPECT_EQ(Op("Gemm", 13).in("float32[2, 3]").in("float32[3, 4]").in("float32[1, 2, 4]").infer().failures,
            Labels{"gemm_addend"});
}

TEST(Conv, Shapes) {
  EXPECT_EQ(Op("Conv", 11)
                .in("float32[N, 3, 224, W]")
                .in("float32[64, 3, 7, 7]")
                .in("float32[64]")
                .ints("strides", {2, 2})
                .ints("pads", {3, 3, 3, 3})
                .infer()
                .result(),
            "float32[N, 64, 112, floor((W + 1)/2)]");
  EXPECT_EQ(Op("Conv", 22)
                .in("float32[1, 4, 9]")
                .in("float32[6, 2, 3]")
                .with("group", 2)
                .ints("dilations", {2})
                .infer()
                .result(),
            "float32[1, 6, 5]");
  EXPECT_EQ(Op("Conv", 11)
                .in("float32[1, 1, 5, 5]")
                .in("float32[1, 1, 3, 3]")
                .with("auto_pad", "SAME_LOWER")
                .ints("strides", {2, 2})
                .infer()
                .result(),
            "float32[1, 1, 3, 3]");
  EXPECT_EQ(
      Op("Conv", 11).in("float32[1, 1, 5, 5]").in("float32[1, 1, ?, ?]").ints("kernel_shape", {3, 3}).infer().result(),
      "float32[1, 1, 3, 3]");
  EXPECT_EQ(Op("ConvInteger", 10)
                .in("uint8[1, 1, 3, 3]")
                .in("uint8[2, 1, 2, 2]")
                .in("uint8[]")
                .in("uint8[2]")
                .infer()
                .result(),
            "int32[1, 2, 2, 2]");
}

TEST(Conv, Broken) {
  struct Case {
    const char *data, *filters, *bias;
    std::int64_t group;
    std::vector<std::int64_t> kernel, strides;
    const char* label;
  };
  const Case cases[] = {
      {"float32[1, 3, 8, 8]", "float32[4, 5, 3, 3]", "float32[4]", 1, {}, {}, "conv_channels"},
      {"float32[1, 4, 8, 8]", "float32[3, 2, 3, 3]", "float32[3]", 2, {}, {}, "conv_groups"},
      {"float32[1, 4, 8, 8]", "float32[3, 2, 3, 3]", "float32[3]", 0, {}, {}, "conv_groups"},
      {"float32[1, 3, 8, 8]", "float32[4, 3, 3, 3]", "float32[5]", 1, {}, {}, "conv_bias"},
      {"float32[1, 3, 8, 8]", "float32[4, 3, 3, 3]", "float32[4]", 1, {3, 2}, {}, "conv_kernel_shape"},
      {"float32[1, 3, 2, 8]", "float32[4, 3, 3, 3]", "float32[4]", 1, {}, {}, "window_fits"},
      {"float32[1, 3, 8, 8]", "float32[4, 3, 3, 3]", "float32[4]", 1, {}, {0, 1}, "window_attributes"},
      {"float32[1, 3, 8, 8]", "float32[4, 3, 3, 3]", "float32[4]", 1, {}, {1}, "window_attributes"},
      {"float32[1, 3, 8, 8]", "float32[4, 3, 3]", "float32[4]", 1, {}, {}, "window_rank"},
      {"float32[1, 3]", "float32[4, 3]", "float32[4]", 1, {}, {}, "window_rank"},
  };
  for (const Case& broken : cases) {
    Op op("Conv", 11);
    op.in(broken.data).in(broken.filters).in(broken.bias).with("group", broken.group);
    if (!broken.kernel.empty()) op.ints("kernel_shape", broken.kernel);
    if (!broken.strides.empty()) op.ints("strides", broken.strides);
    EXPECT_EQ(op.infer().failures, Labels{broken.label}) << broken.data << " " << broken.filters;
  }
  EXPECT_EQ(Op("ConvInteger", 10)
                .in("uint8[1, 1, 3, 3]")
                .in("uint8[2, 1, 2, 2]")
                .in("uint8[]")
                .in("uint8[3]")
                .infer()
                .failures,
            Labels{"conv_zero_point"});
}

TEST(Conv, Padding) {
  const auto conv = [](const char* mode, std::vector<std::int64_t> pads) {
    return Op("Conv", 11)
        .in("float32[1, 1, N]")
        .in("float32[1, 1, 3]")
        .with("auto_pad", mode)
        .ints("pads", pads)
        .infer();
  };
  EXPECT_EQ(conv("SAME_UPPER", {0, 0}).failures, Labels{"window_padding"});
  EXPECT_TRUE(conv("NOTSET", {1, 1}).failures.empty());
  EXPECT_EQ(conv("NOTSET", {-1, 0}).failures, Labels{"window_attributes"});
  EXPECT_TRUE(conv("NOTSET", {4, 4}).failures.empty());
}

TEST(Pool, Windows) {
  const auto pool = [](const char* data, std::int64_t kernel, std::int64_t stride) {
    return Op("MaxPool", 12).in(data).ints("kernel_shape", {kernel}).ints("strides", {stride}).infer();
  };
  EXPECT_EQ(pool("float32[1, 1, 3]", 5, 1).failures, Labels{"window_fits"});
  EXPECT_EQ(pool("float32[1, 1, 3]", 9, 3).failures, Labels{"window_fits"});
  // onnxruntime rounds what does not fit to one element or none.
  EXPECT_EQ(pool("float32[1, 1, 3]", 4, 2).result(), "float32[1, 1, ?]");
  EXPECT_TRUE(pool("float32[1, 1, 3]", 4, 2).failures.empty());
  EXPECT_TRUE(pool("float32[1, 1, 3]", 8, 3).failures.empty());
  EXPECT_TRUE(pool("float32[1, 1, N]", 9, 3).failures.empty());
  EXPECT_EQ(
      Op("AveragePool", 22).in("float32[1, 1, N]").ints("kernel_shape", {3}).ints("pads", {3, 0}).infer().failures,
      Labels{"window_padding"});
  EXPECT_TRUE(Op("AveragePool", 22)
                  .in("float32[1, 1, N]")
                  .ints("kernel_shape", {3})
                  .ints("pads", {1, 0})
                  .with("auto_pad", "SAME_UPPER")
                  .infer()
                  .failures.empty());
}

TEST(ConvTranspose, KernelShapeBesideOutputShape) {
  EXPECT_EQ(Op("ConvTranspose", 22)
                .in("float32[1, 1, 3, 3]")
                .in("float32[1, 2, 3, 3]")
                .ints("kernel_shape", {4, 3})
                .ints("output_shape", {10, 8})
                .infer()
                .failures,
            Labels{"conv_kernel_shape"});
}

TEST(ConvTranspose, OutputPadding) {
  const auto transposed = [](std::int64_t padding, std::int64_t stride) {
    return Op("ConvTranspose", 11)
        .in("float32[1, 1, N]")
        .in("float32[1, 1, 3]")
        .ints("strides", {stride})
        .ints("output_padding", {padding})
        .infer();
  };
  EXPECT_EQ(transposed(1, 2).result(), "float32[1, 1, 2*N + 2]");
  EXPECT_TRUE(transposed(0, 1).failures.empty());
  EXPECT_EQ(transposed(1, 1).failures, Labels{"window_attributes"});
  EXPECT_EQ(transposed(-1, 2).failures, Labels{"window_attributes"});
}

TEST(ConvTranspose, Shapes) {
  EXPECT_EQ(Op("ConvTranspose", 11)
                .in("float32[N, 2, H]")
                .in("float32[2, 3, 4]")
                .ints("strides", {2})
                .ints("pads", {1, 1})
                .infer()
                .result(),
            "float32[N, 3, 2*H]");
  EXPECT_EQ(Op("ConvTranspose", 11)
                .in("float32[1, 2, 5]")
                .in("float32[2, 3, 2]")
                .ints("strides", {4})
                .ints("output_shape", {19})
                .infer()
                .result(),
            "float32[1, 3, 19]");
  EXPECT_EQ(Op("ConvTranspose", 11)
                .in("float32[1, 2, 5]")
                .in("float32[2, 3, 5]")
                .ints("strides", {2})
                .with("auto_pad", "SAME_UPPER")
                .infer()
                .result(),
            "float32[1, 3, 10]");
  EXPECT_EQ(Op("ConvTranspose", 11).in("float32[1, 2, 5]").in("float32[3, 3, 2]").infer().failures,
            Labels{"conv_transpose_channels"});
  EXPECT_EQ(Op("ConvTranspose", 11).in("float32[1, 2, 5]").in("float32[2, 3, 2]").in("float32[5]").infer().failures,
            Labels{"conv_transpose_bias"});
  EXPECT_EQ(Op("ConvTranspose", 11).in("float32[1, 2, 2]").in("float32[2, 3, 2]").ints("pads", {4, 4}).infer().failures,
            Labels{"conv_transpose_extent"});
}

TEST(DeformConv, OffsetsAndGroups) {
  const auto call = [](const char* offset, const char* mask, int groups) {
    Op op("DeformConv", 19);
    op.in("float32[1, 2, 3, 3]").in("float32[1, 2, 2, 2]").in(offset).absent().in(mask).with("offset_group", groups);
    return op.infer();
  };
  EXPECT_EQ(call("float32[1, 8, 2, 2]", "float32[1, 4, 2, 2]", 1).result(), "float32[1, 1, 2, 2]");
  EXPECT_TRUE(call("float32[1, 8, 2, 2]", "float32[1, 4, 2, 2]", 1).failures.empty());
  EXPECT_EQ(call("float32[1, 4, 2, 2]", "float32[1, 4, 2, 2]", 1).failures, Labels{"deform_conv_offsets"});
  EXPECT_EQ(call("float32[1, 8, 2, 2]", "float32[1, 4, 2, 2]", 3).failures, Labels{"deform_conv_groups"});
}

TEST(Pool, Shapes) {
  EXPECT_EQ(Op("MaxPool", 12)
                .in("float32[N, 3, 32, 33]")
                .ints("kernel_shape", {2, 2})
                .ints("strides", {2, 2})
                .results(2)
                .infer()
                .results,
            (Labels{"float32[N, 3, 16, 16]", "int64[N, 3, 16, 16]"}));
  struct Case {
    int extent, kernel, stride, end_pad, expected;
  };
  // Windows that would start in the padding behind the data are dropped.
  for (const Case& c : {Case{4, 3, 2, 0, 2}, Case{5, 2, 3, 0, 2}, Case{6, 1, 4, 0, 2}, Case{4, 3, 3, 2, 2},
                        Case{2, 3, 1, 2, 2}, Case{7, 2, 2, 1, 4}}) {
    const std::string type = "float32[1, 1, " + std::to_string(c.extent) + "]";
    const std::string expected = "float32[1, 1, " + std::to_string(c.expected) + "]";
    EXPECT_EQ(Op("MaxPool", 12)
                  .in(type)
                  .ints("kernel_shape", {c.kernel})
                  .ints("strides", {c.stride})
                  .ints("pads", {0, c.end_pad})
                  .with("ceil_mode", 1)
                  .infer()
                  .result(),
              expected);
  }
  EXPECT_EQ(Op("AveragePool", 7)
                .in("float32[1, 1, 5]")
                .ints("kernel_shape", {2})
                .with("auto_pad", "VALID")
                .ints("strides", {2})
                .infer()
                .result(),
            "float32[1, 1, 2]");
  EXPECT_EQ(Op("GlobalAveragePool", 1).in("float32[N, C, H, W]").infer().result(), "float32[N, C, 1, 1]");
  EXPECT_EQ(Op("MaxPool", 12).in("float32[1, 3, 4, 4]").ints("kernel_shape", {2}).infer().failures,
            Labels{"window_attributes"});
  EXPECT_EQ(Op("MaxPool", 12).in("float32[3, 4]").ints("kernel_shape", {2, 2}).infer().failures, Labels{"window_rank"});
  // Some runtimes round a window that does not fit to one window: no claim.
  const Outcome larger =
      Op("MaxPool", 12).in("float32[1, 1, 2]").ints("kernel_shape", {3}).ints("strides", {2}).infer();
  EXPECT_EQ(larger.result(), "float32[1, 1, ?]");
  EXPECT_TRUE(larger.failures.empty());
}

TEST(Normalization, Shapes) {
  EXPECT_EQ(Op("BatchNormalization", 15)
                .in("float32[N, 3, H]")
                .in("float32[3]")
                .in("float32[3]")
                .in("float32[3]")
                .in("float32[3]")
                .with("training_mode", 1)
                .results(3)
                .infer()
                .results,
            (Labels{"float32[N, 3, H]", "float32[3]", "float32[3]"}));
  EXPECT_EQ(Op("BatchNormalization", 15)
                .in("float32[N, 3]")
                .in("float32[3]")
                .in("float32[3]")
                .in("float32[3]")
                .in("float32[3]")
                .with("training_mode", 1)
                .infer()
                .failures,
            Labels{"batch_norm_results"});
  EXPECT_EQ(Op("LayerNormalization", 17).in("float16[N, 3, 8]").in("float16[8]").results(3).infer().results,
            (Labels{"float16[N, 3, 8]", "float32[N, 3, 1]", "float32[N, 3, 1]"}));
  EXPECT_TRUE(
      Op("LayerNormalization", 17).in("float32[2, 3, 8]").in("float32[8]").with("axis", 1).infer().failures.empty());
  EXPECT_TRUE(Op("BatchNormalization", 7)
                  .in("float32[N, 3, 4]")
                  .in("float32[3, 4]")
                  .in("float32[3, 4]")
                  .in("float32[3, 4]")
                  .in("float32[3, 4]")
                  .with("spatial", 0)
                  .infer()
                  .failures.empty());
  EXPECT_TRUE(Op("GroupNormalization", 21)
                  .in("float32[2, 4, 8]")
                  .in("float32[4]")
                  .in("float32[4]")
                  .with("num_groups", 2)
                  .infer()
                  .failures.empty());
}

TEST(Normalization, Broken) {
  const auto batch = [](const char* data, const char* scale) {
    return Op("BatchNormalization", 15)
        .in(data)
        .in(scale)
        .in("float32[3]")
        .in("float32[3]")
        .in("float32[3]")
        .infer()
        .failures;
  };
  EXPECT_EQ(batch("float32[1, 3, 8]", "float32[2]"), Labels{"normalization_parameter"});
  EXPECT_EQ(batch("float32[1, 3, 8]", "float32[3, 1]"), Labels{"normalization_parameter"});
  const auto of_variances = [](int opset, std::vector<double> variances, std::uint32_t results) {
    return Op("BatchNormalization", opset)
        .in("float32[N, 3]")
        .in("float32[3]")
        .in("float32[3]")
        .in("float32[3]")
        .floats(std::move(variances), "float32[3]")
        .with("training_mode", results == 3 ? 1 : 0)
        .results(results)
        .infer()
        .failures;
  };
  EXPECT_EQ(of_variances(15, {1, 0.5, -0.5}, 1), Labels{"normalization_variance"});
  EXPECT_EQ(of_variances(14, {1, 0.5, -1e-6}, 1), Labels{});  // epsilon makes up for it
  EXPECT_EQ(of_variances(15, {1, 0.5, -0.5}, 3), Labels{});   // mixed with another one
  EXPECT_EQ(Op("BatchNormalization", 15)
                .in("float32[1, 3]")
                .in("float32[3]")
                .in("float32[3]")
                .in("float32[3]")
                .in("float32[3]")
                .results(3)
                .infer()
                .failures,
            Labels{"batch_norm_results"});
  EXPECT_EQ(Op("InstanceNormalization", 6).in("float32[1, 3]").in("float32[3]").in("float32[3]").infer().failures,
            Labels{"normalization_rank"});
  EXPECT_EQ(Op("LayerNormalization", 17).in("float32[2, 3, 8]").in("float32[7]").infer().failures,
            Labels{"normalization_scale"});
  EXPECT_EQ(Op("RMSNormalization", 23).in("float32[2, 3]").in("float32[3]").with("axis", 2).infer().failures,
            Labels{"normalization_axis"});
  EXPECT_EQ(Op("GroupNormalization", 21)
                .in("float32[2, 4, 8]")
                .in("float32[4]")
                .in("float32[4]")
                .with("num_groups", 3)
                .infer()
                .failures,
            Labels{"normalization_groups"});
  EXPECT_EQ(Op("LpNormalization", 1).in("float32[2, 4]").with("p", 3).infer().failures, Labels{"lp_norm_order"});
  EXPECT_EQ(Op("MeanVarianceNormalization", 13).in("float32[2, 4]").ints("axes", {0, -2}).infer().failures,
            Labels{"normalization_axis_once?"});
}

TEST(ClassLoss, Shapes) {
  const auto loss = [](const char* name, const char* reduction) {
    return Op(name, 13).in("float32[N, 5, H]").in("int64[N, H]").with("reduction", reduction).infer().result();
  };
  for (const char* name : {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}) {
    EXPECT_EQ(loss(name, "none"), "float32[N, H]");
    EXPECT_EQ(loss(name, "mean"), "float32[]");
    EXPECT_EQ(loss(name, "sum"), "float32[]");
  }
  EXPECT_EQ(Op("SoftmaxCrossEntropyLoss", 13).in("float32[N, 5]").in("int64[N]").results(2).infer().results,
            (Labels{"float32[]", "float32[N, 5]"}));
}

TEST(ClassLoss, Broken) {
  const auto labels = [](std::vector<std::int64_t> values, std::optional<std::int64_t> ignored) {
    Op op("SoftmaxCrossEntropyLoss", 13);
    op.in("float32[3, 5]").constant(std::move(values));
    if (ignored) op.with("ignore_index", *ignored);
    return op.infer();
  };
  EXPECT_TRUE(labels({0, 4, 2}, {}).failures.empty());
  EXPECT_EQ(labels({0, 5, 2}, {}).failures, Labels{"loss_class_in_range"});
  EXPECT_EQ(labels({0, 5, 2}, {}).messages[0], "label 5 in {1} is outside the 5 classes of {0}");
  EXPECT_EQ(labels({0, -1, 2}, {}).failures, Labels{"loss_class_in_range"});
  EXPECT_TRUE(labels({0, -1, 2}, -1).failures.empty());
  EXPECT_EQ(labels({0, -2, 2}, -1).failures, Labels{"loss_class_in_range"});
  EXPECT_EQ(Op("SoftmaxCrossEntropyLoss", 13).in("float32[3, 5]").in("int64[3]").range(5, 9).infer().failures,
            Labels{"loss_class_in_range"});
  // Some labels may be legal, or there may be none.
  EXPECT_TRUE(
      Op("SoftmaxCrossEntropyLoss", 13).in("float32[3, 5]").in("int64[3]").range(0, 9).infer().failures.empty());
  EXPECT_TRUE(
      Op("SoftmaxCrossEntropyLoss", 13).in("float32[N, 5]").in("int64[N]").range(5, 9).infer().failures.empty());
  EXPECT_EQ(Op("SoftmaxCrossEntropyLoss", 13).in("float32[2, 5]").in("int64[3]").infer().failures,
            Labels{"loss_labels_shape"});
  EXPECT_EQ(Op("NegativeLogLikelihoodLoss", 13).in("float32[2, 5]").in("int64[2, 5]").infer().failures,
            Labels{"loss_labels_shape"});
  EXPECT_EQ(Op("NegativeLogLikelihoodLoss", 13).in("float32[2, 5]").in("int64[2]").in("float32[4]").infer().failures,
            Labels{"loss_weights_shape"});
  EXPECT_EQ(Op("NegativeLogLikelihoodLoss", 13).in("float32[5]").in("int64[2]").infer().failures,
            Labels{"loss_scores_rank"});
}

}  // namespace
}  // namespace tensorlint::ops
