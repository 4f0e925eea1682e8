#include <cmath>
#include <limits>

#include "tests/ops/op_test.h"

namespace tensorlint::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Op crop(std::string_view images = "float32[N, 3, H, W]", std::string_view regions = "float32[R, 4]",
        std::string_view indices = "int32[R]") {
  Op op("CropAndResize", 1, "com.microsoft");
  op.in(images).in(regions).in(indices);
  return op;
}

/// Crops of 4 by 5 of images whose elements are in that range.
Range cropped(double lo, double hi, bool nan, const char* mode, double outside = 0) {
  Op op("CropAndResize", 1, "com.microsoft");
  op.in("float32[N, 3, 8, 8]").range(lo, hi, nan).in("float32[R, 4]").in("int32[R]").constant({4, 5}, "int32[2]");
  const Outcome outcome = op.with("mode", mode).with("extrapolation_value", outside).infer();
  EXPECT_EQ(outcome.failures, std::vector<std::string>{});
  return op.fact(outcome).range;
}

std::vector<std::string> failures(Op& op) { return op.infer().failures; }

TEST(CropAndResize, OneCropForEachRegion) {
  EXPECT_EQ(crop().constant({4, 5}, "int32[2]").infer().result(), "float32[R, 3, 4, 5]");
  EXPECT_EQ(crop().elements({"A", "?"}, "int32[2]").infer().result(), "float32[R, 3, A, ?]");
  EXPECT_EQ(crop().in("int32[2]").infer().result(), "float32[R, 3, ?, ?]");
  EXPECT_EQ(crop().unknown().infer().result(), "float32[R, 3, ?, ?]");
  // Either of the two operands says how many there are.
  EXPECT_EQ(crop("float16[N, C, 8, 8]", "float16[...]", "int32[7]").in("int32[2]").infer().result(),
            "float16[7, C, ?, ?]");
  EXPECT_EQ(crop("float64[...]", "float64[7, 4]", "int32[...]").in("int32[2]").infer().result(), "float64[7, ?, ?, ?]");
}

TEST(CropAndResize, AsManyRegionsAsBatchIndices) {
  const Outcome outcome = crop("float32[N, 3, H, W]", "float32[R, 4]", "int32[S]").in("int32[2]").infer();
  EXPECT_EQ(outcome.failures, std::vector<std::string>{});
  EXPECT_EQ(outcome.raw.equalities.size(), 1U);
}

TEST(CropAndResize, Shapes) {
  const std::vector<std::string> wrong{"crop_and_resize_shapes"};
  EXPECT_EQ(failures(crop("float32[3, H, W]").in("int32[2]")), wrong);
  EXPECT_EQ(failures(crop("float32[N, 3, H, W]", "float32[R, 5]").in("int32[2]")), wrong);
  EXPECT_EQ(failures(crop("float32[N, 3, H, W]", "float32[4]").in("int32[2]")), wrong);
  EXPECT_EQ(failures(crop("float32[N, 3, H, W]", "float32[6, 4]", "int32[7]").in("int32[2]")), wrong);
  EXPECT_EQ(failures(crop("float32[N, 3, H, W]", "float32[R, 4]", "int32[R, 1]").in("int32[2]")), wrong);
  EXPECT_EQ(failures(crop().in("int32[3]")), wrong);
  EXPECT_EQ(failures(crop().in("int32[1, 2]")), wrong);
  EXPECT_EQ(failures(crop().in("int32[K]")), std::vector<std::string>{});
}

TEST(CropAndResize, TheSizeIsPositive) {
  const std::vector<std::string> wrong{"crop_and_resize_size"};
  const Outcome outcome = crop().constant({4, 0}, "int32[2]").infer();
  EXPECT_EQ(outcome.failures, wrong);
  EXPECT_EQ(outcome.messages, std::vector<std::string>{"the width 0 in {3} has to be positive"});
  EXPECT_EQ(failures(crop().constant({-1, 4}, "int32[2]")), wrong);
  EXPECT_EQ(failures(crop().constant({1, 1}, "int32[2]")), std::vector<std::string>{});
  EXPECT_EQ(failures(crop().elements({"A", "?"}, "int32[2]")), std::vector<std::string>{});
}

TEST(CropAndResize, BatchIndicesCountFromTheFront) {
  const auto of_two_images = [](std::int64_t index) {
    Op op("CropAndResize", 1, "com.microsoft");
    op.in("float32[2, 3, 8, 8]").in("float32[1, 4]").constant({index}, "int32[1]").in("int32[2]");
    return op.infer().failures;
  };
  const std::vector<std::string> wrong{"crop_and_resize_batch_index"};
  EXPECT_EQ(of_two_images(0), std::vector<std::string>{});
  EXPECT_EQ(of_two_images(1), std::vector<std::string>{});
  EXPECT_EQ(of_two_images(2), wrong);
  EXPECT_EQ(of_two_images(-1), wrong);
}

TEST(CropAndResize, ModesInAnyCase) {
  EXPECT_EQ(failures(crop().in("int32[2]").with("mode", "BiLinear")), std::vector<std::string>{});
  EXPECT_EQ(failures(crop().in("int32[2]").with("mode", "NEAREST")), std::vector<std::string>{});
  EXPECT_EQ(failures(crop().in("int32[2]").with("mode", "cubic")), std::vector<std::string>{"crop_and_resize_mode"});
  EXPECT_EQ(failures(crop().in("int32[2]").with("mode", "")), std::vector<std::string>{"crop_and_resize_mode"});
}

TEST(CropAndResize, NearestMovesElements) {
  EXPECT_EQ(cropped(1, 5, false, "nearest"), (Range{0, 5, false}));
  EXPECT_EQ(cropped(1, 5, true, "Nearest", 7), (Range{1, 7, true}));
  EXPECT_EQ(cropped(-kInfinity, kInfinity, false, "nearest"), (Range{-kInfinity, kInfinity, false}));
}

TEST(CropAndResize, InterpolationStaysBetweenElementsButForRounding) {
  const Range range = cropped(-100, 1, false, "bilinear", -300);
  EXPECT_EQ(range.lo, -300);
  EXPECT_GT(range.hi, 1 + 4e-6);  // what 101 rounds by
  EXPECT_LT(range.hi, 1 + 1e-3);
  EXPECT_FALSE(range.nan);
}

TEST(CropAndResize, InterpolationKeepsTheSign) {
  EXPECT_EQ(cropped(0, 255, false, "bilinear").lo, 0);
  EXPECT_EQ(cropped(-255, 0, false, "bilinear").hi, 0);
  EXPECT_LT(cropped(2, 255, false, "bilinear", 9).lo, 2);
  EXPECT_TRUE(cropped(0, 255, true, "bilinear").nan);
}

TEST(CropAndResize, InterpolationMayOverflow) {
  for (const Range& range : {cropped(-3e38, 3e38, false, "bilinear"), cropped(0, kInfinity, false, "bilinear")}) {
    EXPECT_TRUE(range.is_everything());
    EXPECT_TRUE(range.nan);
  }
}

}  // namespace
}  // namespace tensorlint::ops
