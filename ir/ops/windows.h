#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {

/// Sliding windows of convolutions and pools.

extern const Constraint
    kWindowAttributes;  ///< strides, dilations, pads, kernel_shape fit the spatial axes and are in range
extern const Constraint kWindowPadding;  ///< pads or auto_pad; a pool's pads are smaller than its kernel
extern const Constraint kWindowRank;     ///< N, C and at least one spatial axis
extern const Constraint kWindowFits;     ///< the dilated window is not larger than the padded extent

enum class Padding : std::uint8_t { kExplicit, kSameUpper, kSameLower, kValid };

struct Windows {
  std::vector<std::int64_t> strides, dilations, begin_pads, end_pads;  ///< one a spatial axis
  Padding padding = Padding::kExplicit;
  bool ceil = false;
  bool contradictory = false;  ///< auto_pad together with pads: runtimes disagree on which counts
};

/// Reads strides, dilations, pads, auto_pad, ceil_mode. Lists of a wrong length or with values that no runtime takes
/// fail kWindowAttributes; then nullopt.
std::optional<Windows> read_windows(Inference& in, std::size_t spatial);

/// The list attribute `name` of one entry a spatial axis, each at least `lowest`; `fallback` where it is missing.
/// Fails kWindowAttributes.
std::optional<std::vector<std::int64_t>> spatial_attribute(Inference& in, std::string_view name, std::size_t count,
                                                           std::int64_t fallback, std::int64_t lowest);

/// (kernel - 1) * dilation + 1.
Dim dilated(DimPool& pool, Dim kernel, std::int64_t dilation);

/// Number of windows along spatial axis `axis` of a convolution: `must_fit` fails kWindowFits where the window is
/// larger than the padded extent. Pools of some runtimes round up there, so these get an unknown dim.
Dim window_count(Inference& in, const Windows& windows, std::size_t axis, Dim extent, Dim kernel, bool must_fit);

extern const Constraint kConvChannels;
extern const Constraint kConvGroups;
extern const Constraint kConvKernelShape;
extern const Constraint kConvBias;

/// Shape of Conv's result; fails on channels, groups, ranks, bias. Operands by index; bias -1: none.
/// `channels_last`: data and result are [N, d..., C]. Filters are [M, C/group, k...] always.
/// Source: ONNX Conv, opsets 1, 11, 22.
std::optional<Dims> conv_shape(Inference& in, int x, int w, int bias, bool channels_last = false);
/// The entry with the constraints that conv_shape checks.
OpEntry with_conv_constraints(OpEntry entry);

/// Shape of a pool's result with `kernel_shape` windows over operand 0; fails kWindowRank, kWindowAttributes.
std::optional<Dims> pool_shape(Inference& in, bool channels_last = false);

/// The same over all spatial axes at once: extents of 1.
std::optional<Dims> global_pool_shape(Inference& in, bool channels_last = false);

}  // namespace tensorlint::ops
