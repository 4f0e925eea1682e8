// Quantisation. Source: ONNX QuantizeLinear, DequantizeLinear (10, 13, 19, 21, 23, 24, 25, 28), DynamicQuantizeLinear
// (11), QLinearConv (10), QLinearMatMul (10, 21).
#include <algorithm>
#include <cmath>

#include "ir/ops/checks.h"
#include "ir/ops/matmul.h"
#include "ir/ops/windows.h"

namespace tensorlint::ops {
namespace {

const Constraint kScaleShape{"quantization_scale_shape", ConstraintKind::kShapes,
                             "the scale is one element, one an index of the axis, or one a block"};
const Constraint kZeroPointShape{"quantization_zero_point_shape", ConstraintKind::kShapes,
                                 "the zero point has the scale's shape", true};
const Constraint kScaleNotZero{"quantization_scale_not_zero", ConstraintKind::kDomain,
                               "what is quantised is divided by the scale"};
const Constraint kQuantizationAxis{"quantization_axis", ConstraintKind::kAxisRange, "-rank <= axis < rank"};
const Constraint kBlockSize{"quantization_block_size", ConstraintKind::kAttribute, "block_size is not negative"};

const Constraint kQuantizationPrecision{"quantization_precision", ConstraintKind::kAttribute,
                                        "precision is a floating dtype"};

/// Shape, scale and zero point of both directions: operands are data, scale, zero point.
void quantization(Inference& in) {
  DimPool& pool = in.dims();
  const auto data = in.shape(0), scale = in.shape(1), zero = in.shape(2);
  if (data) in.set_shape(0, *data);
  if (!scale) return;
  const auto one_element = [&](std::span<const Dim> shape) {
    return shape.empty() || (shape.size() == 1 && pool.is_constant(shape.front(), 1));
  };
  if (zero && !(one_element(*scale) && one_element(*zero)))
    check_shape(in, 2, *scale, kZeroPointShape, "zero point", 1);
  if (one_element(*scale)) return;
  const std::int64_t block = in.int_attribute("block_size", 0);
  if (block < 0) {
    in.fail(kBlockSize, {}, {"{} of {} is {}, at least 0 needed", AttributeName("block_size"), in.call().name, block});
    return;
  }
  if (in.opset() < 13) {
    check_one_element(in, 1, kScaleShape, "scale");
    return;
  }
  if (!data) return;
  const bool blocked = block > 0;
  const std::size_t wanted = blocked ? data->size() : 1;
  if (scale->size() != wanted) {
    in.fail(kScaleShape, {1, 0},
            {"scale {} of shape {} for {} of shape {}: rank {} needed", OperandRef(1), *scale, OperandRef(0), *data,
             wanted});
    return;
  }
  // The axis of a scale with one element is ignored, and a symbolic extent may be 1.
  const std::int64_t axis = in.int_attribute("axis", 1);
  const auto rank = static_cast<std::int64_t>(data->size());
  if (!blocked && (axis < -rank || axis >= rank) && pool.bounds(scale->front()).contains(1)) return;
  const auto normalised = normalise_axis(in, axis, static_cast<int>(data->size()), 0, kQuantizationAxis);
  if (!normalised) return;
  const auto along = static_cast<std::size_t>(*normalised);
  if (blocked) {
    Dims expected = copy_dims(*data);
    expected[along] = pool.ceil_div(expected[along], pool.constant(block));
    check_shape(in, 1, expected, kScaleShape, "scale", 0);
  } else if (!pool.bounds(scale->front()).contains(1)) {
    check_shape(in, 1, Dims{(*data)[along]}, kScaleShape, "scale", 0);
  }
}

void set_named_dtype(Inference& in, int result, std::int64_t code) {
  if (!is_known_dtype(code)) return;
  const DTypeSet named(static_cast<DType>(code));
  if (named.is_subset_of(in.result(result).dtypes)) in.set_dtype(result, named);
}

void quantize_linear(Inference& in) {
  quantization(in);
  const Range& scale = in.operand(1).range;
  if (in.has(1) && scale.lo == 0 && scale.hi == 0)
    in.fail(kScaleNotZero, {1, 0},
            {"the scale {} is 0: every element of {} is divided by it and becomes the smallest or largest number",
             OperandRef(1), OperandRef(0)});
  const std::int64_t precision = in.int_attribute("precision", 0);
  if (precision != 0 && !(is_known_dtype(precision) && DTypeSet::floats().contains(static_cast<DType>(precision))))
    in.fail(kQuantizationPrecision, {},
            {"{} of QuantizeLinear is {}, which is not the number of a floating dtype", AttributeName("precision"),
             precision});
  // The zero point's dtype, which binds the result's, wins; without one uint8 is the default.
  if (in.has(2)) return;
  const std::int64_t code = in.int_attribute("output_dtype", 0);
  set_named_dtype(in, 0, code == 0 ? static_cast<std::int64_t>(DType::kUint8) : code);
}

void dequantize_linear(Inference& in) {
  quantization(in);
  const std::int64_t code = in.int_attribute("output_dtype", 0);
  if (code != 0) {
    set_named_dtype(in, 0, code);
  } else {
    const DTypeSet common = in.result(0).dtypes & in.operand(1).dtypes;
    if (!common.empty()) in.set_dtype(0, common);
  }
}

void dynamic_quantize_linear(Inference& in) {
  if (const auto data = in.shape(0)) in.set_shape(0, *data);
  in.set_shape(1, {});
  in.set_shape(2, {});
  in.set_range(1, {0, HUGE_VAL, true});
}

void qlinear_conv(Inference& in) {
  if (const auto shape = conv_shape(in, 0, 3, 8)) in.set_shape(0, *shape);
  for (const int operand : {1, 2, 6, 7}) check_one_element(in, operand, kScaleShape, "scale or zero point");
  // Of the weights: one for all, or one a filter.
  for (const int operand : {4, 5}) {
    const auto scale = in.shape(operand);
    const auto may_be_one = [&](Dim extent) { return in.dims().bounds(extent).contains(1); };
    if (!scale || std::ranges::all_of(*scale, may_be_one)) continue;
    check_shape(in, operand, Dims{dim_of(in, 3, 0)}, kScaleShape, "scale or zero point of the weights", 3);
  }
}

void qlinear_matmul(Inference& in) {
  const auto result = matmul_shape(in, 0, 3);
  if (result) in.set_shape(0, *result);
  const auto a = in.shape(0), b = in.shape(3);
  for (const int parameter : {0, 1}) {
    if (a) check_matrix_parameter(in, 1 + parameter, *a, true, kScaleShape, "A");
    if (b) check_matrix_parameter(in, 4 + parameter, *b, false, kScaleShape, "B");
    if (result) check_matrix_parameter(in, 6 + parameter, *result, true, kScaleShape, "the result");
  }
}

OpEntry quantizer(std::string_view name, InferFunction function) {
  return OpEntry(name)
      .infer(function)
      .constraint(kScaleShape)
      .constraint(kZeroPointShape)
      .constraint(kQuantizationAxis)
      .constraint(kBlockSize);
}

const RegisterOps kRegisterQuantization{
    quantizer("QuantizeLinear", quantize_linear).constraint(kQuantizationPrecision).constraint(kScaleNotZero),
    quantizer("DequantizeLinear", dequantize_linear),
    OpEntry("DynamicQuantizeLinear").infer(dynamic_quantize_linear),
    with_conv_constraints(OpEntry("QLinearConv").infer(qlinear_conv)).constraint(kScaleShape),
    OpEntry("QLinearMatMul")
        .infer(qlinear_matmul)
        .constraint(kScaleShape)
        .constraint(kMatMulInner)
        .constraint(kMatMulRank)
        .constraint(kMatMulBroadcast),
};

}  // namespace
}  // namespace tensorlint::ops
