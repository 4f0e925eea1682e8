#include "ir/ops/windows.h"

#include <algorithm>

namespace tensorlint::ops {

const Constraint kWindowAttributes{"window_attributes", ConstraintKind::kAttribute,
                                   "one entry a spatial axis; strides and dilations at least 1"};
const Constraint kWindowPadding{"window_padding", ConstraintKind::kAttribute,
                                "a convolution has pads or auto_pad, a pool's pads are smaller than its kernel"};
const Constraint kWindowRank{"window_rank", ConstraintKind::kRank,
                             "the operand has axes N, C and at least one spatial axis"};
const Constraint kWindowFits{"window_fits", ConstraintKind::kShapes,
                             "the dilated window is not larger than the padded extent"};
const Constraint kConvChannels{"conv_channels", ConstraintKind::kShapes,
                               "channels of the data = group * channels of a filter"};
const Constraint kConvGroups{"conv_groups", ConstraintKind::kShapes, "group >= 1 divides the number of filters"};
const Constraint kConvKernelShape{"conv_kernel_shape", ConstraintKind::kShapes,
                                  "kernel_shape, where given, is that of the filters"};
const Constraint kConvBias{"conv_bias", ConstraintKind::kShapes, "the bias has one element a filter"};

std::optional<std::vector<std::int64_t>> spatial_attribute(Inference& in, std::string_view name, std::size_t count,
                                                           std::int64_t fallback, std::int64_t lowest) {
  const auto given = in.ints_attribute(name);
  if (!given) return std::vector<std::int64_t>(count, fallback);
  if (given->size() != count) {
    in.fail(kWindowAttributes, {},
            {"{} of {} has {} entries, {} needed", AttributeName(name), in.call().name, given->size(), count});
    return std::nullopt;
  }
  for (const std::int64_t value : *given) {
    if (value >= lowest) continue;
    in.fail(kWindowAttributes, {},
            {"{} of {} has {}, at least {} needed", AttributeName(name), in.call().name, value, lowest});
    return std::nullopt;
  }
  return std::vector<std::int64_t>(given->begin(), given->end());
}

std::optional<Windows> read_windows(Inference& in, std::size_t spatial) {
  Windows windows;
  const std::string_view padding = in.string_attribute("auto_pad", "NOTSET");
  if (padding == "SAME_UPPER") {
    windows.padding = Padding::kSameUpper;
  } else if (padding == "SAME_LOWER") {
    windows.padding = Padding::kSameLower;
  } else if (padding == "VALID") {
    windows.padding = Padding::kValid;
  } else if (padding != "NOTSET" && !padding.empty()) {
    in.fail(kWindowAttributes, {},
            {"{} of {} is `{}`, it has to be NOTSET, SAME_UPPER, SAME_LOWER or VALID", AttributeName("auto_pad"),
             in.call().name, padding});
    return std::nullopt;
  }
  windows.ceil = in.int_attribute("ceil_mode", 0) != 0;
  const auto pads = spatial_attribute(in, "pads", 2 * spatial, 0, 0);
  auto strides = spatial_attribute(in, "strides", spatial, 1, 1);
  auto dilations = spatial_attribute(in, "dilations", spatial, 1, 1);
  if (!pads || !strides || !dilations) return std::nullopt;
  windows.strides = std::move(*strides);
  windows.dilations = std::move(*dilations);
  windows.begin_pads.assign(pads->begin(), pads->begin() + static_cast<std::ptrdiff_t>(spatial));
  windows.end_pads.assign(pads->begin() + static_cast<std::ptrdiff_t>(spatial), pads->end());
  if (windows.padding != Padding::kExplicit && in.attribute("pads") != nullptr &&
      in.call().schema->input_index("W") >= 0)
    in.fail(kWindowPadding, {},
            {"{} has both {} and {} {}", in.call().name, AttributeName("pads"), AttributeName("auto_pad"), padding});
  windows.contradictory = windows.padding != Padding::kExplicit &&
                          std::any_of(pads->begin(), pads->end(), [](std::int64_t pad) { return pad != 0; });
  return windows;
}

Dim dilated(DimPool& pool, Dim kernel, std::int64_t dilation) {
  const Dim one = pool.constant(1);
  return pool.add(pool.mul(pool.sub(kernel, one), pool.constant(dilation)), one);
}

Dim window_count(Inference& in, const Windows& windows, std::size_t axis, Dim extent, Dim kernel, bool must_fit) {
  DimPool& pool = in.dims();
  if (windows.contradictory) return Dim(Unknown::kNotTracked);
  const Dim stride = pool.constant(windows.strides[axis]), one = pool.constant(1);
  if (windows.padding == Padding::kSameUpper || windows.padding == Padding::kSameLower) {
    // onnxruntime pads a pool as if its window were not dilated, so that fewer windows fit than the specification says.
    if (!must_fit && windows.dilations[axis] != 1) return Dim(Unknown::kNotTracked);
    return pool.ceil_div(extent, stride);
  }

  const Dim window = dilated(pool, kernel, windows.dilations[axis]);
  const Dim begin = pool.constant(windows.begin_pads[axis]), end = pool.constant(windows.end_pads[axis]);
  const Dim padded = pool.add(pool.add(extent, begin), end);
  const Dim room = pool.sub(padded, window);
  if (pool.bounds(room).hi < 0) {
    // onnxruntime rounds towards 0: a pool's window that hangs over by less than two strides gives one element or none.
    if (must_fit || pool.bounds(pool.add(room, pool.add(stride, stride))).hi <= 0)
      in.fail(
          kWindowFits, {0},
          {"window of {} over spatial axis {} of {}, which has {} with padding", window, axis, OperandRef(0), padded});
    return Dim(Unknown::kTainted);
  }
  const Dim floored = pool.add(pool.floor_div(room, stride), one);
  if (!windows.ceil) return floored;
  // Windows that would start in the padding behind the data are dropped, but at most one: equal to both being capped as
  // long as that padding is no larger than the window.
  const Dim raised = pool.add(pool.ceil_div(room, stride), one);
  if (windows.padding == Padding::kValid) return pool.equal(floored, raised) ? floored : Dim(Unknown::kNotTracked);
  const Dim starts = pool.ceil_div(pool.add(extent, begin), stride);
  const auto count = pool.as_constant(raised), starting = pool.as_constant(starts);
  if (count && starting) return *count > *starting ? pool.sub(raised, one) : raised;
  const auto excess = pool.as_constant(pool.sub(pool.add(end, stride), window)),
             slack = pool.as_constant(pool.sub(window, end));
  if (!excess || !slack || *slack < 0) return Dim(Unknown::kNotTracked);
  return *excess <= 0 ? raised : starts;
}

namespace {

/// [N, d..., C] as [N, C, d...].
Dims channels_first(std::span<const Dim> dims) {
  Dims result = copy_dims(dims);
  if (result.size() > 2) std::rotate(result.begin() + 1, result.end() - 1, result.end());
  return result;
}

/// [N, C, d...] as [N, d..., C].
Dims channels_to_end(Dims dims) {
  if (dims.size() > 2) std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  return dims;
}

/// Conv's result for data [N, C, d...].
std::optional<Dims> conv_of(Inference& in, std::optional<std::span<const Dim>> data, int x, int w, int bias) {
  DimPool& pool = in.dims();
  const auto filters = in.shape(w);
  const std::int64_t group = in.int_attribute("group", 1);
  if (group < 1)
    in.fail(kConvGroups, {}, {"{} of {} is {}, at least 1 needed", AttributeName("group"), in.call().name, group});
  const auto ranked = data ? data : filters;
  if (!ranked) return std::nullopt;
  for (const auto& [operand, shape] : {std::pair(x, data), std::pair(w, filters)}) {
    if (!shape || shape->size() >= 3) continue;
    in.fail(kWindowRank, {operand},
            {"{} has rank {}, {} needs at least 3", OperandRef(operand), shape->size(), in.call().name});
    return std::nullopt;
  }
  if (data && filters && data->size() != filters->size()) {
    in.fail(kWindowRank, {w, x},
            {"{} of shape {} and {} of shape {} differ in rank", OperandRef(x), *data, OperandRef(w), *filters});
    return unknown_dims(data->size(), Unknown::kTainted);
  }
  const std::size_t spatial = ranked->size() - 2;
  Dims result = unknown_dims(ranked->size());
  if (data) result[0] = (*data)[0];
  if (filters) result[1] = (*filters)[0];
  if (bias >= 0) {
    if (const auto bias_shape = in.shape(bias)) {
      if (bias_shape->size() != 1) {
        in.fail(kConvBias, {bias},
                {"bias {} has rank {}, it has to have 1 axis", OperandRef(bias), bias_shape->size()});
      } else if (filters) {
        result[1] = same_extent(in, (*filters)[0], bias_shape->front(), w, bias, kConvBias, {"bias of a convolution"});
      }
    }
  }
  if (group >= 1) {
    if (data && filters)
      same_extent(in, (*data)[1], pool.mul((*filters)[1], pool.constant(group)), x, w, kConvChannels,
                  group == 1 ? Message("input channels") : Message("input channels (with group = {})", group));
    const auto count = filters ? pool.as_constant((*filters)[0]) : std::nullopt;
    if (count && *count % group != 0)
      in.fail(kConvGroups, {w}, {"{} filters of {} are not divisible into {} groups", *count, OperandRef(w), group});
  }
  const auto windows = read_windows(in, spatial);
  const auto kernel = spatial_attribute(in, "kernel_shape", spatial, 0, 1);
  if (!windows || !kernel) return result;
  const bool given = in.attribute("kernel_shape") != nullptr;
  for (std::size_t i = 0; i < spatial; ++i) {
    Dim extent = filters ? (*filters)[i + 2] : Dim(Unknown::kNotTracked);
    if (given) {
      const Dim named = pool.constant((*kernel)[i]);
      if (filters && pool.differ(named, extent)) {
        in.fail(kConvKernelShape, {w},
                {"{} says {} along spatial axis {}, {} of shape {} has {}", AttributeName("kernel_shape"), (*kernel)[i],
                 i, OperandRef(w), *filters, extent});
        return result;
      }
      extent = named;
    }
    if (data) result[i + 2] = window_count(in, *windows, i, (*data)[i + 2], extent, true);
  }
  return result;
}

}  // namespace

std::optional<Dims> conv_shape(Inference& in, int x, int w, int bias, bool channels_last) {
  if (!channels_last) return conv_of(in, in.shape(x), x, w, bias);
  std::optional<Dims> data;
  if (const auto shape = in.shape(x)) data = channels_first(*shape);
  auto result = conv_of(in, data, x, w, bias);
  if (result) result = channels_to_end(std::move(*result));
  return result;
}

OpEntry with_conv_constraints(OpEntry entry) {
  return entry.constraint(kWindowAttributes)
      .constraint(kWindowPadding)
      .constraint(kWindowRank)
      .constraint(kWindowFits)
      .constraint(kConvChannels)
      .constraint(kConvGroups)
      .constraint(kConvKernelShape)
      .constraint(kConvBias);
}

std::optional<Dims> pool_shape(Inference& in, bool channels_last) {
  const auto shape = in.shape(0);
  if (!shape) return std::nullopt;
  if (shape->size() < 3) {
    in.fail(kWindowRank, {0}, {"{} has rank {}, {} needs at least 3", OperandRef(0), shape->size(), in.call().name});
    return std::nullopt;
  }
  const Dims data = channels_last ? channels_first(*shape) : copy_dims(*shape);
  const std::size_t spatial = data.size() - 2;
  Dims result = unknown_dims(data.size());
  result[0] = data[0];
  result[1] = data[1];
  const auto windows = read_windows(in, spatial);
  const auto kernel = spatial_attribute(in, "kernel_shape", spatial, 0, 1);
  const bool given = in.attribute("kernel_shape") != nullptr;
  for (std::size_t i = 0; windows && kernel && given && i < spatial; ++i) {
    const std::int64_t pad = std::max(windows->begin_pads[i], windows->end_pads[i]);
    if (pad < (*kernel)[i]) continue;
    in.fail(kWindowPadding, {},
            {"{} pads {} elements along spatial axis {}, which has to be less than its kernel of {}", in.call().name,
             pad, i, (*kernel)[i]});
    break;
  }
  if (windows && kernel && given)
    for (std::size_t i = 0; i < spatial; ++i)
      result[i + 2] = window_count(in, *windows, i, data[i + 2], in.dims().constant((*kernel)[i]), false);
  return channels_last ? channels_to_end(std::move(result)) : result;
}

std::optional<Dims> global_pool_shape(Inference& in, bool channels_last) {
  const auto data = in.shape(0);
  if (!data) return std::nullopt;
  if (data->size() < 2) {
    in.fail(kWindowRank, {0}, {"{} has rank {}, {} needs at least 3", OperandRef(0), data->size(), in.call().name});
    return std::nullopt;
  }
  Dims result(data->size(), in.dims().constant(1));
  const std::size_t channels = channels_last ? data->size() - 1 : 1;
  result[0] = (*data)[0];
  result[channels] = (*data)[channels];
  return result;
}

}  // namespace tensorlint::ops
