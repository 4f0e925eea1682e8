// Regions of images, each resized to one size. Source: onnxruntime com.microsoft.CropAndResize, opset 1.
#include <algorithm>
#include <cmath>
#include <string>

#include "base/letters.h"
#include "ir/ops/checks.h"
#include "ir/ops/indexing.h"
#include "ir/ops/ranges.h"

namespace tensorlint::ops {
namespace {

const Constraint kCropShapes{"crop_and_resize_shapes", ConstraintKind::kShapes,
                             "X is [N, C, H, W], rois [R, 4], batch_indices [R], crop_size [2]"};
const Constraint kCropBatch{"crop_and_resize_batch_index", ConstraintKind::kIndexRange, "0 <= batch index < N"};
const Constraint kCropSize{"crop_and_resize_size", ConstraintKind::kDomain, "both elements of crop_size are positive"};
const Constraint kCropMode{"crop_and_resize_mode", ConstraintKind::kAttribute, "`mode` is bilinear or nearest"};

constexpr int kImages = 0, kRegions = 1, kBatchIndices = 2, kCropSizes = 3;

/// onnxruntime ignores the case.
bool is_nearest(Inference& in) {
  const std::string mode = lower_case(in.string_attribute("mode", "bilinear"));
  if (mode != "bilinear" && mode != "nearest")
    check_choice(in, "mode", in.string_attribute("mode", "bilinear"), {"bilinear", "nearest"}, kCropMode);
  return mode == "nearest";
}

/// What interpolation between elements of `images` gives, as a + (b - a) * weight twice. Rounding errors are relative
/// to the largest element, not to the end of the range that they cross: -100 + 101 * 0.99... may exceed 1. They never
/// cross 0, since a - b is at most a where b is not negative. Everything where b - a may overflow.
Range interpolated(const Range& images, DTypeSet dtypes) {
  const double largest = std::max(std::fabs(images.lo), std::fabs(images.hi));
  if (images.lo > images.hi || std::isinf(widened(Range{0, 4 * largest, false}, dtypes).hi)) return Range{};
  const double error = widened(Range{0, largest, false}, dtypes).hi - largest;
  Range result{images.lo - error, images.hi + error, images.nan};
  if (images.lo >= 0) result.lo = std::max(result.lo, 0.0);
  if (images.hi <= 0) result.hi = std::min(result.hi, 0.0);
  return result;
}

void crop_and_resize(Inference& in) {
  DimPool& pool = in.dims();
  const bool nearest = is_nearest(in);
  const Range images = in.operand(kImages).range;
  const double outside = in.float_attribute("extrapolation_value", 0);
  in.set_range(0, join(nearest ? images : interpolated(images, in.operand(kImages).dtypes),
                       Range{outside, outside, std::isnan(outside)}));

  const Dim rows = dim_of(in, kRegions, 0), indices = dim_of(in, kBatchIndices, 0);
  const Dim regions = better(pool, rows, indices);
  const bool has_channels = check_rank(in, kImages, {4}, kCropShapes);
  const bool pairs =
      check_shape(in, kRegions, Dims{regions, pool.constant(4)}, kCropShapes, "regions", kBatchIndices) &&
      check_shape(in, kBatchIndices, Dims{regions}, kCropShapes, "batch indices", kRegions);
  if (pairs) in.learn_equal(rows, indices);
  check_indices(in, kCropBatch, kBatchIndices, dim_of(in, kImages, 0), kImages, 0, false);

  Dims result{regions, has_channels ? dim_of(in, kImages, 1) : Dim(Unknown::kTainted), Dim(Unknown::kDataDependent),
              Dim(Unknown::kDataDependent)};
  const bool two = check_shape(in, kCropSizes, Dims{pool.constant(2)}, kCropShapes, "the size");
  if (const auto size = in.elements(kCropSizes); two && size && size->size() == 2) {
    for (std::size_t i = 0; i < 2; ++i) {
      result[i + 2] = (*size)[i];
      if ((*size)[i].is_unknown() || pool.bounds((*size)[i]).hi >= 1) continue;
      in.fail(kCropSize, {kCropSizes},
              {"the {} {} in {} has to be positive", i == 0 ? "height" : "width", (*size)[i], OperandRef(kCropSizes)});
      result[i + 2] = Dim(Unknown::kTainted);
    }
  }
  in.set_shape(0, result);
}

const RegisterOps kRegisterCropAndResize{OpEntry("CropAndResize", "com.microsoft")
                                             .infer(crop_and_resize)
                                             .host("crop_size")
                                             .index("batch_indices")
                                             .constraint(kCropShapes)
                                             .constraint(kCropBatch)
                                             .constraint(kCropSize)
                                             .constraint(kCropMode)};

}  // namespace
}  // namespace tensorlint::ops
