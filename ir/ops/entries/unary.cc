// One operand, element by element. Source: ONNX; opsets in the table below are those of the schemas. Operators whose
// error is not fixed by the standard (Exp, Tanh, ...) get ranges with some units in the last place to spare, inside the
// function's own bounds.
#include <algorithm>
#include <cmath>

#include "ir/ops/contents.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/ranges.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

const Constraint kDomainLog{"log_domain", ConstraintKind::kDomain, "some element is not negative"};
const Constraint kDomainSqrt{"sqrt_domain", ConstraintKind::kDomain, "some element is not negative"};
const Constraint kDomainArc{"arc_domain", ConstraintKind::kDomain, "some element lies in [-1, 1]"};
const Constraint kDomainAcosh{"acosh_domain", ConstraintKind::kDomain, "some element is at least 1"};
const Constraint kClipBounds{"clip_scalar_bounds", ConstraintKind::kShapes, "min and max are scalars"};
const Constraint kDropoutRatio{"dropout_ratio", ConstraintKind::kDomain, "0 <= ratio < 1 in training"};
const Constraint kGeluMode{"gelu_approximate", ConstraintKind::kAttribute, "`approximate` is none or tanh"};

using Function = double (*)(double);

/// No element can be infinite.
bool is_bounded(const Range& range) { return !std::isinf(range.lo) && !std::isinf(range.hi); }

/// Sets the range of a function that rises (or falls) over [from, to], its domain; NaN comes from outside of it.
void monotonic(Inference& in, Function function, double from, double to, double lowest, double highest) {
  const Range& range = in.operand(0).range;
  const double a = function(std::clamp(range.lo, from, to)), b = function(std::clamp(range.hi, from, to));
  const bool leaves = range.lo < from || range.hi > to;
  const Range computed = widened(Range{std::min(a, b), std::max(a, b), range.nan || leaves}, in.result().dtypes);
  if (!std::isnan(a) && !std::isnan(b))
    in.set_range(0, {std::max(computed.lo, lowest), std::min(computed.hi, highest), computed.nan});
}

/// Fails where every element lies outside of the function's domain.
void check_domain(Inference& in, const Constraint& constraint, double from, double to) {
  const auto shape = in.shape(0);
  const Range& range = in.operand(0).range;
  if (!shape || range.nan || in.dims().bounds(element_count(in.dims(), *shape)).lo < 1) return;
  if (range.hi < from || range.lo > to)
    in.fail(constraint, {0},
            {"{} of {}, whose elements lie in {}, gives NaN everywhere", in.call().name, OperandRef(0), range});
}

constexpr double kInf = HUGE_VAL;
constexpr double kHalfPi = 1.5707963267948968;  // rounded up
constexpr double kPi = 3.1415926535897936;      // rounded up

void shape_only(Inference& in) { unary_shape(in); }

void exp(Inference& in) {
  unary_shape(in);
  monotonic(in, std::exp, -kInf, kInf, 0, kInf);
}

void log(Inference& in) {
  unary_shape(in);
  check_domain(in, kDomainLog, 0, kInf);
  // What never exceeds 0, NaN or not: a logarithm of logarithms. A constant 0 is a mask of -inf.
  const Range& range = in.operand(0).range;
  if (const auto shape = in.shape(0); shape && range.hi <= 0 && range.lo < range.hi && !in.failed()) {
    Message said{"{} of {}, whose elements lie in {}, gives NaN or -inf everywhere", in.call().name, OperandRef(0),
                 range};
    const Bounds count = in.dims().bounds(element_count(in.dims(), *shape));
    if (count.lo >= 1) {
      in.fail(kDomainLog, {0}, std::move(said));
    } else if (count.hi >= 1) {
      in.may_fail(kDomainLog, {0}, std::move(said), {"{} has any element", OperandRef(0)});
    }
  }
  monotonic(in, std::log, 0, kInf, -kInf, kInf);
}

