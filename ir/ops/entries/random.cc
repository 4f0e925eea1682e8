// Random numbers. Source: ONNX RandomNormal, RandomUniform and their Like forms (opsets 1, 22), Multinomial (7, 22),
// Bernoulli (15, 22).
#include <algorithm>
#include <cmath>

#include "ir/ops/attributes.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/ranges.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

const Constraint kRandomDtype{"random_dtype", ConstraintKind::kAttribute,
                              "`dtype`, or else the operand's, is one that the operator gives"};
const Constraint kRandomShape{"random_shape", ConstraintKind::kAttribute, "no extent is negative"};
const Constraint kSampleShape{"multinomial_shape", ConstraintKind::kShapes, "the operand has the axes batch and class"};
const Constraint kSampleSize{"multinomial_sample_size", ConstraintKind::kAttribute, "sample_size is at least 1"};
const Constraint kProbability{"bernoulli_probability", ConstraintKind::kDomain, "0 <= p <= 1"};

void shape_attribute(Inference& in) {
  in.set_dtype(0, dtype_attribute(in, "dtype", kRandomDtype).value_or(DType::kFloat32));
  const auto extents = in.ints_attribute("shape");
  if (!extents) return;
  Dims shape;
  for (const std::int64_t extent : *extents) {
    if (extent < 0)
      in.fail(kRandomShape, {}, {"{} of {} has the extent {}", AttributeName("shape"), in.call().name, extent});
    shape.push_back(extent < 0 ? Dim(Unknown::kTainted) : in.dims().constant(extent));
  }
  in.set_shape(0, shape);
}

/// Shape of the operand, dtype of the attribute or else of the operand.
void like_operand(Inference& in) {
  unary_shape(in);
  if (const auto dtype = dtype_attribute(in, "dtype", kRandomDtype)) {
    in.set_dtype(0, *dtype);
    return;
  }
  const Fact& operand = in.operand(0);
  if (in.attribute("dtype") != nullptr || operand.kind != ValueKind::kTensor) return;
  const DTypeSet possible = operand.dtypes & in.result().dtypes;
  if (possible.empty() && !operand.dtypes.empty()) {
    in.fail(kRandomDtype, {0},
            {"{} is {}, which {} does not give, and {} is left out", OperandRef(0), operand.dtypes, in.call().name,
             AttributeName("dtype")});
  } else {
    in.set_dtype(0, possible);
  }
}

void uniform_range(Inference& in) {
  const double low = in.float_attribute("low", 0), high = in.float_attribute("high", 1);
  const Range range{std::min(low, high), std::max(low, high), false};
  // The ends are rounded to the dtype, and so are the numbers between them.
  if (std::isfinite(low) && std::isfinite(high) && in.result().dtypes.proves(DTypeSet::floats()))
    in.set_range(0, widened(range, in.result().dtypes));
}

void random_uniform(Inference& in) {
  shape_attribute(in);
  uniform_range(in);
}

void random_uniform_like(Inference& in) {
  like_operand(in);
  uniform_range(in);
}

void multinomial(Inference& in) {
  DimPool& pool = in.dims();
  in.set_dtype(0, dtype_attribute(in, "dtype", kRandomDtype).value_or(DType::kInt32));
  const std::int64_t size = in.int_attribute("sample_size", 1);
  if (size < 1) in.fail(kSampleSize, {}, {"sample_size {} of Multinomial is less than 1", size});
  const Dim samples = size < 1 ? Dim(Unknown::kTainted) : pool.constant(size);
  const auto data = in.shape(0);
  if (data && data->size() != 2)
    in.fail(kSampleShape, {0},
            {"{} has rank {}, Multinomial takes the axes batch and class", OperandRef(0), data->size()});
  const bool legal = data && data->size() == 2;
  in.set_shape(0, Dims{legal ? data->front() : Dim(), samples});
  const Bounds classes = pool.bounds(legal ? data->back() : Dim());
  if (classes.lo >= 1 && classes.hi < std::int64_t{1} << 53)
    set_computed_range(in, 0, {0, static_cast<double>(classes.hi) - 1, false});
}

void bernoulli(Inference& in) {
  like_operand(in);
  in.set_range(0, {0, 1, false});
  const auto shape = in.shape(0);
  const Range& range = in.operand(0).range;
  if (shape && !range.nan && in.dims().bounds(element_count(in.dims(), *shape)).lo >= 1 &&
      (range.lo > 1 || range.hi < 0))
    in.fail(kProbability, {0}, {"the probabilities {} lie in {}, outside [0, 1]", OperandRef(0), range});
}

OpEntry random(std::string_view name, InferFunction function) {
  return OpEntry(name).infer(function).constraint(kRandomDtype);
}

const RegisterOps kRegisterRandom{
    random("RandomNormal", shape_attribute).constraint(kRandomShape).computes(Opcode::kDrawNormal),
    random("RandomUniform", random_uniform).constraint(kRandomShape).computes(Opcode::kDrawUniform),
    random("RandomNormalLike", like_operand).computes(Opcode::kDrawNormal),
    random("RandomUniformLike", random_uniform_like).computes(Opcode::kDrawUniform),
    random("Multinomial", multinomial).constraint(kSampleShape).constraint(kSampleSize),
    random("Bernoulli", bernoulli).constraint(kProbability),
};

}  // namespace
}  // namespace tensorlint::ops
