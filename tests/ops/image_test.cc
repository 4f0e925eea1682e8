#include <cmath>

#include "tests/ops/op_test.h"

namespace tensorlint::ops {
namespace {

using Labels = std::vector<std::string>;

TEST(Resize, Shapes) {
  const auto by_scales = [](const char* data, std::vector<double> scales) {
    return Op("Resize", 13).in(data).absent().floats(std::move(scales)).infer().result();
  };
  EXPECT_EQ(by_scales("float32[N, 3, H, 10]", {1, 1, 2, 0.5}), "float32[N, 3, 2*H, 5]");
  EXPECT_EQ(by_scales("float32[1, 1, H, 3]", {1, 1, 0.5, 1.5}), "float32[1, 1, floor(H/2), 4]");
  // floor(10 * 0.7f) is 7 in float32 and 6 in float64.
  EXPECT_EQ(by_scales("float32[1, 1, 10, 10]", {1, 1, 0.699999988079071, 0.6000000238418579}), "float32[1, 1, ?, 6]");
  EXPECT_EQ(Op("Resize", 11)
                .in("float32[1, 3, H, W]")
                .in("float32[0]")
                .in("float32[0]")
                .elements({"1", "3", "A", "7"})
                .infer()
                .result(),
            "float32[1, 3, A, 7]");
  EXPECT_EQ(Op("Resize", 18)
                .in("float32[1, 3, H, W]")
                .absent()
                .absent()
                .constant({5, 6})
                .ints("axes", {3, -2})
                .infer()
                .result(),
            "float32[1, 3, 6, 5]");
  const auto keeping = [](const char* policy) {
    return Op("Resize", 18)
        .in("float32[8, 4]")
        .absent()
        .absent()
        .constant({4, 4})
        .with("keep_aspect_ratio_policy", policy)
        .infer()
        .result();
  };
  EXPECT_EQ(keeping("not_larger"), "float32[4, 2]");
  EXPECT_EQ(keeping("not_smaller"), "float32[8, 4]");
  // Halves are rounded up: 0.75 * 2.
  EXPECT_EQ(Op("Resize", 18)
                .in("float32[2, 4]")
                .absent()
                .absent()
                .constant({1, 3})
                .with("keep_aspect_ratio_policy", "not_smaller")
                .infer()
                .result(),
            "float32[2, 3]");
  EXPECT_EQ(Op("Upsample", 9).in("float32[1, 1, 2, 2]").floats({1, 1, 2, 3}).infer().result(), "float32[1, 1, 4, 6]");
}

TEST(Resize, Broken) {
  EXPECT_EQ(Op("Resize", 13).in("float32[2, 3]").infer().failures, Labels{"resize_target"});
  EXPECT_EQ(Op("Resize", 13).in("float32[2, 3]").absent().floats({1, 2}).constant({2, 6}).infer().failures,
            Labels{"resize_target"});
  EXPECT_EQ(Op("Resize", 13).in("float32[2, 3]").absent().floats({1, 2, 3}).infer().failures, Labels{"resize_length"});
  EXPECT_EQ(Op("Resize", 13).in("float32[2, 3]").absent().floats({1, -2}).infer().failures, Labels{"resize_scale"});
  EXPECT_EQ(Op("Upsample", 9).in("float32[2, 3]").floats({1, 0.5}).infer().failures, Labels{"resize_scale"});
  EXPECT_EQ(Op("Resize", 18)
                .in("float32[2, 3]")
                .absent()
                .absent()
                .constant({2, 6})
                .with("keep_aspect_ratio_policy", "no")
                .infer()
                .failures,
            Labels{"resize_policy"});
  EXPECT_EQ(
      Op("Resize", 18).in("float32[2, 3]").absent().absent().constant({2, 6}).ints("axes", {0, 2}).infer().failures,
      Labels{"resize_axes_in_range"});
  EXPECT_EQ(
      Op("Resize", 18).in("float32[2, 3]").absent().absent().constant({2, 6}).ints("axes", {0, -2}).infer().failures,
      Labels{"resize_axes_once"});
}

TEST(Regions, Shapes) {
  EXPECT_EQ(Op("RoiAlign", 16)
                .in("float32[N, 3, 8, 8]")
                .in("float32[R, 4]")
                .in("int64[R]")
                .with("output_height", 5)
                .infer()
                .result(),
            "float32[R, 3, 5, 1]");
  EXPECT_EQ(
      Op("MaxRoiPool", 1).in("float32[N, 3, 8, 8]").in("float32[R, 5]").ints("pooled_shape", {2, 3}).infer().result(),
      "float32[R, 3, 2, 3]");
  EXPECT_EQ(Op("MaxUnpool", 11)
                .in("float32[1, 1, 2, 2]")
                .in("int64[1, 1, 2, 2]")
                .ints("kernel_shape", {2, 2})
                .ints("strides", {2, 2})
                .infer()
                .result(),
            "float32[1, 1, 4, 4]");
  EXPECT_EQ(Op("NonMaxSuppression", 11).in("float32[1, S, 4]").in("float32[1, 1, S]").scalar(3).infer().result(),
            "int64[?, 3]");
  EXPECT_EQ(Op("NonMaxSuppression", 11).in("float32[1, S, 4]").in("float32[1, 1, S]").infer().result(), "int64[0, 3]");
  EXPECT_EQ(Op("GridSample", 20).in("float32[N, 3, 8, 8, 8]").in("float32[N, 4, 5, 6, 3]").infer().result(),
            "float32[N, 3, 4, 5, 6]");
  EXPECT_EQ(Op("AffineGrid", 20).in("float32[N, 2, 3]").elements({"N", "3", "H", "W"}).infer().result(),
            "float32[N, H, W, 2]");
  EXPECT_EQ(Op("Col2Im", 18).in("float32[N, 10, 5]").constant({5, 5}).constant({1, 5}).infer().result(),
            "float32[N, 2, 5, 5]");
  EXPECT_EQ(Op("CenterCropPad", 18).in("float32[20, 8, C]").constant({10, 9}).ints("axes", {-3, 1}).infer().result(),
            "float32[10, 9, C]");
  EXPECT_EQ(Op("ImageDecoder", 20).in("uint8[N]").infer().result(), "uint8[?, ?, ?]");
}

/// Rows that NonMaxSuppression keeps of the boxes.
std::string kept(std::vector<double> boxes, std::vector<double> scores, std::int64_t limit, double overlap,
                 double lowest, int center = 0) {
  const std::string count = std::to_string(scores.size());
  return Op("NonMaxSuppression", 11)
      .floats(std::move(boxes), "float32[1, " + count + ", 4]")
      .floats(std::move(scores), "float32[1, 1, " + count + "]")
      .scalar(limit)
      .floats({overlap})
      .floats({lowest})
      .with("center_point_box", center)
      .infer()
      .result();
}

TEST(BoxSuppression, Constants) {
  // Unit squares at x = 0, 0.5 and 10: the first two overlap by a third.
  const std::vector<double> corners{0, 0, 1, 1, 0, 0.5, 1, 1.5, 0, 10, 1, 11};
  EXPECT_EQ(kept(corners, {0.9, 0.75, 0.6}, 3, 0.25, 0), "int64[2, 3]");
  EXPECT_EQ(kept(corners, {0.9, 0.75, 0.6}, 3, 0.5, 0), "int64[3, 3]");
  EXPECT_EQ(kept(corners, {0.9, 0.75, 0.6}, 1, 0.5, 0), "int64[1, 3]");
  EXPECT_EQ(kept(corners, {0.9, 0.75, 0.6}, 3, 0.5, 0.7), "int64[2, 3]");
  EXPECT_EQ(kept(corners, {0.9, 0.75, 0.6}, -1, 0.5, 0), "int64[0, 3]");
  EXPECT_EQ(kept({1, 1, 0, 0, 1, 0.5, 0, 1.5}, {0.9, 0.75}, 3, 0.25, 0), "int64[1, 3]");
  EXPECT_EQ(kept({0.5, 0.5, 1, 1, 1, 0.5, 1, 1}, {0.9, 0.75}, 3, 0.25, 0, 1), "int64[1, 3]");
  // Exact halves: an overlap of a half is not above a half.
  EXPECT_EQ(kept({0, 0, 1, 1, 0, 0, 1, 0.5}, {0.9, 0.75}, 3, 0.5, 0), "int64[2, 3]");
  EXPECT_EQ(kept({0, 0, 1, 1, 0, 0, 1, 1}, {0.5, 0.5}, 3, 0.5, 0), "int64[1, 3]");
}

TEST(BoxSuppression, LeftOpenWhereEnginesMayDiffer) {
  const float tenth = 0.1F, third = 1.0F / 3.0F;
  // Overlap of a third, computed from tenths: rounding decides.
  EXPECT_EQ(kept({0, 0, tenth, 1, 0, 0.5, tenth, 1.5}, {0.9, 0.75}, 3, third, 0), "int64[?, 3]");
  EXPECT_EQ(kept({0, 0, 1, 1, 0, 0.5, 1, 1.5}, {0.5, 0.5}, 3, 0.25, 0), "int64[?, 3]");
  EXPECT_EQ(kept({0, 0, 1, 1, 0, 0, 1, 1}, {0.9, std::nan("")}, 3, 0.5, 0), "int64[?, 3]");
  EXPECT_EQ(kept({0, 0, 1e30, 1, 0, 0, 1, 1}, {0.9, 0.8}, 3, 0.5, 0), "int64[?, 3]");
  EXPECT_EQ(kept({0, 0, 1, 1}, {0.9}, 3, 1.5, 0), "int64[?, 3]");
}

TEST(Regions, Broken) {
  EXPECT_EQ(Op("RoiAlign", 16).in("float32[2, 3, 8, 8]").in("float32[2, 4]").constant({0, 2}).infer().failures,
            Labels{"roi_batch_index"});
  EXPECT_EQ(Op("RoiAlign", 16).in("float32[2, 3, 8, 8]").in("float32[2, 5]").in("int64[2]").infer().failures,
            Labels{"roi_shapes"});
  EXPECT_EQ(Op("RoiAlign", 16)
                .in("float32[2, 3, 8, 8]")
                .in("float32[2, 4]")
                .in("int64[2]")
                .with("output_width", 0)
                .infer()
                .failures,
            Labels{"roi_extents"});
  EXPECT_EQ(Op("MaxUnpool", 11)
                .in("float32[1, 1, 2, 2]")
                .in("int64[1, 1, 2, 3]")
                .ints("kernel_shape", {2, 2})
                .infer()
                .failures,
            Labels{"max_unpool_shapes"});
  EXPECT_EQ(Op("NonMaxSuppression", 11).in("float32[1, 6, 4]").in("float32[1, 1, 5]").infer().failures[0],
            "non_max_suppression_shapes");
  EXPECT_EQ(Op("GridSample", 16).in("float32[1, 3, 8, 8]").in("float32[1, 4, 5, 3]").infer().failures,
            Labels{"grid_sample_shapes"});
  EXPECT_EQ(Op("AffineGrid", 20).in("float32[N, 2, 3]").constant({1, 2, 3, 4, 5}).infer().failures,
            Labels{"affine_grid_shapes"});
  EXPECT_EQ(Op("Col2Im", 18).in("float32[1, 9, 5]").constant({5, 5}).constant({1, 5}).infer().failures,
            Labels{"col2im_shapes"});
  EXPECT_EQ(Op("Col2Im", 18)
                .in("float32[N, 10, 5]")
                .constant({5, 5})
                .constant({1, 5})
                .ints("pads", {0, 0, 0})
                .infer()
                .failures,
            Labels{"window_attributes"});
  EXPECT_EQ(Op("Col2Im", 18).in("float32[N, 10, 5]").constant({5, 5}, "int64[1, 2]").constant({1, 5}).infer().failures,
            Labels{"is_list"});
  EXPECT_EQ(
      Op("GridSample", 20).in("float32[1, 1, 4, 4]").in("float32[1, 2, 2, 2]").with("mode", "foo").infer().failures,
      Labels{"grid_sample_mode"});
  EXPECT_TRUE(Op("GridSample", 20)
                  .in("float32[1, 1, 4, 4]")
                  .in("float32[1, 2, 2, 2]")
                  .with("mode", "bilinear")
                  .infer()
                  .failures.empty());
  EXPECT_EQ(Op("Resize", 19).in("float32[1, 1, 4]").absent().in("float32[1, 1, 4]").infer().failures,
            Labels{"is_list?"});
  EXPECT_EQ(Op("NonMaxSuppression", 11)
                .in("float32[1, 9, 4]")
                .in("float32[1, 2, 9]")
                .with("center_point_box", 2)
                .infer()
                .failures,
            Labels{"non_max_suppression_format"});
  EXPECT_EQ(Op("Resize", 19).in("float32[1, 1, 4]").absent().floats({1, 1, 2}).with("mode", "area").infer().failures,
            Labels{"resize_mode"});
  EXPECT_TRUE(Op("Resize", 19)
                  .in("float32[1, 1, 4]")
                  .absent()
                  .floats({1, 1, 2})
                  .with("mode", "linear")
                  .with("nearest_mode", "any")
                  .infer()
                  .failures.empty());
  EXPECT_EQ(Op("HannWindow", 17).scalar(8).with("output_datatype", 7).infer().result(), "int64[8]");
  EXPECT_EQ(Op("HannWindow", 17).scalar(8).with("output_datatype", 99).infer().failures, Labels{"signal_dtype"});
  EXPECT_EQ(Op("CenterCropPad", 18).in("float32[2, 3]").constant({1, 2, 3}).infer().failures,
            Labels{"center_crop_length"});
  EXPECT_EQ(Op("CenterCropPad", 18).in("float32[2, 3]").constant({1}).ints("axes", {2}).infer().failures,
            Labels{"center_crop_axes_in_range"});
  EXPECT_EQ(Op("CenterCropPad", 18).in("float32[2, 3]").constant({1, 1}).ints("axes", {1, 1}).infer().failures,
            Labels{"center_crop_axes_once"});
  EXPECT_EQ(Op("ImageDecoder", 20).in("uint8[N]").with("pixel_format", "HSV").infer().failures,
            Labels{"image_decoder_format"});
  EXPECT_EQ(Op("ImageDecoder", 20).in("uint8[N, 2]").infer().failures, Labels{"image_decoder_stream"});
}

TEST(Signal, Shapes) {
  EXPECT_EQ(Op("DFT", 17).in("float32[N, 10, 1]").infer().result(), "float32[N, 10, 2]");
  EXPECT_EQ(Op("DFT", 20).in("float32[N, 10, 9, 1]").absent().scalar(1).with("onesided", 1).infer().result(),
            "float32[N, 6, 9, 2]");
  EXPECT_EQ(Op("DFT", 20).in("float32[N, 6, 2]").with("onesided", 1).with("inverse", 1).infer().result(),
            "float32[N, 10, 1]");
  EXPECT_EQ(Op("DFT", 20).in("float32[N, 10, 1]").scalar(16).infer().result(), "float32[N, 16, 2]");
  EXPECT_EQ(Op("STFT", 17).in("float32[1, 128, 1]").scalar(8).in("float32[16]").infer().result(),
            "float32[1, 15, 9, 2]");
  EXPECT_EQ(Op("STFT", 17).in("float32[1, 128, 1]").scalar(8).absent().scalar(16).with("onesided", 0).infer().result(),
            "float32[1, 15, 16, 2]");
  // Real without an axis of their parts: onnxruntime runs it.
  EXPECT_EQ(Op("STFT", 17).in("float32[N, 128]").scalar(8).in("float32[16]").infer().result(), "float32[N, 15, 9, 2]");
  EXPECT_EQ(
      Op("MelWeightMatrix", 17).scalar(8).scalar(16).scalar(8192).in("float32[]").in("float32[]").infer().result(),
      "float32[9, 8]");
  EXPECT_EQ(Op("HannWindow", 17).scalar(10).with("output_datatype", 11).infer().result(), "float64[10]");
}

TEST(Signal, Broken) {
  EXPECT_EQ(Op("DFT", 17).in("float32[N, 10, 1]").with("axis", 2).infer().failures, Labels{"signal_axis"});
  EXPECT_EQ(Op("DFT", 20).in("float32[N, 10, 1]").scalar(0).infer().failures, Labels{"signal_length"});
  EXPECT_EQ(Op("STFT", 17).in("float32[10]").scalar(1).infer().failures, Labels{"signal_rank"});
  EXPECT_TRUE(Op("STFT", 17).in("float32[N, 128]").scalar(8).in("float32[16]").infer().failures.empty());
  EXPECT_EQ(Op("STFT", 17).in("float32[1, 8, 1]").scalar(8).in("float32[16]").infer().failures, Labels{"signal_frame"});
  EXPECT_EQ(Op("STFT", 17).in("float32[1, 128, 1]").scalar(8).in("float32[16]").scalar(15).infer().failures,
            Labels{"signal_frame"});
}

TEST(Quantization, Shapes) {
  EXPECT_EQ(Op("QuantizeLinear", 13).in("float32[N, 3]").in("float32[3]").in("int8[3]").infer().result(), "int8[N, 3]");
  EXPECT_EQ(Op("QuantizeLinear", 13).in("float32[N, 3]").in("float32[]").infer().result(), "uint8[N, 3]");
  EXPECT_EQ(Op("QuantizeLinear", 21)
                .in("float32[6, 3]")
                .in("float32[3, 3]")
                .with("axis", 0)
                .with("block_size", 2)
                .with("output_dtype", 22)
                .infer()
                .result(),
            "int4[6, 3]");
  EXPECT_EQ(Op("DequantizeLinear", 21).in("int8[6, 3]").in("float16[]").infer().result(), "float16[6, 3]");
  EXPECT_EQ(Op("DequantizeLinear", 23).in("int8[6, 3]").in("float16[]").with("output_dtype", 1).infer().result(),
            "float32[6, 3]");
  // Out of range, but ignored: one element.
  EXPECT_TRUE(Op("DequantizeLinear", 13).in("int8[6]").in("float32[1]").infer().failures.empty());
  EXPECT_EQ(Op("DynamicQuantizeLinear", 11).in("float32[N]").results(3).infer().results,
            (Labels{"uint8[N]", "float32[]", "uint8[]"}));
  EXPECT_EQ(Op("QLinearMatMul", 21)
                .in("uint8[2, 3]")
                .in("float32[]")
                .in("uint8[]")
                .in("int8[3, 4]")
                .in("float32[]")
                .in("int8[]")
                .in("float32[]")
                .in("uint8[]")
                .infer()
                .result(),
            "uint8[2, 4]");
}

TEST(Quantization, Broken) {
  EXPECT_EQ(Op("QuantizeLinear", 13).in("float32[2, 3]").in("float32[2]").infer().failures,
            Labels{"quantization_scale_shape"});
  EXPECT_EQ(Op("QuantizeLinear", 10).in("float32[2, 3]").in("float32[3]").infer().failures,
            Labels{"quantization_scale_shape"});
  EXPECT_EQ(Op("QuantizeLinear", 13).in("float32[2, 3]").in("float32[3]").in("uint8[2]").infer().failures,
            Labels{"quantization_zero_point_shape"});
  EXPECT_EQ(Op("QuantizeLinear", 13).in("float32[2, 3]").in("float32[3]").with("axis", 2).infer().failures,
            Labels{"quantization_axis"});
  EXPECT_EQ(Op("QuantizeLinear", 21)
                .in("float32[6, 3]")
                .in("float32[2, 3]")
                .with("axis", 0)
                .with("block_size", 2)
                .infer()
                .failures,
            Labels{"quantization_scale_shape"});
  EXPECT_EQ(Op("DequantizeLinear", 21).in("int8[6, 3]").in("float32[2, 3]").with("block_size", -2).infer().failures,
            Labels{"quantization_block_size"});
}

}  // namespace
}  // namespace tensorlint::ops