void sqrt(Inference& in) {
  unary_shape(in);
  check_domain(in, kDomainSqrt, 0, kInf);
  monotonic(in, std::sqrt, 0, kInf, 0, kInf);
}

void sinh(Inference& in) {
  unary_shape(in);
  monotonic(in, std::sinh, -kInf, kInf, -kInf, kInf);
}

void cosh(Inference& in) {
  unary_shape(in);
  in.set_range(0, {1, kInf, in.operand(0).range.nan});
}

void tanh(Inference& in) {
  unary_shape(in);
  monotonic(in, std::tanh, -kInf, kInf, -1, 1);
}

void asin(Inference& in) {
  unary_shape(in);
  check_domain(in, kDomainArc, -1, 1);
  monotonic(in, std::asin, -1, 1, -kHalfPi - 0.1, kHalfPi + 0.1);
}

void acos(Inference& in) {
  unary_shape(in);
  check_domain(in, kDomainArc, -1, 1);
  monotonic(in, std::acos, -1, 1, -0.1, kPi + 0.1);
}

void atan(Inference& in) {
  unary_shape(in);
  monotonic(in, std::atan, -kInf, kInf, -kHalfPi - 0.1, kHalfPi + 0.1);
}

void asinh(Inference& in) {
  unary_shape(in);
  monotonic(in, std::asinh, -kInf, kInf, -kInf, kInf);
}

void acosh(Inference& in) {
  unary_shape(in);
  check_domain(in, kDomainAcosh, 1, kInf);
  monotonic(in, std::acosh, 1, kInf, 0, kInf);
}

void atanh(Inference& in) {
  unary_shape(in);
  check_domain(in, kDomainArc, -1, 1);
  monotonic(in, std::atanh, -1, 1, -kInf, kInf);
}

void sine(Inference& in) {
  unary_shape(in);
  in.set_range(0, {-1, 1, in.operand(0).range.nan || !is_bounded(in.operand(0).range)});
}

