// Cases on which onnxruntime 1.31.1 and the reference implementation of onnx 1.23.2 were asked: both refuse what fails
// here for certain, and at least one of them runs what does not fail.
#include <cmath>
#include <cstdint>

#include "tests/ops/op_test.h"

namespace tensorlint::ops {
namespace {

using Labels = std::vector<std::string>;

TEST(RuntimeVerdicts, SqueezeWithoutAxes) {
  EXPECT_EQ(Op("Squeeze", 11).in("float32[1, 2, 1]").ints("axes", {}).infer().result(), "float32[2]");
  EXPECT_EQ(Op("Squeeze", 1).in("float32[1, 2, 1]").ints("axes", {}).infer().result(), "float32[2]");
  // Two runtimes, two ranks.
  EXPECT_EQ(Op("Squeeze", 13).in("float32[1, 2, 1]").constant({}).infer().result(), "float32[...]");
  EXPECT_EQ(Op("Squeeze", 13).in("float32[N, 2]").constant({}).infer().result(), "float32[...]");
  EXPECT_EQ(Op("Squeeze", 13).in("float32[3, 2]").constant({}).infer().result(), "float32[3, 2]");
}

TEST(RuntimeVerdicts, SqueezeOfOneAxisTwice) {
  const Outcome old = Op("Squeeze", 11).in("float32[1, 1, 5]").ints("axes", {0, -3}).infer();
  EXPECT_EQ(old.failures, Labels{});
  EXPECT_EQ(old.result(), "float32[...]");
  const Outcome recent = Op("Squeeze", 13).in("float32[1, 1, 5]").constant({0, -3}).infer();
  EXPECT_EQ(recent.failures, Labels{"squeeze_axes_once?"});
  EXPECT_EQ(recent.result(), "float32[1, 5]");
  EXPECT_EQ(Op("Squeeze", 13).in("float32[1, 1, 5]").in("int64[2]").infer().result(), "float32[...]");
}

TEST(RuntimeVerdicts, UnknownElementsOfUint64) {
  Op cast("Cast", 21);
  cast.constant({-1}).with("to", 13);
  const Outcome outcome = cast.infer();
  EXPECT_EQ(outcome.result(), "uint64[1]");
  EXPECT_GE(cast.fact(outcome).range.hi, 18446744073709551615.0);
  EXPECT_EQ(cast.fact(outcome).range.lo, 0);
  Op narrow("Cast", 21);
  narrow.elements({"3", "?"}).with("to", 12);
  const Outcome bounded = narrow.infer();
  EXPECT_LE(narrow.fact(bounded).range.hi, 4294967295.0);
}

/// onnxruntime refuses it when it loads the model from opset 11 on, the reference implementation runs it.
TEST(RuntimeVerdicts, SoftmaxOfAScalar) {
  for (const char* name : {"Softmax", "LogSoftmax"}) {
    EXPECT_EQ(Op(name, 13).in("float32[]").infer().failures, Labels{"softmax_rank?"});
    EXPECT_EQ(Op(name, 11).in("float32[]").infer().failures, Labels{"softmax_rank?"});
    EXPECT_EQ(Op(name, 13).in("float32[]").infer().result(), Op(name, 1).in("float32[]").infer().result());
    EXPECT_EQ(Op(name, 1).in("float32[]").infer().failures, Labels{});
    EXPECT_EQ(Op(name, 13).in("float32[...]").infer().failures, Labels{});
  }
}

/// Until opset 10 the specification makes a matrix of one column of it, which onnxruntime refuses when the model runs.
TEST(RuntimeVerdicts, SoftmaxAlongAnAxisPastTheLast) {
  for (const int opset : {1, 11, 13})
    EXPECT_EQ(Op("Softmax", opset).in("float32[2, 3]").with("axis", 2).infer().failures,
              Labels{opset < 11 ? "softmax_axis_in_range?" : "softmax_axis_in_range"});
}

/// numpy refuses it, onnxruntime leaves such axes out; and 3 of the default axes are not those of a matrix.
TEST(RuntimeVerdicts, MeanVarianceNormalizationOfAxesThatAreNotThere) {
  const std::string name = "MeanVarianceNormalization";
  EXPECT_EQ(Op(name, 13).in("float32[2, 3]").infer().failures, Labels{"normalization_axis?"});
  EXPECT_EQ(Op(name, 13).in("float32[2, 3]").ints("axes", {0, 7}).infer().failures, Labels{"normalization_axis?"});
  EXPECT_EQ(Op(name, 13).in("float32[2, 3]").ints("axes", {0, 0}).infer().failures, Labels{"normalization_axis_once?"});
  EXPECT_EQ(Op(name, 13).in("float32[2, 3]").ints("axes", {0, 1}).infer().failures, Labels{});
  EXPECT_EQ(Op(name, 13).in("float32[2, 3]").infer().result(), "float32[2, 3]");
}

/// Nobody knows such a reduction, and both compute without one.
TEST(RuntimeVerdicts, ScatterWithAnUnknownReduction) {
  EXPECT_EQ(Op("ScatterElements", 18)
                .in("float32[2, 3]")
                .in("int64[1, 3]")
                .in("float32[1, 3]")
                .with("reduction", "sum")
                .infer()
                .failures,
            Labels{"scatter_reduction?"});
}

TEST(RuntimeVerdicts, GatherNDWithIndicesOfNoParts) {
  const Outcome outcome = Op("GatherND", 13).in("float32[2, 3]").in("int64[1, 0]").infer();
  EXPECT_EQ(outcome.failures, Labels{"gather_nd_shapes?"});
  EXPECT_EQ(outcome.result(), "float32[1, 2, 3]");
}

/// Each takes another one of the two.
TEST(RuntimeVerdicts, AConstantOfTwoValues) {
  EXPECT_EQ(Op("Constant", 18).with("value_int", 1).with("value_float", 2.0).infer().failures,
            Labels{"constant_one_value?"});
  EXPECT_EQ(Op("Constant", 18).infer().failures, Labels{"constant_one_value"});
}

/// onnxruntime refuses it before it knows the extents; of a tensor without elements nothing is divided.
TEST(RuntimeVerdicts, IntegersDividedByZero) {
  EXPECT_EQ(Op("Div", 18).in("int64[2, 3]").constant({0}).infer().failures, Labels{"integer_divisor"});
  EXPECT_EQ(Op("Div", 18).in("int64[N, 3]").constant({0}).infer().failures, Labels{"integer_divisor?"});
  EXPECT_EQ(Op("Div", 18).in("int64[0, 3]").constant({0}).infer().failures, Labels{});
}

TEST(RuntimeVerdicts, PaddingWithTheEdgeOfNothing) {
  const auto pad = [](const char* mode, std::vector<std::int64_t> pads) {
    return Op("Pad", 19).in("float32[0, 3]").constant(std::move(pads)).with("mode", mode).infer().failures;
  };
  EXPECT_EQ(pad("edge", {1, 0, 0, 0}), Labels{"pad_of_nothing"});
  EXPECT_EQ(pad("wrap", {0, 0, 2, 0}), Labels{"pad_of_nothing"});
  EXPECT_EQ(pad("edge", {0, 1, 0, 0}), Labels{});
  EXPECT_EQ(pad("constant", {1, 0, 0, 0}), Labels{});
}

TEST(RuntimeVerdicts, ADiagonalOfTwoNumbers) {
  EXPECT_EQ(Op("Trilu", 14).in("float32[2, 3]").constant({1, 1}).infer().failures, Labels{"trilu_diagonal"});
  EXPECT_EQ(Op("Trilu", 14).in("float32[2, 3]").constant({1}).infer().failures, Labels{});
}

/// Both refuse either, and ONNX's inference the longer one.
TEST(RuntimeVerdicts, PermutationsOfOtherLengths) {
  EXPECT_EQ(Op("Transpose", 13).in("float32[2, 3]").ints("perm", {1, 0, 2}).infer().failures,
            Labels{"transpose_too_long"});
  EXPECT_EQ(Op("Transpose", 13).in("float32[2, 3]").ints("perm", {0}).infer().failures, Labels{"transpose_length"});
}

/// The reference implementation squeezes one axis after the other; the first one has to have the extent 1 in both.
TEST(RuntimeVerdicts, SqueezeOfALongAxisTwice) {
  EXPECT_EQ(Op("Squeeze", 11).in("float32[1, 3, 1]").ints("axes", {1, 1}).infer().failures,
            Labels{"squeeze_extent_one"});
  EXPECT_EQ(Op("Squeeze", 11).in("float32[1, 1, 3]").ints("axes", {0, 0}).infer().failures, Labels{});
}

TEST(RuntimeVerdicts, DilatedPoolsWithSamePadding) {
  for (const char* name : {"MaxPool", "AveragePool", "LpPool"}) {
    for (const char* padding : {"SAME_UPPER", "SAME_LOWER"}) {
      const auto pool = [&](std::vector<std::int64_t> dilations) {
        return Op(name, 22)
            .in("float32[1, 1, 5, 6]")
            .with("auto_pad", padding)
            .ints("kernel_shape", {2, 2})
            .ints("dilations", std::move(dilations))
            .infer()
            .result();
      };
      EXPECT_EQ(pool({2, 1}), "float32[1, 1, ?, 6]") << name << ' ' << padding;
      EXPECT_EQ(pool({1, 1}), "float32[1, 1, 5, 6]") << name << ' ' << padding;
    }
  }
  // Of convolutions only the reference implementation takes these, as the specification says.
  EXPECT_EQ(Op("Conv", 22)
                .in("float32[1, 1, 5]")
                .in("float32[1, 1, 2]")
                .with("auto_pad", "SAME_UPPER")
                .ints("dilations", {2})
                .infer()
                .result(),
            "float32[1, 1, 5]");
}

TEST(RuntimeVerdicts, VersionsThatWereDeprecatedLater) {
  EXPECT_EQ(Op("GroupNormalization", 18)
                .in("float32[1, 4, 2]")
                .in("float32[2]")
                .in("float32[2]")
                .with("num_groups", 2)
                .infer()
                .failures,
            Labels{});
  EXPECT_EQ(Op("GroupNormalization", 18)
                .in("float32[1, 4, 2]")
                .in("float32[2]")
                .in("float32[2]")
                .with("num_groups", 3)
                .infer()
                .failures,
            Labels{"normalization_groups"});
  EXPECT_EQ(Op("Upsample", 10).in("float32[1, 1, 2, 2]").floats({1, 1, 2, 2}).infer().failures,
            Labels{"operator_in_opset"});
  EXPECT_EQ(Op("Scatter", 11).in("float32[3]").in("int64[1]").in("float32[1]").infer().failures,
            Labels{"operator_in_opset"});
}

TEST(RuntimeVerdicts, NothingToChooseFrom) {
  for (const char* name : {"ArgMax", "ArgMin"}) {
    EXPECT_EQ(Op(name, 13).in("float32[2, 0]").with("axis", 1).infer().failures, Labels{"arg_elements?"});
    EXPECT_EQ(Op(name, 13).in("float32[N, 0]").with("axis", -1).infer().failures, Labels{"arg_elements?"});
    EXPECT_EQ(Op(name, 13).in("float32[0, 0]").with("axis", 1).infer().failures, Labels{});
    EXPECT_EQ(Op(name, 13).in("float32[0, 3]").with("axis", 1).infer().failures, Labels{});
    EXPECT_EQ(Op(name, 13).in("float32[2, N]").with("axis", 1).infer().failures, Labels{});
  }
  EXPECT_EQ(Op("Gather", 13).in("float32[2, 0, 3]").in("int64[2]").with("axis", 1).infer().failures,
            Labels{"gather_index_in_range"});
  EXPECT_EQ(Op("Gather", 13).in("float32[2, 0, 3]").in("int64[N]").with("axis", 1).infer().failures, Labels{});
  EXPECT_EQ(Op("Gather", 13).in("float32[2, 0, 3]").in("int64[0]").with("axis", 1).infer().failures, Labels{});
  EXPECT_EQ(Op("Gather", 13).in("float32[0, 0]").in("int64[2]").with("axis", 1).infer().failures, Labels{});
  EXPECT_EQ(Op("GatherElements", 13).in("float32[2, 0]").in("int64[2, 1]").with("axis", 1).infer().failures.size(), 1U);
}

TEST(RuntimeVerdicts, OneHotDepthAndIndices) {
  const auto one_hot = [](const char* indices, std::int64_t depth) {
    return Op("OneHot", 11).in(indices).constant({depth}).in("float32[2]").infer().failures;
  };
  EXPECT_EQ(one_hot("int64[]", 3), Labels{"one_hot_rank"});
  EXPECT_EQ(one_hot("int64[N]", 0), Labels{"one_hot_depth"});
  EXPECT_EQ(one_hot("int64[N]", -4), Labels{"one_hot_depth"});
  EXPECT_EQ(one_hot("int64[N]", 1), Labels{});
  EXPECT_EQ(Op("OneHot", 11).in("int64[N]").floats({0.5}).in("float32[2]").infer().failures, Labels{"one_hot_depth"});
  EXPECT_EQ(Op("OneHot", 11).in("int64[N]").floats({2.7}).in("float32[2]").infer().result(), "float32[N, 2]");
  EXPECT_EQ(Op("OneHot", 11).in("int64[N]").in("int64[]").in("float32[2]").infer().failures, Labels{});
  EXPECT_EQ(Op("OneHot", 11).in("int64[4, 4]").constant({INT64_MAX}).in("float32[2]").infer().failures,
            Labels{"tensor_size"});
}

TEST(RuntimeVerdicts, MinusOneBesideZero) {
  EXPECT_EQ(Op("Reshape", 13).in("float32[0, 3]").constant({0, -1}).infer().failures, Labels{"reshape_extents"});
  EXPECT_EQ(Op("Reshape", 13).in("float32[0, M]").constant({0, -1}).infer().failures, Labels{"reshape_extents"});
  EXPECT_EQ(Op("Reshape", 13).in("float32[1, 0]").constant({0, -1}).infer().result(), "float32[1, 0]");
  EXPECT_EQ(Op("Reshape", 13).in("float32[N, 3]").constant({0, -1}).infer().failures, Labels{});
  // An extent that is not known need not be a -1.
  EXPECT_EQ(Op("Reshape", 13).in("float32[0, 3]").elements({"0", "?"}).infer().failures, Labels{});
}

TEST(RuntimeVerdicts, TensorsThatCannotExist) {
  EXPECT_EQ(Op("Reshape", 14).in("float32[N]").constant({std::int64_t{1} << 62, 4}).infer().failures,
            Labels{"tensor_size"});
  EXPECT_EQ(Op("Reshape", 14).in("float32[N]").constant({std::int64_t{1} << 62, 1}).infer().failures, Labels{});
  EXPECT_EQ(Op("Expand", 13).in("float32[1]").constant({INT64_MAX, INT64_MAX, INT64_MAX}).infer().failures,
            Labels{"tensor_size"});
  EXPECT_EQ(Op("Expand", 13).in("float32[1]").constant({INT64_MAX, INT64_MAX, 0}).infer().failures, Labels{});
  EXPECT_EQ(Op("Relu", 13).in("float32[9223372036854775807, 2]").taint(Aspect::kShape).infer().failures, Labels{});
}

TEST(RuntimeVerdicts, SplitSizesThatOverflow) {
  EXPECT_EQ(Op("Split", 13).in("float32[6]").constant({INT64_MAX, INT64_MAX}).results(2).infer().failures,
            Labels{"split_sizes"});
  EXPECT_EQ(Op("Split", 13).in("float32[N]").constant({INT64_MAX, INT64_MAX, 3}).results(3).infer().failures,
            Labels{"split_sizes"});
  EXPECT_EQ(Op("Split", 13).in("float32[6]").constant({-2, 8}).results(2).infer().failures, Labels{"split_sizes"});
  EXPECT_EQ(Op("Split", 13).in("float32[6]").constant({2, 4}).results(2).infer().failures, Labels{});
}

TEST(RuntimeVerdicts, ResizeScalesAndSizes) {
  const auto scale = [](double value) {
    return Op("Resize", 19).in("float32[1, 1, 4, 4]").absent().floats({1, 1, value, 1}).infer().failures;
  };
  EXPECT_EQ(scale(HUGE_VAL), Labels{"resize_scale"});
  EXPECT_EQ(scale(-HUGE_VAL), Labels{"resize_scale"});
  EXPECT_EQ(scale(std::nan("")), Labels{"resize_scale"});
  EXPECT_EQ(scale(2), Labels{});
  EXPECT_EQ(Op("Upsample", 9).in("float32[1, 1, 4, 4]").floats({1, 1, HUGE_VAL, 1}).infer().failures,
            Labels{"resize_scale"});
  const auto sizes = [](std::int64_t value) {
    return Op("Resize", 19).in("float32[1, 1, 4, 4]").absent().absent().constant({1, 1, value, 1}).infer().failures;
  };
  EXPECT_EQ(sizes(-1), Labels{"resize_scale"});
  EXPECT_EQ(sizes(0), Labels{});  // the reference implementation gives an empty result
  const auto filtered = [](const char* mode) {
    return Op("Resize", 19)
        .in("float32[1, 1, 4, 4]")
        .absent()
        .floats({1, 1, 2, 2})
        .with("mode", mode)
        .with("antialias", 1)
        .infer()
        .failures;
  };
  EXPECT_EQ(filtered("nearest"), Labels{"resize_mode"});
  EXPECT_EQ(filtered("linear"), Labels{});
}

TEST(RuntimeVerdicts, LrnAttributes) {
  const auto lrn = [](std::int64_t size, double alpha) {
    return Op("LRN", 13).in("float32[1, 5, 2, 2]").with("size", size).with("alpha", alpha).infer().failures;
  };
  EXPECT_EQ(lrn(3, 1e-4), Labels{});
  EXPECT_EQ(lrn(0, 1e-4), Labels{"lrn_attributes"});
  EXPECT_EQ(lrn(INT64_MIN, 1e-4), Labels{"lrn_attributes"});
  EXPECT_EQ(lrn(4, 1e-4), Labels{"lrn_attributes?"});
  EXPECT_EQ(lrn(3, 0), Labels{"lrn_attributes?"});
  EXPECT_EQ(Op("LRN", 13).in("float32[1, 5, 2, 2]").with("size", 3).with("beta", -1.0).infer().failures,
            Labels{"lrn_attributes?"});
}

TEST(RuntimeVerdicts, Dilations) {
  for (const std::int64_t dilation : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN}) {
    EXPECT_EQ(
        Op("Conv", 22).in("float32[1, 1, 4]").in("float32[1, 1, 1]").ints("dilations", {dilation}).infer().failures,
        Labels{"window_attributes"});
    EXPECT_EQ(Op("MaxPool", 22)
                  .in("float32[1, 1, 4]")
                  .ints("kernel_shape", {1})
                  .ints("dilations", {dilation})
                  .infer()
                  .failures,
              Labels{"window_attributes"});
  }
}

TEST(RuntimeVerdicts, OutputShapeOfConvTranspose) {
  const auto transpose = [](std::int64_t wanted, const char* padding) {
    return Op("ConvTranspose", 22)
        .in("float32[1, 1, 2]")
        .in("float32[1, 1, 2]")
        .ints("strides", {3})
        .ints("output_shape", {wanted})
        .with("auto_pad", padding)
        .infer()
        .failures;
  };
  EXPECT_EQ(transpose(11, "NOTSET"), Labels{"conv_transpose_output_shape"});
  EXPECT_EQ(transpose(8, "NOTSET"), Labels{"conv_transpose_output_shape"});
  EXPECT_EQ(transpose(7, "NOTSET"), Labels{});
  EXPECT_EQ(transpose(3, "NOTSET"), Labels{});
  EXPECT_EQ(transpose(11, "SAME_UPPER"), Labels{});
}

TEST(RuntimeVerdicts, AttentionMaskOfRankOne) {
  const auto attention = [](const char* mask) {
    return Op("Attention", 24)
        .in("float32[2, 3, 4, 8]")
        .in("float32[2, 3, 6, 8]")
        .in("float32[2, 3, 6, 8]")
        .in(mask)
        .infer()
        .failures;
  };
  EXPECT_EQ(attention("bool[6]"), Labels{});
  EXPECT_EQ(attention("bool[1]"), Labels{});
  EXPECT_EQ(attention("bool[3]"), Labels{});  // the rest is masked out
  EXPECT_EQ(attention("bool[7]"), Labels{"attention_mask"});
  EXPECT_EQ(attention("bool[]"), Labels{"attention_mask"});
}

}  // namespace
}  // namespace tensorlint::ops
