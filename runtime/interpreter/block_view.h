#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/ops/inference.h"
#include "runtime/values/host_tensor.h"

namespace tensorlint::runtime {

/// A box of elements, its axes in the order of a result, and where each is in the data.
struct ReorderedBox {
  Extents extents;
  std::vector<std::int64_t> strides;
};
/// Data seen as `seen`, with its axes in another order.
ReorderedBox reordered(const Extents& seen, std::span<const std::size_t> order);

/// Data [N, C, H, W] with axes of their own for what becomes depth or space, and their order in the result. Source:
/// ONNX DepthToSpace and SpaceToDepth, opsets 1 to 13; `mode` is DCR or CRD, of both in which it is given.
struct BlockView {
  Extents seen;
  std::array<std::size_t, 6> order;
};
BlockView depth_to_space_view(const ops::Inference& in, const Extents& data, std::int64_t block);
BlockView space_to_depth_view(const ops::Inference& in, const Extents& data, std::int64_t block);

}  // namespace tensorlint::runtime