void erf(Inference& in) {
  unary_shape(in);
  if (in.operand(0).dtypes.proves(DTypeSet::floats())) monotonic(in, std::erf, -kInf, kInf, -1, 1);
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double soft_plus(double x) { return x > 30 ? x : std::log1p(std::exp(x)); }
double soft_sign(double x) { return std::isinf(x) ? std::copysign(1.0, x) : x / (1 + std::fabs(x)); }

void sigmoid(Inference& in) {
  unary_shape(in);
  monotonic(in, logistic, -kInf, kInf, 0, 1);
}

void softplus(Inference& in) {
  unary_shape(in);
  monotonic(in, soft_plus, -kInf, kInf, 0, kInf);
}

void softsign(Inference& in) {
  unary_shape(in);
  monotonic(in, soft_sign, -kInf, kInf, -1, 1);
  if (!is_bounded(in.operand(0).range)) in.result().range.nan = true;
}

void reciprocal(Inference& in) {
  unary_shape(in);
  const Range& range = in.operand(0).range;
  // At 0 the sign of the zero decides between the infinities.
  if (range.lo > 0 || range.hi < 0) {
    in.set_range(0, widened(Range{1 / range.hi, 1 / range.lo, range.nan}, in.result().dtypes));
  } else {
    in.set_range(0, {-kInf, kInf, range.nan});
  }
}

/// Functions that are exact: the range's ends and the elements themselves.
template <Function kFunction>
void exact(Inference& in) {
  unary_shape(in);
  const Range& range = in.operand(0).range;
  const double a = kFunction(range.lo), b = kFunction(range.hi);
  const bool falls = a > b;
  if (in.operand(0).dtypes.proves(DTypeSet::floats())) {
    in.set_range(0, {falls ? b : a, falls ? a : b, range.nan});
  } else {
    set_computed_range(in, 0, {falls ? b : a, falls ? a : b, false});
  }
  const Content* content = content_of(in, 0);
  if (content == nullptr || content->floats.empty()) return;
  std::vector<double> floats;
  for (const double value : content->floats) floats.push_back(kFunction(value));
  in.set_floats(0, std::move(floats));
}

double negated(double x) { return -x; }
double sign_of(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
double rectified(double x) { return x < 0 ? 0 : x; }

void neg(Inference& in) {
  exact<negated>(in);
  const Content* content = content_of(in, 0);
  if (content == nullptr || !content->floats.empty() || in.operand(0).dtypes != DTypeSet(DType::kInt64)) return;
  Dims elements;
  for (const Dim element : content->integers) elements.push_back(in.dims().sub(in.dims().constant(0), element));
  in.set_elements(0, std::move(elements));
}

void abs(Inference& in) {
  unary_shape(in);
  const Range& range = in.operand(0).range;
  const double largest = std::max(std::fabs(range.lo), std::fabs(range.hi));
  const double smallest = range.lo > 0 ? range.lo : range.hi < 0 ? -range.hi : 0;
  if (in.operand(0).dtypes.proves(DTypeSet::floats())) {
    in.set_range(0, {smallest, largest, range.nan});
  } else {
    set_computed_range(in, 0, {smallest, largest, false});  // the smallest integer has no absolute value
  }
  const Content* content = content_of(in, 0);
  if (content == nullptr) return;
  if (!content->floats.empty()) {
    std::vector<double> floats;
    for (const double value : content->floats) floats.push_back(std::fabs(value));
    in.set_floats(0, std::move(floats));
    return;
  }
  DimPool& pool = in.dims();
  Dims elements;
  for (const Dim element : content->integers) {
    const Bounds bounds = pool.bounds(element);
    const bool constant = pool.as_constant(element).has_value() && in.operand(0).dtypes == DTypeSet(DType::kInt64);
    elements.push_back(bounds.lo >= 0               ? element
                       : bounds.hi <= 0 && constant ? pool.sub(pool.constant(0), element)
                                                    : Dim(Unknown::kNotTracked));
  }
  in.set_elements(0, std::move(elements));
}

/// Infinity times 0 is NaN, where the ends of a range do not show it.
bool is_factor(double parameter) { return parameter > 0 && std::isfinite(parameter); }

/// A function that rises, with a parameter: its range from the operand's.
template <typename Rising>
void rising(Inference& in, bool rises, double lowest, double highest, Rising function) {
  unary_shape(in);
  if (!rises) return;
  const Range& range = in.operand(0).range;
  const Range computed = widened(Range{function(range.lo), function(range.hi), range.nan}, in.result().dtypes);
  if (!std::isnan(computed.lo) && !std::isnan(computed.hi))
    in.set_range(0, {std::max(computed.lo, lowest), std::min(computed.hi, highest), computed.nan});
}

void leaky_relu(Inference& in) {
  const double alpha = in.float_attribute("alpha", 0.01F);
  rising(in, is_factor(alpha), -kInf, kInf, [=](double x) { return x < 0 ? alpha * x : x; });
}

void elu(Inference& in) {
  const double alpha = in.float_attribute("alpha", 1);
  rising(in, is_factor(alpha), -kInf, kInf, [=](double x) { return x < 0 ? alpha * std::expm1(x) : x; });
}

void celu(Inference& in) {
  const double alpha = in.float_attribute("alpha", 1);
  rising(in, is_factor(alpha), -kInf, kInf, [=](double x) { return x < 0 ? alpha * std::expm1(x / alpha) : x; });
}

void selu(Inference& in) {
  const bool is_first = in.opset() < 6;  // with fewer digits
  const double alpha = in.float_attribute("alpha", is_first ? 1.6732F : 1.67326319F),
               gamma = in.float_attribute("gamma", is_first ? 1.0507F : 1.05070102F);
  rising(in, is_factor(alpha) && is_factor(gamma), -kInf, kInf,
         [=](double x) { return gamma * (x <= 0 ? alpha * std::expm1(x) : x); });
}

void hard_sigmoid(Inference& in) {
  const double alpha = in.float_attribute("alpha", 0.2F), beta = in.float_attribute("beta", 0.5F);
  rising(in, is_factor(alpha), 0, 1, [=](double x) { return std::clamp(alpha * x + beta, 0.0, 1.0); });
}

/// Gates x * g(x) with g from 0 to 1 rising: from a small negative minimum up to x itself. Infinity times 0 is NaN.
void gate(Inference& in, double minimum) {
  unary_shape(in);
  const Range& range = in.operand(0).range;
  const Range computed = widened(
      Range{range.lo >= 0 ? 0 : minimum, std::max(range.hi, 0.0), range.nan || !is_bounded(range)}, in.result().dtypes);
  in.set_range(0, {range.lo >= 0 ? 0 : computed.lo, computed.hi, computed.nan});
}

void gelu(Inference& in) {
  const std::string_view mode = in.string_attribute("approximate", "none");
  if (mode != "none" && mode != "tanh")
    in.fail(kGeluMode, {}, {"{} of Gelu is neither none nor tanh", AttributeName("approximate")});
  gate(in, -0.18);  // minimum -0.16997 (exact) and -0.17004 (tanh)
}

void mish(Inference& in) { gate(in, -0.32); }        // minimum -0.30884
void hard_swish(Inference& in) { gate(in, -0.38); }  // minimum -0.375

void swish(Inference& in) {
  const double alpha = in.float_attribute("alpha", 1);
  if (is_factor(alpha)) {
    gate(in, -0.29 / alpha);  // minimum -0.27846 / alpha
  } else {
    unary_shape(in);
  }
}

void thresholded_relu(Inference& in) {
  unary_shape(in);
  const Range& range = in.operand(0).range;
  if (in.float_attribute("alpha", 1) >= 0) {
    in.set_range(0, {0, std::max(range.hi, 0.0), range.nan});
  } else {
    in.set_range(0, {std::min(range.lo, 0.0), std::max(range.hi, 0.0), range.nan});
  }
}

void is_nan(Inference& in) {
  unary_shape(in);
  if (!in.operand(0).range.nan) in.set_range(0, {0, 0, false});
}

void clip(Inference& in) {
  unary_shape(in);
  const DTypeSet dtypes = in.operand(0).dtypes;
  Range range = in.operand(0).range;
  if (in.call().schema->input_index("min") < 0) {
    range.lo = std::max(range.lo, in.float_attribute("min", -kInf));
    range.hi = std::max(range.hi, in.float_attribute("min", -kInf));
    range.lo = std::min(range.lo, in.float_attribute("max", kInf));
    range.hi = std::min(range.hi, in.float_attribute("max", kInf));
    // The bounds are float32 numbers; in a narrower dtype they are rounded.
    const bool exact = dtypes.proves(DTypeSet(DType::kFloat32) | DTypeSet(DType::kFloat64));
    in.set_range(0, exact ? range : widened(range, dtypes));
    return;
  }
  for (const int bound : {1, 2}) {
    const auto shape = in.shape(bound);
    if (shape && !shape->empty() && in.dims().never_equal(element_count(in.dims(), *shape), in.dims().constant(1)))
      in.fail(kClipBounds, {bound}, {"the bound {} of shape {} has to be a scalar", OperandRef(bound), *shape});
  }
  // max wins where it is the smaller one. A bound that is NaN lets all through, or makes NaN of all.
  if (in.has(1)) {
    const Range& least = in.operand(1).range;
    range = {least.nan ? range.lo : std::max(range.lo, least.lo), std::max(range.hi, least.hi), range.nan || least.nan};
  }
  if (in.has(2)) {
    const Range& most = in.operand(2).range;
    range = {std::min(range.lo, most.lo), most.nan ? range.hi : std::min(range.hi, most.hi), range.nan || most.nan};
  }
  in.set_range(0, range);

  const Content* content = content_of(in, 0);
  if (content == nullptr || !content->floats.empty() || in.failed()) return;
  Dims elements = content->integers;
  for (const int bound : {1, 2}) {
    if (!in.has(bound)) continue;
    const auto limit = in.elements(bound);
    if (!limit || limit->size() != 1) return;
    for (Dim& element : elements)
      element = bound == 1 ? in.dims().max(element, limit->front()) : in.dims().min(element, limit->front());
  }
  in.set_elements(0, std::move(elements));
}

void dropout(Inference& in) {
  unary_shape(in);
  if (const auto shape = in.shape(0); shape && in.result_count() > 1) in.set_shape(1, *shape);
  const bool has_mode = in.call().schema->input_index("training_mode") >= 0;
  bool training = false;
  if (has_mode && in.has("training_mode")) {
    const auto mode = in.constant("training_mode");
    training = mode.value_or(1) != 0;
    if (mode == 1 && in.has("ratio")) {
      const auto ratio = in.float_constants("ratio");
      if (ratio && ratio->size() == 1 && !(ratio->front() >= 0 && ratio->front() < 1))
        in.fail(kDropoutRatio, {in.index_of("ratio")}, {"the ratio {} of Dropout is outside [0, 1)", ratio->front()});
    }
  } else if (!has_mode && in.opset() < 7) {
    training = in.int_attribute("is_test", 0) == 0;
  }
  if (!training) keep_elements(in, 0, 0);
}

/// Of the one operand.
template <Function kFunction>
double of(const ElementCall& call) {
  return kFunction(call.operands[0]);
}

double inverse(double x) { return 1 / x; }
double mish_of(double x) { return x * std::tanh(soft_plus(x)); }

double clip_element(const ElementCall& call) {
  const auto bound = [&](std::size_t operand, std::string_view name, double fallback) {
    const bool given = operand < call.operands.size() && !std::isnan(call.operands[operand]);
    return given ? call.operands[operand] : call.attribute(name, fallback);
  };
  return std::min(std::max(call.operands[0], bound(1, "min", -kInf)),
                  bound(2, "max", kInf));  // NOLINT: min may be above max
}

double elu_element(const ElementCall& call) {
  const double x = call.operands[0];
  return x > 0 ? x : call.attribute("alpha", 1) * std::expm1(x);
}

double celu_element(const ElementCall& call) {
  const double x = call.operands[0], alpha = call.attribute("alpha", 1);
  return std::max(x, 0.0) + std::min(alpha * std::expm1(x / alpha), 0.0);
}

double leaky_relu_element(const ElementCall& call) {
  const double x = call.operands[0];
  return x >= 0 ? x : call.attribute("alpha", 0.01) * x;
}

double hard_sigmoid_element(const ElementCall& call) {
  return std::clamp(call.attribute("alpha", 0.2) * call.operands[0] + call.attribute("beta", 0.5), 0.0, 1.0);
}

double thresholded_relu_element(const ElementCall& call) {
  const double x = call.operands[0];
  return x > call.attribute("alpha", 1) ? x : 0;
}

double swish_element(const ElementCall& call) {
  const double x = call.operands[0];
  return x * logistic(call.attribute("alpha", 1) * x);
}

double is_nan_element(const ElementCall& call) { return std::isnan(call.operands[0]) ? 1 : 0; }

OpEntry unary(std::string_view name, InferFunction function) {
  return OpEntry(name).trait(OpTrait::kElementwise).infer(function);
}

const RegisterOps kRegisterUnary{
    unary("Abs", abs).element(of<std::abs>).computes(Opcode::kAbs),
    unary("Acos", acos).element(of<std::acos>).constraint(kDomainArc),
    unary("Acosh", acosh).element(of<std::acosh>).constraint(kDomainAcosh),
    unary("Asin", asin).element(of<std::asin>).constraint(kDomainArc),
    unary("Asinh", asinh).element(of<std::asinh>).trait(OpTrait::kKeepsSign),
    unary("Atan", atan).element(of<std::atan>).trait(OpTrait::kKeepsSign),
    unary("Atanh", atanh).element(of<std::atanh>).constraint(kDomainArc),
    unary("Ceil", exact<std::ceil>).element(of<std::ceil>).computes(Opcode::kRound),
    unary("Celu", celu).element(celu_element).trait(OpTrait::kKeepsSign).trait(OpTrait::kUnboundedAbove),
    // The kernels of onnxruntime's CUDA provider read both bounds on the host (OrtMemTypeCPUInput 1 and 2 of Clip 11,
    // 12, 13), as torch.clamp does where they are numbers.
    unary("Clip", clip).element(clip_element).computes(Opcode::kClip).host("min").host("max").constraint(kClipBounds),
    unary("Cos", sine).element(of<std::cos>),
    unary("Cosh", cosh).element(of<std::cosh>).computes(Opcode::kCosh),
    OpEntry("Dropout")
        .computes(Opcode::kDropout)
        .infer(dropout)
        .host("ratio")
        .host("training_mode")
        .constraint(kDropoutRatio),
    unary("Elu", elu).element(elu_element).trait(OpTrait::kKeepsSign).trait(OpTrait::kUnboundedAbove),
    unary("Erf", erf).element(of<std::erf>).trait(OpTrait::kKeepsSign),
    unary("Exp", exp).element(of<std::exp>).computes(Opcode::kExp).trait(OpTrait::kUnboundedAbove),
    unary("Floor", exact<std::floor>).element(of<std::floor>).computes(Opcode::kRound),
    unary("Gelu", gelu).trait(OpTrait::kUnboundedAbove).constraint(kGeluMode),
    unary("HardSigmoid", hard_sigmoid).element(hard_sigmoid_element),
    unary("HardSwish", hard_swish).trait(OpTrait::kUnboundedAbove),
    unary("IsInf", shape_only),
    unary("IsNaN", is_nan).element(is_nan_element),
    unary("LeakyRelu", leaky_relu)
        .element(leaky_relu_element)
        .trait(OpTrait::kKeepsSign)
        .trait(OpTrait::kUnboundedAbove),
    unary("Log", log).element(of<std::log>).computes(Opcode::kLog).constraint(kDomainLog),
    unary("Mish", mish).element(of<mish_of>).trait(OpTrait::kUnboundedAbove),
    unary("Neg", neg).element(of<negated>).computes(Opcode::kNeg),
    unary("Reciprocal", reciprocal).element(of<inverse>),
    unary("Relu", exact<rectified>).element(of<rectified>).trait(OpTrait::kUnboundedAbove),
    unary("Round", exact<std::nearbyint>).element(of<std::nearbyint>).computes(Opcode::kRound),
    unary("Selu", selu).trait(OpTrait::kKeepsSign).trait(OpTrait::kUnboundedAbove),
    unary("Shrink", shape_only),
    unary("Sigmoid", sigmoid).element(of<logistic>).computes(Opcode::kSigmoid),
    unary("Sign", exact<sign_of>).computes(Opcode::kSign).element(of<sign_of>),
    unary("Sin", sine).element(of<std::sin>),
    unary("Sinh", sinh).element(of<std::sinh>).trait(OpTrait::kKeepsSign),
    unary("Softplus", softplus).element(of<soft_plus>).computes(Opcode::kSoftplus).trait(OpTrait::kUnboundedAbove),
    unary("Softsign", softsign).element(of<soft_sign>).trait(OpTrait::kKeepsSign),
    unary("Sqrt", sqrt).element(of<std::sqrt>).computes(Opcode::kSqrt).constraint(kDomainSqrt),
    unary("Swish", swish).element(swish_element).trait(OpTrait::kUnboundedAbove),
    unary("Tan", shape_only).element(of<std::tan>),
    unary("Tanh", tanh).element(of<std::tanh>).trait(OpTrait::kKeepsSign),
    unary("ThresholdedRelu", thresholded_relu).element(thresholded_relu_element).trait(OpTrait::kUnboundedAbove),
};

}  // namespace
}  // namespace tensorlint::ops
