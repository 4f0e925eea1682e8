// Images, regions and grids. Source: ONNX RoiAlign (10, 16, 22), MaxRoiPool (1, 22), MaxUnpool (9, 11, 22),
// NonMaxSuppression (10, 11), GridSample (16, 20, 22), AffineGrid (20), Col2Im (18), CenterCropPad (18), ImageDecoder
// (20).
#include <algorithm>

#include "ir/ops/attributes.h"
#include "ir/ops/box_suppression.h"
#include "ir/ops/checks.h"
#include "ir/ops/contents.h"
#include "ir/ops/windows.h"

namespace tensorlint::ops {
namespace {

const Constraint kRoiShapes{"roi_shapes", ConstraintKind::kShapes,
                            "data are [N, C, H, W], regions [R, 4] or [R, 5], batch indices [R]"};
const Constraint kRoiExtents{"roi_extents", ConstraintKind::kAttribute, "the pooled extents are at least 1"};
const Constraint kRoiBatch{"roi_batch_index", ConstraintKind::kIndexRange, "0 <= batch index < N"};
const Constraint kUnpoolShapes{"max_unpool_shapes", ConstraintKind::kShapes, "indices have the data's shape"};
const Constraint kBoxShapes{"non_max_suppression_shapes", ConstraintKind::kShapes,
                            "boxes are [N, S, 4], scores [N, C, S]"};
const Constraint kBoxFormat{"non_max_suppression_format", ConstraintKind::kAttribute, "center_point_box is 0 or 1"};
const Constraint kGridShapes{"grid_sample_shapes", ConstraintKind::kShapes,
                             "the grid has the data's rank and batch, and one coordinate a spatial axis"};
const Constraint kGridMode{"grid_sample_mode", ConstraintKind::kAttribute,
                           "mode and padding_mode are ones that there are"};
const Constraint kAffineShapes{"affine_grid_shapes", ConstraintKind::kShapes,
                               "theta is [N, 2, 3] with a size of 4, or [N, 3, 4] with a size of 5"};
const Constraint kBlockShapes{"col2im_shapes", ConstraintKind::kShapes,
                              "columns are [N, C * block elements, blocks]; image and block have as many axes"};
const Constraint kCropAxes{"center_crop_axes_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank", true};
const Constraint kCropAxesOnce{"center_crop_axes_once", ConstraintKind::kDuplicateAxis, "no axis is given twice", true};
const Constraint kCropLength{"center_crop_length", ConstraintKind::kShapes, "the shape has one entry an axis", true};
const Constraint kImageFormat{"image_decoder_format", ConstraintKind::kAttribute,
                              "pixel_format is RGB, BGR or Grayscale"};
const Constraint kImageStream{"image_decoder_stream", ConstraintKind::kShapes, "the encoded stream has 1 axis"};

void roi_align(Inference& in) {
  DimPool& pool = in.dims();
  const Dim regions = better(pool, dim_of(in, 1, 0), dim_of(in, 2, 0));
  const bool ranks = check_rank(in, 0, {4}, kRoiShapes);
  check_shape(in, 1, Dims{regions, pool.constant(4)}, kRoiShapes, "regions", 2);
  check_shape(in, 2, Dims{regions}, kRoiShapes, "batch indices", 1);
  Dims result{regions, ranks ? dim_of(in, 0, 1) : Dim(Unknown::kTainted)};
  for (const std::string_view name : {"output_height", "output_width"}) {
    const std::int64_t extent = in.int_attribute(name, 1);
    if (extent < 1) in.fail(kRoiExtents, {}, {"{} of RoiAlign is {}, at least 1 needed", AttributeName(name), extent});
    result.push_back(extent < 1 ? Dim(Unknown::kTainted) : pool.constant(extent));
  }
  in.set_shape(0, result);
  const Bounds images = pool.bounds(dim_of(in, 0, 0));
  if (const auto indices = in.elements(2)) {
    for (const Dim index : *indices) {
      const Bounds bounds = pool.bounds(index);
      if (bounds.hi >= 0 && bounds.lo < images.hi) continue;
      in.fail(kRoiBatch, {2, 0},
              {"batch index {} in {} is outside the {} images of {}", Index(index), OperandRef(2), dim_of(in, 0, 0),
               OperandRef(0)});
      break;
    }
  }
}

void max_roi_pool(Inference& in) {
  DimPool& pool = in.dims();
  check_rank(in, 0, {4}, kRoiShapes);
  check_shape(in, 1, Dims{Dim(Unknown::kNotTracked), pool.constant(5)}, kRoiShapes, "regions");
  const auto pooled = in.ints_attribute("pooled_shape");
  if (!pooled) return;
  if (pooled->size() != 2 || (*pooled)[0] < 1 || (*pooled)[1] < 1) {
    in.fail(kRoiExtents, {}, {"{} of MaxRoiPool has to be 2 numbers of at least 1", AttributeName("pooled_shape")});
    return;
  }
  in.set_shape(0, Dims{dim_of(in, 1, 0), dim_of(in, 0, 1), pool.constant((*pooled)[0]), pool.constant((*pooled)[1])});
}

void max_unpool(Inference& in) {
  DimPool& pool = in.dims();
  const auto data = in.shape(0);
  if (!data) return;
  if (data->size() < 3) {
    in.fail(kWindowRank, {0}, {"{} has rank {}, MaxUnpool needs at least 3", OperandRef(0), data->size()});
    return;
  }
  check_shape(in, 1, *data, kUnpoolShapes, "indices", 0);
  const std::size_t spatial = data->size() - 2;
  const auto kernel = spatial_attribute(in, "kernel_shape", spatial, 1, 1);
  const auto strides = spatial_attribute(in, "strides", spatial, 1, 1);
  const auto pads = spatial_attribute(in, "pads", 2 * spatial, 0, INT64_MIN);
  Dims result = unknown_dims(data->size(), Unknown::kDataDependent);
  if (in.has(2)) {
    const auto wanted = in.elements(2);
    if (wanted && wanted->size() == result.size()) result = copy_dims(*wanted);
  } else if (kernel && strides && pads) {
    result[0] = (*data)[0];
    result[1] = (*data)[1];
    for (std::size_t i = 0; i < spatial; ++i) {
      const Dim reach = pool.mul(pool.sub((*data)[i + 2], pool.constant(1)), pool.constant((*strides)[i]));
      const Dim cut = pool.add(pool.constant((*pads)[i]), pool.constant((*pads)[i + spatial]));
      result[i + 2] = pool.sub(pool.add(reach, pool.constant((*kernel)[i])), cut);
    }
  }
  in.set_shape(0, result);
}

/// Rows of the result where all operands are constants.
std::optional<std::vector<std::int64_t>> selected_boxes(Inference& in) {
  const auto shape = in.shape("scores");
  const auto extents = shape ? followed_extents(in.dims(), *shape) : std::nullopt;
  const auto boxes = in.float_constants("boxes"), scores = in.float_constants("scores");
  const auto limit = in.constant("max_output_boxes_per_class");
  if (in.failed() || !extents || !boxes || !scores || !limit) return std::nullopt;
  BoxSuppression operands{*boxes,
                          *scores,
                          (*extents)[0],
                          (*extents)[1],
                          (*extents)[2],
                          *limit,
                          0,
                          std::nullopt,
                          in.int_attribute("center_point_box", 0) != 0};
  const auto elements = static_cast<std::size_t>(operands.batch * operands.count);
  if (boxes->size() != elements * 4 || scores->size() != elements * static_cast<std::size_t>(operands.classes))
    return std::nullopt;
  for (const std::string_view name : {"iou_threshold", "score_threshold"}) {
    if (!in.has(name)) continue;
    const auto threshold = in.float_constants(name);
    if (!threshold || threshold->size() != 1) return std::nullopt;
    if (name == "score_threshold") {
      operands.lowest_score = threshold->front();
    } else if (operands.overlap = threshold->front(); !(operands.overlap >= 0 && operands.overlap <= 1)) {
      return std::nullopt;
    }
  }
  return suppress_boxes(operands, in.facts().meter());
}

void non_max_suppression(Inference& in) {
  DimPool& pool = in.dims();
  const std::int64_t center = in.int_attribute("center_point_box", 0);
  if (center != 0 && center != 1)
    in.fail(kBoxFormat, {},
            {"{} of NonMaxSuppression is {}, it has to be 0 or 1", AttributeName("center_point_box"), center});
  const Dim batch = better(pool, dim_of(in, 0, 0), dim_of(in, 1, 0)),
            boxes = better(pool, dim_of(in, 0, 1), dim_of(in, 1, 2));
  check_shape(in, 0, Dims{batch, boxes, pool.constant(4)}, kBoxShapes, "boxes");
  check_shape(in, 1, Dims{batch, dim_of(in, 1, 1), boxes}, kBoxShapes, "scores", 0);
  // No maximum means no output, and so does a negative one (onnxruntime, ReferenceEvaluator).
  const auto is_zero = [&](Dim dim) { return pool.is_constant(dim, 0); };
  const bool none = !in.has(2) || in.constant("max_output_boxes_per_class").value_or(1) <= 0 || is_zero(batch) ||
                    is_zero(boxes) || is_zero(dim_of(in, 1, 1));
  const auto rows = none ? std::optional<std::vector<std::int64_t>>(std::in_place) : selected_boxes(in);
  const Dim count =
      rows ? pool.constant(static_cast<std::int64_t>(rows->size() / 3)) : in.fresh(0, 0, Unknown::kDataDependent);
  in.set_shape(0, Dims{count, pool.constant(3)});
  std::int64_t last = 0;
  for (const Dim extent : {batch, dim_of(in, 1, 1), boxes}) last = std::max(last, pool.bounds(extent).hi);
  if (last < (std::int64_t{1} << 53))
    in.set_range(0, {0, static_cast<double>(std::max<std::int64_t>(last - 1, 0)), false});
  if (!rows || rows->empty()) return;
  Dims elements;
  for (const std::int64_t part : *rows) elements.push_back(pool.constant(part));
  in.set_elements(0, std::move(elements));
}

void grid_sample(Inference& in) {
  DimPool& pool = in.dims();
  // Opset 20 renamed the modes; runtimes take both names.
  choice_attribute(in, "mode", "linear", {"linear", "nearest", "cubic", "bilinear", "bicubic"}, kGridMode);
  choice_attribute(in, "padding_mode", "zeros", {"zeros", "border", "reflection"}, kGridMode);
  const auto data = in.shape(0), grid = in.shape(1);
  for (const int operand : {0, 1}) {
    const auto shape = in.shape(operand);
    if (!shape || (shape->size() >= 3 && (in.opset() >= 20 || shape->size() == 4))) continue;
    in.fail(kGridShapes, {operand},
            {"{} has rank {}, GridSample needs {}", OperandRef(operand), shape->size(),
             in.opset() >= 20 ? "at least 3" : "4"});
    return;
  }
  if (data && grid) {
    Dims expected = copy_dims(*grid);
    if (data->size() == grid->size()) expected.front() = data->front();
    expected.back() = pool.constant(static_cast<std::int64_t>(data->size()) - 2);
    if (data->size() != grid->size()) {
      in.fail(kGridShapes, {1, 0},
              {"grid {} has rank {}, {} has rank {}", OperandRef(1), grid->size(), OperandRef(0), data->size()});
    } else {
      check_shape(in, 1, expected, kGridShapes, "grid", 0);
    }
  }
  const auto ranked = data ? data : grid;
  if (!ranked) return;
  Dims result = unknown_dims(ranked->size());
  result[0] = better(pool, dim_of(in, 0, 0), dim_of(in, 1, 0));
  result[1] = dim_of(in, 0, 1);
  if (grid && grid->size() == result.size())
    for (std::size_t i = 2; i < result.size(); ++i) result[i] = (*grid)[i - 1];
  in.set_shape(0, result);
}

void affine_grid(Inference& in) {
  if (!check_list(in, 1)) return;
  DimPool& pool = in.dims();
  const auto size = in.elements(1);
  const auto count = in.length("size");
  if (!check_rank(in, 0, {3}, kAffineShapes)) return;
  if (count && *count != 4 && *count != 5) {
    in.fail(kAffineShapes, {1}, {"{} has {} entries, AffineGrid needs 4 or 5", OperandRef(1), *count});
    return;
  }
  const auto rows = pool.as_constant(dim_of(in, 0, 1));
  const auto spatial = count ? std::optional(*count - 2) : rows;
  if (!spatial || (*spatial != 2 && *spatial != 3)) return;
  check_shape(in, 0,
              Dims{size ? (*size)[0] : Dim(Unknown::kNotTracked), pool.constant(*spatial), pool.constant(*spatial + 1)},
              kAffineShapes, "theta");
  Dims result = unknown_dims(static_cast<std::size_t>(*spatial) + 2, Unknown::kDataDependent);
  result.front() = dim_of(in, 0, 0);
  if (size && size->size() == static_cast<std::size_t>(*spatial) + 2) {
    result.front() = better(pool, (*size)[0], result.front());
    for (std::size_t i = 1; i + 1 < result.size(); ++i) result[i] = (*size)[i + 1];
  }
  result.back() = pool.constant(*spatial);
  in.set_shape(0, result);
}

void col2im(Inference& in) {
  DimPool& pool = in.dims();
  if (!check_rank(in, 0, {3}, kBlockShapes) || !check_list(in, 1) || !check_list(in, 2)) return;
  const auto image = in.elements("image_shape"), block = in.elements("block_shape");
  const auto axes = in.length("image_shape"), block_axes = in.length("block_shape");
  if (axes && block_axes && *axes != *block_axes) {
    in.fail(kBlockShapes, {2, 1},
            {"block {} has {} axes, image {} has {}", OperandRef(2), *block_axes, OperandRef(1), *axes});
    return;
  }
  const auto count = axes ? axes : block_axes;
  // A rank is not taken from a dim beyond what contents can be.
  if (!count || *count < 1 || *count > static_cast<std::int64_t>(kMaxContent)) return;
  const auto spatial = static_cast<std::size_t>(*count);
  Dims result = unknown_dims(spatial + 2, Unknown::kDataDependent);
  result[0] = dim_of(in, 0, 0);
  if (!spatial_attribute(in, "strides", spatial, 1, 1) || !spatial_attribute(in, "dilations", spatial, 1, 1) ||
      !spatial_attribute(in, "pads", 2 * spatial, 0, 0))
    return in.set_shape(0, result);
  if (block) {
    const Dim elements = element_count(pool, *block), columns = dim_of(in, 0, 1);
    const auto width = pool.as_constant(columns), size = pool.as_constant(elements);
    if (size && *size < 1) {
      in.fail(kBlockShapes, {2}, {"block {} of shape {} has no elements", OperandRef(2), *block});
      return;
    }
    if (width && size && *width % *size != 0) {
      in.fail(kBlockShapes, {0, 2},
              {"axis 1 of {}, {} elements, is not divisible into blocks of {} elements", OperandRef(0), *width, *size});
    } else {
      result[1] = pool.floor_div(columns, elements);
    }
  }
  if (image && image->size() + 2 == result.size()) std::copy(image->begin(), image->end(), result.begin() + 2);
  in.set_shape(0, result);
}

void center_crop_pad(Inference& in) {
  if (!check_list(in, 1)) return;
  const auto data = in.shape(0);
  if (!data) return;
  std::vector<int> axes;
  if (const auto given = in.ints_attribute("axes")) {
    const auto normalised = normalise_axes(in, *given, static_cast<int>(data->size()), 0, kCropAxes, kCropAxesOnce);
    if (!normalised) return in.set_shape(0, unknown_dims(data->size(), Unknown::kTainted));
    axes = *normalised;
  } else {
    for (std::size_t i = 0; i < data->size(); ++i) axes.push_back(static_cast<int>(i));
  }
  const auto count = in.length("shape");
  const auto wanted = in.elements("shape");
  Dims result = copy_dims(*data);
  for (const int axis : axes) result[static_cast<std::size_t>(axis)] = Dim(Unknown::kDataDependent);
  if (count && *count != static_cast<std::int64_t>(axes.size())) {
    in.fail(kCropLength, {1, 0},
            {"{} has {} entries for {} axes of {}", OperandRef(1), *count, axes.size(), OperandRef(0)});
  } else if (wanted && wanted->size() == axes.size()) {
    for (std::size_t i = 0; i < axes.size(); ++i) result[static_cast<std::size_t>(axes[i])] = (*wanted)[i];
  }
  in.set_shape(0, result);
}

/// An image that cannot be decoded gives an empty tensor, so not even the channels are certain.
void image_decoder(Inference& in) {
  check_rank(in, 0, {1}, kImageStream);
  check_choice(in, "pixel_format", in.string_attribute("pixel_format", "RGB"), {"RGB", "BGR", "Grayscale"},
               kImageFormat);
  in.set_shape(0, unknown_dims(3, Unknown::kDataDependent));
}

const RegisterOps kRegisterImage{
    OpEntry("RoiAlign").infer(roi_align).constraint(kRoiShapes).constraint(kRoiExtents).constraint(kRoiBatch),
    OpEntry("MaxRoiPool").infer(max_roi_pool).constraint(kRoiShapes).constraint(kRoiExtents),
    OpEntry("MaxUnpool")
        .host("output_shape")
        .infer(max_unpool)
        .constraint(kWindowRank)
        .constraint(kWindowAttributes)
        .constraint(kUnpoolShapes),
    // Its limits are numbers, which onnxruntime's CUDA kernel reads on the host (OrtMemTypeCPUInput 2, 3 and 4), and
    // which torchvision.ops.nms takes as such.
    OpEntry("NonMaxSuppression")
        .host("max_output_boxes_per_class")
        .host("iou_threshold")
        .host("score_threshold")
        .infer(non_max_suppression)
        .constraint(kBoxShapes)
        .constraint(kBoxFormat),
    OpEntry("GridSample").infer(grid_sample).constraint(kGridShapes).constraint(kGridMode),
    OpEntry("AffineGrid").host("size").infer(affine_grid).constraint(kAffineShapes),
    OpEntry("Col2Im")
        .host("image_shape")
        .host("block_shape")
        .infer(col2im)
        .constraint(kBlockShapes)
        .constraint(kWindowAttributes),
    OpEntry("CenterCropPad")
        .host("shape")
        .infer(center_crop_pad)
        .constraint(kCropAxes)
        .constraint(kCropAxesOnce)
        .constraint(kCropLength),
    OpEntry("ImageDecoder").infer(image_decoder).constraint(kImageFormat).constraint(kImageStream),
};

}  // namespace
}  // namespace tensorlint::ops
