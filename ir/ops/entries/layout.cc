// Elements moved between axes and added at the borders. Source: ONNX DepthToSpace (opsets 1-28), SpaceToDepth (1-28),
// Pad (1, 2 with attributes, 11 with operands, 18 with axes, 19 with wrap, ... 25).
#include <algorithm>

#include "ir/ops/attributes.h"
#include "ir/ops/contents.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

const Constraint kBlockRank{"block_rank", ConstraintKind::kRank, "the operand has four axes: N, C, H, W", true};
const Constraint kSpaceBlock{"block_size", ConstraintKind::kAttribute, "blocksize is at least 1"};
const Constraint kBlockMode{"block_mode", ConstraintKind::kAttribute, "`mode` is DCR or CRD"};
const Constraint kBlockDivides{"block_divides", ConstraintKind::kShapes, "the blocks divide the extents"};
const Constraint kPadAxes{"pad_axes_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank", true};
const Constraint kPadOnce{"pad_axes_once", ConstraintKind::kDuplicateAxis, "no axis is padded twice", true};
const Constraint kPadLength{"pad_length", ConstraintKind::kShapes, "two pads for each padded axis", true};
const Constraint kPadReflect{"pad_reflect", ConstraintKind::kShapes, "reflected elements are fewer than the extent"};
const Constraint kPadEmpty{"pad_of_nothing", ConstraintKind::kShapes, "an axis whose elements are repeated has some"};
const Constraint kPadExtent{"pad_extent", ConstraintKind::kShapes, "no extent becomes negative"};
const Constraint kPadMode{"pad_mode", ConstraintKind::kAttribute,
                          "`mode` is constant, reflect, edge or, from opset 19 on, wrap"};

/// The block size, and the operand's four extents; nullopt where something is not known or fails.
std::optional<std::int64_t> block_size(Inference& in) {
  in.set_range(0, in.operand(0).range);
  if (in.attribute("mode") != nullptr) choice_attribute(in, "mode", "DCR", {"DCR", "CRD"}, kBlockMode);
  const auto data = in.shape(0);
  if (data && data->size() != 4)
    in.fail(kBlockRank, {0},
            {"{} has rank {}, {} needs the four axes N, C, H, W", OperandRef(0), data->size(), in.call().name});
  const std::int64_t size = in.int_attribute("blocksize", 0);
  if (size < 1) in.fail(kSpaceBlock, {}, {"blocksize {} of {} is less than 1", size, in.call().name});
  if (size < 1 || (data && data->size() != 4)) return std::nullopt;
  return size;
}

