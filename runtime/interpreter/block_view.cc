#include "runtime/interpreter/block_view.h"

#include <utility>

#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

bool is_depth_last(const ops::Inference& in) { return in.string_attribute("mode", "DCR") == "CRD"; }

}  // namespace

ReorderedBox reordered(const Extents& seen, std::span<const std::size_t> order) {
  const std::vector<std::int64_t> own = strides_of(seen);
  ReorderedBox box;
  for (const std::size_t axis : order) {
    box.extents.push_back(seen[axis]);
    box.strides.push_back(own[axis]);
  }
  return box;
}

BlockView depth_to_space_view(const ops::Inference& in, const Extents& data, std::int64_t block) {
  const std::int64_t depth = data[1] / (block * block);
  if (is_depth_last(in)) return {{data[0], depth, block, block, data[2], data[3]}, {0, 1, 4, 2, 5, 3}};
  return {{data[0], block, block, depth, data[2], data[3]}, {0, 3, 4, 1, 5, 2}};
}

BlockView space_to_depth_view(const ops::Inference& in, const Extents& data, std::int64_t block) {
  Extents seen{data[0], data[1], data[2] / block, block, data[3] / block, block};
  if (is_depth_last(in)) return {std::move(seen), {0, 1, 3, 5, 2, 4}};
  return {std::move(seen), {0, 3, 5, 1, 2, 4}};
}

}  // namespace tensorlint::runtime
