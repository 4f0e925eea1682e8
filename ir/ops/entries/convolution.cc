// Convolutions. Source: ONNX Conv, ConvTranspose (1, 11, 22), ConvInteger (10), DeformConv (19, 22).
#include <algorithm>

#include "ir/ops/checks.h"
#include "ir/ops/windows.h"

namespace tensorlint::ops {
namespace {

const Constraint kTransposeChannels{"conv_transpose_channels", ConstraintKind::kShapes,
                                    "channels of the data = first extent of the filters, divisible by group"};
const Constraint kTransposeBias{"conv_transpose_bias", ConstraintKind::kShapes,
                                "the bias has group * second extent of the filters elements"};
const Constraint kTransposeExtent{"conv_transpose_extent", ConstraintKind::kShapes,
                                  "every extent of the result is at least 1"};
const Constraint kTransposeTarget{"conv_transpose_output_shape", ConstraintKind::kShapes,
                                  "as many windows fit into output_shape as the data have elements"};
const Constraint kDeformGroups{"deform_conv_groups", ConstraintKind::kShapes,
                               "offset_group >= 1 divides the input channels"};
const Constraint kDeformOffsets{"deform_conv_offsets", ConstraintKind::kShapes,
                                "offsets and mask have one entry a kernel element and result position"};
const Constraint kConvZeroPoint{"conv_zero_point", ConstraintKind::kShapes,
                                "a zero point is one element, or of the filters one a filter"};

void conv(Inference& in) {
  if (const auto shape = conv_shape(in, 0, 1, 2)) in.set_shape(0, *shape);
}

void conv_integer(Inference& in) {
  if (const auto shape = conv_shape(in, 0, 1, -1)) in.set_shape(0, *shape);
  check_one_element(in, 2, kConvZeroPoint, "zero point");
  const auto filters = in.shape(1), zero = in.shape(3);
  if (zero && zero->size() > 1) {
    in.fail(kConvZeroPoint, {3}, {"zero point {} has rank {}, at most 1 allowed", OperandRef(3), zero->size()});
  } else if (zero && zero->size() == 1 && filters && !filters->empty() && !in.dims().is_constant(zero->front(), 1)) {
    same_extent(in, (*filters)[0], zero->front(), 1, 3, kConvZeroPoint, {"zero points of a convolution"});
  }
}

/// The extent along one spatial axis of ConvTranspose's result.
Dim transposed_extent(Inference& in, const Windows& windows, std::size_t axis, Dim extent, Dim kernel,
                      std::int64_t output_padding) {
  DimPool& pool = in.dims();
  const Dim stride = pool.constant(windows.strides[axis]);
  const Dim window = dilated(pool, kernel, windows.dilations[axis]);
  if (windows.contradictory) return Dim(Unknown::kNotTracked);
  if (windows.padding == Padding::kSameUpper || windows.padding == Padding::kSameLower) {
    // Runtimes disagree where the window is smaller than the stride, and on output padding.
    const bool covers = pool.bounds(pool.sub(window, stride)).lo >= 0;
    return covers && output_padding == 0 ? pool.mul(extent, stride) : Dim(Unknown::kNotTracked);
  }
  Dim result = pool.mul(stride, pool.sub(extent, pool.constant(1)));
  result = pool.add(result, pool.add(pool.constant(output_padding), window));
  result = pool.sub(result, pool.add(pool.constant(windows.begin_pads[axis]), pool.constant(windows.end_pads[axis])));
  // An empty operand has no legal result either, but that is its own matter.
  if (pool.bounds(result).hi < 1 && pool.bounds(extent).lo >= 1) {
    in.fail(kTransposeExtent, {0},
            {"spatial axis {} of {}, {} elements, gives {} elements after padding is cut off", axis, OperandRef(0),
             extent, result});
    return Dim(Unknown::kTainted);
  }
  return result;
}

/// `output_shape` sets the pads, and pads are not negative: it may not be so large that another window would fit.
void check_target(Inference& in, const Windows& windows, std::size_t axis, Dim extent, Dim kernel,
                  std::int64_t wanted) {
  DimPool& pool = in.dims();
  // With SAME_* the reference implementation fills up with zeros.
  if (windows.padding == Padding::kSameUpper || windows.padding == Padding::kSameLower || windows.contradictory) return;
  // Which of explicit pads and output_shape counts is not the same everywhere.
  if (windows.begin_pads[axis] != 0 || windows.end_pads[axis] != 0) return;
  const Dim stride = pool.constant(windows.strides[axis]);
  const Dim reached = pool.add(pool.mul(stride, extent), dilated(pool, kernel, windows.dilations[axis]));
  if (in.failed() || reached.is_unknown() || pool.bounds(reached).hi > wanted) return;
  in.fail(kTransposeTarget, {0, 1},
          {"{} of ConvTranspose asks for {} along spatial axis {}, {} elements of {} give less than {}",
           AttributeName("output_shape"), wanted, axis, extent, OperandRef(0), reached});
}

void conv_transpose(Inference& in) {
  DimPool& pool = in.dims();
  const auto data = in.shape(0), filters = in.shape(1);
  const std::int64_t group = in.int_attribute("group", 1);
  if (group < 1)
    in.fail(kConvGroups, {}, {"{} of ConvTranspose is {}, at least 1 needed", AttributeName("group"), group});
  const auto ranked = data ? data : filters;
  if (!ranked) return;
  for (const int operand : {0, 1}) {
    const auto shape = in.shape(operand);
    if (!shape || shape->size() >= 3) continue;
    in.fail(kWindowRank, {operand},
            {"{} has rank {}, ConvTranspose needs at least 3", OperandRef(operand), shape->size()});
    return;
  }
  if (data && filters && data->size() != filters->size()) {
    in.fail(kWindowRank, {1, 0},
            {"{} of shape {} and {} of shape {} differ in rank", OperandRef(0), *data, OperandRef(1), *filters});
    in.set_shape(0, unknown_dims(data->size(), Unknown::kTainted));
    return;
  }
  Dims result = unknown_dims(ranked->size());
  if (data) result[0] = (*data)[0];
  if (data && filters) same_extent(in, (*data)[1], (*filters)[0], 0, 1, kTransposeChannels, {"input channels"});
  if (group >= 1) {
    const auto channels = pool.as_constant((*ranked)[data ? 1 : 0]);
    if (channels && *channels % group != 0)
      in.fail(kTransposeChannels, {data ? 0 : 1},
              {"{} channels of {} are not divisible into {} groups", *channels, OperandRef(data ? 0 : 1), group});
    if (filters) result[1] = pool.mul((*filters)[1], pool.constant(group));
  }
  if (const auto bias = in.shape(2)) {
    if (bias->size() != 1) {
      in.fail(kTransposeBias, {2}, {"bias {} has rank {}, it has to have 1 axis", OperandRef(2), bias->size()});
    } else {
      result[1] = same_extent(in, result[1], bias->front(), 1, 2, kTransposeBias, {"bias of a transposed convolution"});
    }
  }
  const std::size_t spatial = ranked->size() - 2;
  const auto windows = read_windows(in, spatial);
  const auto kernel = spatial_attribute(in, "kernel_shape", spatial, 0, 1);
  const auto output_padding = spatial_attribute(in, "output_padding", spatial, 0, INT64_MIN);
  if (!windows || !kernel || !output_padding) {
    in.set_shape(0, result);
    return;
  }
  for (std::size_t i = 0; filters && in.attribute("kernel_shape") != nullptr && i < spatial; ++i) {
    if (!pool.differ(pool.constant((*kernel)[i]), (*filters)[i + 2])) continue;
    in.fail(kConvKernelShape, {1},
            {"{} says {} along spatial axis {}, {} of shape {} has {}", AttributeName("kernel_shape"), (*kernel)[i], i,
             OperandRef(1), *filters, (*filters)[i + 2]});
    return in.set_shape(0, result);
  }
  const auto wanted = in.ints_attribute("output_shape");
  if (wanted && !wanted->empty()) {
    // Some exporters write the batch and channel extents too.
    if (wanted->size() != spatial && wanted->size() != spatial + 2) {
      in.fail(
          kWindowAttributes, {},
          {"{} of ConvTranspose has {} entries, {} needed", AttributeName("output_shape"), wanted->size(), spatial});
    } else {
      for (std::size_t i = 0; i < spatial; ++i) {
        const std::int64_t extent = (*wanted)[wanted->size() - spatial + i];
        if (extent >= 0) result[i + 2] = pool.constant(extent);
        if (data && filters) check_target(in, *windows, i, (*data)[i + 2], (*filters)[i + 2], extent);
      }
    }
    in.set_shape(0, result);
    return;
  }
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::int64_t padding = (*output_padding)[i], limit = std::max(windows->strides[i], windows->dilations[i]);
    if (padding >= 0 && (padding == 0 || padding < limit)) continue;
    in.fail(kWindowAttributes, {},
            {"{} of ConvTranspose has {} along spatial axis {}, it has to be at least 0 and below {}",
             AttributeName("output_padding"), padding, i, limit});
    result[i + 2] = Dim(Unknown::kTainted);
    return in.set_shape(0, result);
  }
  for (std::size_t i = 0; i < spatial; ++i) {
    Dim extent = filters ? (*filters)[i + 2] : Dim(Unknown::kNotTracked);
    if (in.attribute("kernel_shape") != nullptr) extent = pool.constant((*kernel)[i]);
    if (data) result[i + 2] = transposed_extent(in, *windows, i, (*data)[i + 2], extent, (*output_padding)[i]);
  }
  in.set_shape(0, result);
}

void deform_conv(Inference& in) {
  DimPool& pool = in.dims();
  const auto shape = conv_shape(in, 0, 1, 3);
  const auto offset = in.shape(2), mask = in.shape(4), data = in.shape(0), filters = in.shape(1);
  const std::int64_t groups = in.int_attribute("offset_group", 1);
  if (shape) in.set_shape(0, *shape);
  if (groups < 1) {
    in.fail(kDeformGroups, {}, {"{} of DeformConv is {}, at least 1 needed", AttributeName("offset_group"), groups});
    return;
  }
  const auto channels = data && data->size() > 1 ? pool.as_constant((*data)[1]) : std::nullopt;
  if (channels && *channels % groups != 0)
    in.fail(kDeformGroups, {0},
            {"{} channels of {} are not divisible into {} offset groups", *channels, OperandRef(0), groups});
  if (!shape || !filters || in.failed()) return;
  Dim kernel = pool.constant(groups);
  for (std::size_t i = 2; i < filters->size(); ++i) kernel = pool.mul(kernel, (*filters)[i]);
  const auto check = [&](int operand, std::span<const Dim> given, Dim entries) {
    if (given.size() != shape->size()) {
      in.fail(kDeformOffsets, {operand},
              {"{} has rank {}, {} needed", OperandRef(operand), given.size(), shape->size()});
      return;
    }
    same_extent(in, entries, given[1], 1, operand, kDeformOffsets, {"entries for the kernel's elements"});
    for (std::size_t i = 0; i < given.size(); ++i)
      if (i != 1) same_extent(in, (*shape)[i], given[i], 0, operand, kDeformOffsets, {"positions of the result"});
  };
  if (offset) check(2, *offset, pool.mul(kernel, pool.constant(static_cast<std::int64_t>(filters->size()) - 2)));
  if (mask) check(4, *mask, kernel);
}

OpEntry convolution(std::string_view name, InferFunction function) {
  return with_conv_constraints(OpEntry(name).infer(function));
}

const RegisterOps kRegisterConvolution{
    convolution("Conv", conv).computes(Opcode::kConv),
    convolution("ConvInteger", conv_integer).constraint(kConvZeroPoint),
    convolution("DeformConv", deform_conv).constraint(kDeformGroups).constraint(kDeformOffsets),
    OpEntry("ConvTranspose")
        .infer(conv_transpose)
        .constraint(kWindowAttributes)
        .constraint(kWindowPadding)
        .constraint(kWindowRank)
        .constraint(kConvGroups)
        .constraint(kConvKernelShape)
        .constraint(kTransposeChannels)
        .constraint(kTransposeBias)
        .constraint(kTransposeExtent)
        .constraint(kTransposeTarget),
};

}  // namespace
}  // namespace tensorlint::ops