Dim divided(Inference& in, Dim extent, Dim parts, std::size_t axis) {
  DimPool& pool = in.dims();
  const Dim any = pool.fresh(in.call().site, 0xffff'ffffU, Unknown::kNotTracked);
  if (pool.never_equal(extent, pool.mul(parts, any)))
    in.fail(kBlockDivides, {0},
            {"extent {} of axis {} of {} is not a multiple of {}", extent, Axis(axis), OperandRef(0), parts});
  return pool.floor_div(extent, parts);
}

void depth_to_space(Inference& in) {
  const auto size = block_size(in);
  if (!size) {
    if (!in.shape(0) || in.rank(0) == 4) in.set_shape(0, unknown_dims(4));
    return;
  }
  const auto data = in.shape(0);
  if (!data) {
    in.set_shape(0, unknown_dims(4));
    return;
  }
  DimPool& pool = in.dims();
  const Dim block = pool.constant(*size);
  in.set_shape(0, Dims{(*data)[0], divided(in, (*data)[1], pool.mul(block, block), 1), pool.mul((*data)[2], block),
                       pool.mul((*data)[3], block)});
}

void space_to_depth(Inference& in) {
  const auto size = block_size(in);
  const auto data = in.shape(0);
  if (!size || !data) {
    if (!data || data->size() == 4) in.set_shape(0, unknown_dims(4));
    return;
  }
  DimPool& pool = in.dims();
  const Dim block = pool.constant(*size);
  in.set_shape(0, Dims{(*data)[0], pool.mul((*data)[1], pool.mul(block, block)), divided(in, (*data)[2], block, 2),
                       divided(in, (*data)[3], block, 3)});
}

void pad(Inference& in) {
  DimPool& pool = in.dims();
  // "wrap" came with opset 19; onnxruntime takes it before, and exporters write it.
  const std::string_view mode =
      choice_attribute(in, "mode", "constant", {"constant", "reflect", "edge", "wrap"}, kPadMode);
  Range fill{0, 0, false};
  if (const Attribute* value = in.attribute("value"); value != nullptr) {
    fill = {static_cast<double>(value->f), static_cast<double>(value->f), false};
  } else if (in.has(2)) {
    fill = in.operand(2).range;
  }
  in.set_range(0, mode == "constant" ? join(in.operand(0).range, fill) : in.operand(0).range);

  const auto data = in.shape(0);
  if (!data) return;
  bool given = false, has_axes = false;
  const auto pads = integer_list(in, in.opset() < 2 ? "paddings" : "pads", given);
  const auto axis_list = integer_list(in, "axes", has_axes);
  const auto constants = axis_list ? constant_extents(pool, *axis_list) : std::nullopt;
  if (has_axes && !constants) {
    in.set_shape(0, unknown_dims(data->size(), Unknown::kDataDependent));
    return;
  }
  std::vector<int> axes;
  if (has_axes) {
    const auto normalised = normalise_axes(in, *constants, static_cast<int>(data->size()), 0, kPadAxes, kPadOnce);
    if (!normalised) {
      in.set_shape(0, unknown_dims(data->size(), Unknown::kTainted));
      return;
    }
    axes = *normalised;
  } else {
    for (std::size_t i = 0; i < data->size(); ++i) axes.push_back(static_cast<int>(i));
  }
  Dims result = copy_dims(*data);
  if (pads && pads->size() != 2 * axes.size()) {
    in.fail(kPadLength, in.has(1) ? std::vector<int>{1, 0} : std::vector<int>{0},
            {"{} pads for {} axes of {}, each needs two", pads->size(), axes.size(), OperandRef(0)});
    for (const int axis : axes) result[static_cast<std::size_t>(axis)] = Dim(Unknown::kTainted);
    in.set_shape(0, result);
    return;
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Dim& extent = result[static_cast<std::size_t>(axes[i])];
    for (const std::size_t side : {i, i + axes.size()}) {
      if (mode == "constant" || !pads || pool.bounds((*pads)[side]).lo < 1) continue;
      if (mode != "reflect" && pool.is_constant(extent, 0)) {
        in.fail(kPadEmpty, {0},
                {"axis {} of {} has no element that could be repeated {} times", Axis(axes[i]), OperandRef(0),
                 (*pads)[side]});
        break;
      }
      if (mode != "reflect" || pool.bounds(pool.sub((*pads)[side], extent)).lo < 0) continue;
      in.fail(kPadReflect, {0},
              {"axis {} of {} with extent {} cannot be reflected by {} elements", Axis(axes[i]), OperandRef(0), extent,
               (*pads)[side]});
      break;
    }
    extent = pads ? pool.add(extent, pool.add((*pads)[i], (*pads)[i + axes.size()])) : Dim(Unknown::kDataDependent);
    if (pool.bounds(extent).hi >= 0) continue;
    in.fail(kPadExtent, {0},
            {"axis {} of {} with extent {} becomes {}", Axis(axes[i]), OperandRef(0),
             (*data)[static_cast<std::size_t>(axes[i])], extent});
    extent = Dim(Unknown::kTainted);
  }
  in.set_shape(0, result);
}

OpEntry blocks(std::string_view name, InferFunction function) {
  return OpEntry(name)
      .infer(function)
      .constraint(kBlockRank)
      .constraint(kSpaceBlock)
      .constraint(kBlockMode)
      .constraint(kBlockDivides);
}

const RegisterOps kRegisterLayout{
    blocks("DepthToSpace", depth_to_space),
    blocks("SpaceToDepth", space_to_depth),
    OpEntry("Pad")
        .computes(Opcode::kPad)
        .infer(pad)
        .host("pads")
        .host("constant_value")
        .host("axes")
        .constraint(kPadAxes)
        .constraint(kPadOnce)
        .constraint(kPadLength)
        .constraint(kPadExtent)
        .constraint(kPadReflect)
        .constraint(kPadEmpty)
        .constraint(kPadMode),
};

}  // namespace
}  // namespace tensorlint::ops
