// Elements moved between axes and added at the borders. Source: ONNX DepthToSpace (opsets 1, 11, 13), SpaceToDepth (1,
// 13), Pad (1, 2, 11, 13, 18 with axes, 19 with wrap).
#include <algorithm>

#include "ir/ops/contents.h"
#include "runtime/interpreter/axes.h"
#include "runtime/interpreter/block_view.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

/// Blocks whose area fits.
std::int64_t block_size(Evaluation& e) {
  const std::int64_t block = e.in().int_attribute("blocksize", 1);
  if (block < 1 || block > (std::int64_t{1} << 31)) e.fail("the block size is {}", block);
  return block;
}

/// The data, seen with more axes, in another order of these, as the result.
void permute(Evaluation& e, const BlockView& view) {
  const ReorderedBox box = reordered(view.seen, view.order);
  copy_region(e.result(), {0, strides_of(box.extents)}, e.operand(0), {0, box.strides}, box.extents);
}

void depth_to_space(Evaluation& e) { permute(e, depth_to_space_view(e.in(), e.operand(0).extents(), block_size(e))); }

void space_to_depth(Evaluation& e) { permute(e, space_to_depth_view(e.in(), e.operand(0).extents(), block_size(e))); }

/// Elements added before and after each axis; negative ones are cut off.
struct Pads {
  std::vector<std::int64_t> before, after;
};

constexpr std::int64_t kMostPadding = std::int64_t{1} << 60;  // sums of two and an extent fit

Pads read_pads(Evaluation& e, std::size_t rank) {
  bool given = false, has_axes = false;
  const auto pads = ops::constant_list(e.in(), e.opset() < 2 ? "paddings" : "pads", given);
  const auto axes = ops::constant_list(e.in(), "axes", has_axes);
  if (!pads || (has_axes && !axes)) e.fail("the pads do not follow from the operands");
  Pads result{std::vector<std::int64_t>(rank, 0), std::vector<std::int64_t>(rank, 0)};
  const std::size_t count = pads->size() / 2;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t axis = has_axes ? from_front((*axes)[i], rank) : i;
    for (const std::int64_t pad : {(*pads)[i], (*pads)[i + count]})
      if (pad < -kMostPadding || pad > kMostPadding) e.fail("axis {} cannot be padded by {}", axis, pad);
    result.before[axis] = (*pads)[i];
    result.after[axis] = (*pads)[i + count];
  }
  return result;
}

HostTensor fill_value(Evaluation& e, DType dtype) {
  if (e.opset() >= 11 && e.has(2)) {
    if (e.operand(2).size() != 1) e.fail("the constant value has {} elements instead of one", e.operand(2).size());
    return e.operand(2);
  }
  HostTensor value(dtype, {}, e.memory());
  if (dtype == DType::kString) return value;
  if (is_float(dtype)) {
    const double number = e.in().float_attribute("value", 0);
    store(value, 0, 1, &number);
  } else {
    std::fill_n(value.mutable_raw(), value.bytes(), std::byte{0});
  }
  return value;
}

void pad_constant(Evaluation& e, const Pads& pads) {
  const HostTensor& data = e.operand(0);
  HostTensor& result = e.result();
  fill(result, fill_value(e, data.dtype()));
  const std::vector<std::int64_t> from = strides_of(data.extents()), to = strides_of(result.extents());
  Extents inside = data.extents();
  std::int64_t first = 0, target = 0;
  for (std::size_t axis = 0; axis < data.rank(); ++axis) {
    const std::int64_t cut = std::min(pads.before[axis], std::int64_t{0});
    inside[axis] += cut + std::min(pads.after[axis], std::int64_t{0});
    if (inside[axis] <= 0) return;
    first -= cut * from[axis];
    target += std::max(pads.before[axis], std::int64_t{0}) * to[axis];
  }
  copy_region(result, {target, to}, data, {first, from}, inside);
}

/// Where position `at`, outside [0, extent) or inside, is taken from.
std::int64_t mirrored(std::int64_t at, std::int64_t extent, std::string_view mode) {
  if (mode == "edge") return std::clamp<std::int64_t>(at, 0, extent - 1);
  const std::int64_t period = mode == "wrap" ? extent : std::max<std::int64_t>(2 * (extent - 1), 1);
  const std::int64_t rest = (at % period + period) % period;
  return rest < extent ? rest : period - rest;
}

/// The position in the data of each position of the result, axis by axis. What negative pads cut off is not seen by
/// positive ones of the other side.
List<std::int64_t> sources(Evaluation& e, std::int64_t extent, std::int64_t before, std::int64_t after,
                           std::int64_t wanted, std::string_view mode) {
  const std::int64_t cut = -std::min(before, std::int64_t{0});
  const std::int64_t seen = extent - cut + std::min(after, std::int64_t{0});
  if (seen <= 0 && wanted > 0) e.fail("an axis without elements cannot be padded by {}", mode);
  List<std::int64_t> positions(e.memory().resource());
  positions.reserve(static_cast<std::size_t>(wanted));
  for (std::int64_t i = 0; i < wanted; ++i)
    positions.push_back(cut + mirrored(i - std::max(before, std::int64_t{0}), seen, mode));
  return positions;
}

void pad(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  const Pads pads = read_pads(e, data.rank());
  const std::string_view mode = e.in().string_attribute("mode", "constant");
  if (mode == "constant" || data.rank() == 0) return pad_constant(e, pads);
  HostTensor& result = e.result();
  if (result.size() == 0) return;
  // From the last axis to the first, each as slices of what is done: long runs are moved as such. Those that become
  // shorter come before: what lies between is then no larger than the operand or the result.
  std::vector<std::size_t> axes;
  for (const bool shrinks : {true, false})
    for (std::size_t axis = data.rank(); axis-- > 0;)
      if ((result.extent(axis) < data.extent(axis)) == shrinks && (pads.before[axis] != 0 || pads.after[axis] != 0))
        axes.push_back(axis);
  HostTensor done = data;
  for (const std::size_t axis : axes) {
    Extents extents = done.extents();
    extents[axis] = result.extent(axis);
    HostTensor next(data.dtype(), std::move(extents), e.memory());
    pick_slices(next, done, axis,
                sources(e, data.extent(axis), pads.before[axis], pads.after[axis], result.extent(axis), mode));
    done = std::move(next);
  }
  e.set(0, std::move(done));
}

const RegisterEvaluators kLayouts{
    Evaluator("DepthToSpace").evaluate(depth_to_space).error(Rounding::exact()),
    Evaluator("SpaceToDepth").evaluate(space_to_depth).error(Rounding::exact()),
    Evaluator("Pad").evaluate(pad).error(Rounding::exact()),
};

}  // namespace
}  // namespace tensorlint::runtime
