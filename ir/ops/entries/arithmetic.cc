// Element by element arithmetic with numpy broadcasting. Source: ONNX Add, Sub, Mul, Div, Pow (opsets 1-15), Mod (10,
// 13, 28), Min, Max, Sum, Mean (1-13), PRelu (1-16), BitShift (11, 28), BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot
// (18), SwiGLU (28). Until opset 6 operand B is stretched only with broadcast = 1, aligned at `axis`; variadic
// operators broadcast from 8 on.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/checked.h"
#include "ir/ops/contents.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/ranges.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

const Constraint kDivisor{"integer_divisor", ConstraintKind::kDomain, "no element of an integer divisor is 0"};
const Constraint kModKind{"mod_of_floats", ConstraintKind::kAttribute,
                          "until opset 27 floats are only taken with fmod = 1"};
const Constraint kSlopeShape{"prelu_slope_shape", ConstraintKind::kShapes, "slope and data broadcast"};
const Constraint kVariadicShapes{"same_shapes_until_opset_7", ConstraintKind::kShapes,
                                 "variadic operators take equal shapes until opset 7"};
const Constraint kShiftDirection{"bit_shift_direction", ConstraintKind::kAttribute, "`direction` is LEFT or RIGHT",
                                 true};
const Constraint kGateShapes{"swiglu_shapes", ConstraintKind::kShapes, "gate and value have the same shape"};

/// Results that leave the dtype wrap around. Constants are checked against int32's limits; an extent beyond them is not
/// followed.
Dim within(DimPool& pool, Dim element, DTypeSet dtypes) {
  const auto value = pool.as_constant(element);
  const bool fits =
      !value || dtypes == DTypeSet(DType::kInt64) ||
      (*value >= std::numeric_limits<std::int32_t>::min() && *value <= std::numeric_limits<std::int32_t>::max());
  return fits ? element : Dim(Unknown::kOverflow);
}

template <ElementFunction kFunction>
void follow_integers(Inference& in) {
  const DTypeSet dtypes = in.operand(0).dtypes;
  if (in.opset() < 7 || (dtypes != DTypeSet(DType::kInt64) && dtypes != DTypeSet(DType::kInt32))) return;
  const Range computed = in.result().range;
  combine_elements(in, kFunction);
  const Content* content = in.facts().content(in.result().content);
  if (content == nullptr || dtypes == DTypeSet(DType::kInt64)) return;
  Dims elements = content->integers;
  for (Dim& element : elements) element = within(in.dims(), element, dtypes);
  // An element that wraps around lies elsewhere than its number does.
  if (elements != content->integers) in.result().range = computed;
  in.result().content = in.facts().intern_content({std::move(elements), {}});
}

using FloatFunction = double (*)(double, double);

/// Contents of small float tensors. In float64 a sum, product or quotient of two float32 numbers rounds to float32 as
/// the exact one does, since 53 >= 2 * 24 + 2.
template <FloatFunction kFunction>
void follow_floats(Inference& in) {
  const bool single = in.operand(0).dtypes == DTypeSet(DType::kFloat32);
  const Content *a = content_of(in, 0), *b = content_of(in, 1);
  if (in.result().shape == ShapeId::kUnranked) return;
  if (in.opset() < 7 || in.failed() || a == nullptr || b == nullptr || a->floats.empty() || b->floats.empty()) return;
  if (!single && in.operand(0).dtypes != DTypeSet(DType::kFloat64)) return;
  const auto target = in.facts().dims_of(in.result().shape);
  const auto from_a = broadcast_indices(in.dims(), *in.shape(0), target),
             from_b = broadcast_indices(in.dims(), *in.shape(1), target);
  if (!from_a || !from_b) return;
  std::vector<double> floats;
  for (std::size_t i = 0; i < from_a->size(); ++i) {
    const double value = kFunction(a->floats[(*from_a)[i]], b->floats[(*from_b)[i]]);
    floats.push_back(single ? static_cast<double>(static_cast<float>(value)) : value);
  }
  in.set_floats(0, std::move(floats));
}

using RangeFunction = Range (*)(const Range&, const Range&);

template <RangeFunction kRange, ElementFunction kIntegers, FloatFunction kFloats>
void arithmetic(Inference& in) {
  binary_shape(in);
  // From 2^53 on an end of integers may have been rounded inwards, by 1 at least, and what is left of it in a sum as
  // well. Products are above 2^53, too.
  constexpr bool kIsSum = kRange == add || kRange == subtract;
  const auto is_rounded = [](const Range& ends) {
    return std::fabs(ends.lo) >= 0x1p53 || std::fabs(ends.hi) >= 0x1p53;
  };
  const bool may_be_rounded = kIsSum && (is_rounded(in.operand(0).range) || is_rounded(in.operand(1).range));
  if (!may_be_rounded || !in.result().dtypes.proves(DTypeSet::integers()))
    set_computed_range(in, 0, kRange(in.operand(0).range, in.operand(1).range));
  follow_integers<kIntegers>(in);
  follow_floats<kFloats>(in);
}

Dim add_dims(DimPool& pool, Dim a, Dim b) { return pool.add(a, b); }
Dim subtract_dims(DimPool& pool, Dim a, Dim b) { return pool.sub(a, b); }
Dim multiply_dims(DimPool& pool, Dim a, Dim b) { return pool.mul(a, b); }

/// Integer division truncates towards zero (C++), which is floor where both signs are known and equal.
Dim divide_dims(DimPool& pool, Dim a, Dim b) {
  const auto x = pool.as_constant(a), y = pool.as_constant(b);
  if (x && y) {
    const auto quotient = checked::trunc_div(*x, *y);
    return quotient ? pool.constant(*quotient) : Dim(Unknown::kOverflow);
  }
  if (pool.bounds(a).lo >= 0 && pool.bounds(b).lo >= 1) return pool.floor_div(a, b);
  return Dim(Unknown::kDataDependent);
}

/// The remainder with the dividend's sign (C++'s), of `fmod` = 1.
Dim truncated_remainder(DimPool& pool, Dim a, Dim b) {
  const auto x = pool.as_constant(a), y = pool.as_constant(b);
  if (x && y) {
    const auto quotient = checked::trunc_div(*x, *y);
    return quotient ? pool.constant(*x - *quotient * *y) : Dim(Unknown::kOverflow);
  }
  if (pool.bounds(a).lo >= 0 && pool.bounds(b).lo >= 1) return pool.mod(a, b);
  return Dim(Unknown::kDataDependent);
}

Dim floored_remainder(DimPool& pool, Dim a, Dim b) { return pool.mod(a, b); }

double add_floats(double a, double b) { return a + b; }
double subtract_floats(double a, double b) { return a - b; }
double multiply_floats(double a, double b) { return a * b; }
double divide_floats(double a, double b) { return a / b; }

/// Integers divided by 0 stop a runtime or give anything.
void check_divisor(Inference& in) {
  if (!in.operand(1).dtypes.proves(DTypeSet::integers())) return;
  const auto divisors = in.elements(1);
  const auto dividend = in.shape(0);
  if (!divisors || !dividend || std::ranges::none_of(*divisors, [&](Dim dim) { return in.dims().is_constant(dim, 0); }))
    return;
  const Bounds count = in.dims().bounds(element_count(in.dims(), *dividend));
  if (count.hi < 1) return;
  Message message("{} divides integers {} by {}, which has a 0", in.call().name, OperandRef(0), OperandRef(1));
  if (count.lo >= 1) {
    in.fail(kDivisor, {1}, std::move(message));
  } else {
    in.may_fail(kDivisor, {1}, std::move(message), {"{} has elements", OperandRef(0)});
  }
}

void div(Inference& in) {
  binary_shape(in);
  check_divisor(in);
  Range range = divide(in.operand(0).range, in.operand(1).range);
  if (!in.operand(0).dtypes.proves(DTypeSet::floats())) range = {std::trunc(range.lo), std::trunc(range.hi), false};
  set_computed_range(in, 0, range);
  follow_integers<divide_dims>(in);
  follow_floats<divide_floats>(in);
}

void mod(Inference& in) {
  binary_shape(in);
  check_divisor(in);
  const bool truncates = in.int_attribute("fmod", 0) != 0;
  const DTypeSet floats = in.operand(0).dtypes;
  const bool is_float = floats.proves(DTypeSet::floats());
  if (is_float && !truncates && in.opset() < 28)
    in.fail(kModKind, {0}, {"Mod of {} needs {} = 1", floats, AttributeName("fmod")});
  if (in.operand(0).dtypes.proves(DTypeSet::integers())) {
    const Range &a = in.operand(0).range, &b = in.operand(1).range;
    const double largest = std::max(std::fabs(b.lo), std::fabs(b.hi)) - 1;
    if (!truncates && b.lo >= 1) set_computed_range(in, 0, {0, largest, false});
    if (truncates && (b.lo >= 1 || b.hi <= -1))
      set_computed_range(in, 0, {a.lo >= 0 ? 0 : -largest, a.hi <= 0 ? 0 : largest, false});
  }
  if (truncates) {
    follow_integers<truncated_remainder>(in);
  } else {
    follow_integers<floored_remainder>(in);
  }
}

/// A constant to a small constant power.
Dim power(DimPool& pool, Dim a, Dim b) {
  const auto base = pool.as_constant(a), exponent = pool.as_constant(b);
  if (!base || !exponent || *exponent < 0 || *exponent > 63) return Dim(Unknown::kNotTracked);
  std::optional<std::int64_t> result = 1;
  for (std::int64_t i = 0; i < *exponent && result; ++i) result = checked::mul(*result, *base);
  return result ? pool.constant(*result) : Dim(Unknown::kOverflow);
}

void pow(Inference& in) {
  binary_shape(in);
  if (in.operand(0).dtypes == in.operand(1).dtypes) follow_integers<power>(in);
  const Content* exponents = content_of(in, 1);
  if (exponents == nullptr || !in.operand(0).dtypes.proves(DTypeSet::floats())) return;
  const auto all_are = [&](const auto& condition) {
    return std::ranges::all_of(exponents->floats, condition) && std::ranges::all_of(exponents->integers, [&](Dim dim) {
             const auto value = in.dims().as_constant(dim);
             return value && condition(static_cast<double>(*value));
           });
  };
  const auto is_even = [](double value) { return std::fmod(value, 2.0) == 0; };
  // -0.0 to the power of -1, -3, ... is minus infinity.
  const auto keeps_zeros = [](double value) { return value >= 0 || std::fabs(std::fmod(value, 2.0)) != 1; };
  const double least = in.operand(0).range.lo;
  if (least > 0 || (least == 0 && all_are(keeps_zeros)) || all_are(is_even)) in.set_range(0, {0, HUGE_VAL, true});
}

/// Shape of a variadic operator.
void variadic_shape(Inference& in) {
  if (in.opset() >= 8) {
    broadcast_shape(in);
    return;
  }
  std::optional<Dims> result;
  int first = 0;
  for (int i = 0; i < static_cast<int>(in.operand_count()); ++i) {
    const auto shape = in.shape(i);
    if (!shape) continue;
    if (!result) {
      result = copy_dims(*shape);
      first = i;
    } else if (shape->size() != result->size()) {
      in.fail(kVariadicShapes, {first, i},
              {"{} has {} axes, {} has {}", OperandRef(first), result->size(), OperandRef(i), shape->size()});
    } else {
      for (std::size_t k = 0; k < result->size(); ++k)
        (*result)[k] = same_extent(in, (*result)[k], (*shape)[k], first, i, kVariadicShapes,
                                   {"operands differ at axis {}", Axis(k)});
    }
  }
  if (result) in.set_shape(0, *result);
}

template <ElementFunction kFunction, bool kSmallest>
void extreme(Inference& in) {
  variadic_shape(in);
  Range range = in.operand(0).range;
  for (int i = 1; i < static_cast<int>(in.operand_count()); ++i) {
    const Range& other = in.operand(i).range;
    range = kSmallest ? Range{std::min(range.lo, other.lo), std::min(range.hi, other.hi), range.nan || other.nan}
                      : Range{std::max(range.lo, other.lo), std::max(range.hi, other.hi), range.nan || other.nan};
  }
  in.set_range(0, range);
  if (in.operand_count() == 1) keep_elements(in, 0, 0);
  if (in.operand_count() == 2) follow_integers<kFunction>(in);
}

Dim min_dims(DimPool& pool, Dim a, Dim b) { return pool.min(a, b); }
Dim max_dims(DimPool& pool, Dim a, Dim b) { return pool.max(a, b); }

void sum(Inference& in) {
  variadic_shape(in);
  Range range = in.operand(0).range;
  for (int i = 1; i < static_cast<int>(in.operand_count()); ++i)
    range = widened(add(range, in.operand(i).range), in.result().dtypes);
  if (in.operand_count() > 1) set_computed_range(in, 0, range);
  if (in.operand_count() == 1) keep_elements(in, 0, 0);
}

void mean(Inference& in) {
  variadic_shape(in);
  if (in.operand_count() == 1) keep_elements(in, 0, 0);
}

void prelu(Inference& in) {
  // Until opset 6 a slope of one dimension belongs to the channels, wherever these are.
  if (in.opset() < 7) return unary_shape(in);
  const auto data = in.shape(0), slope = in.shape(1);
  // Runtimes stretch the data, too.
  if (data && slope) in.set_shape(0, broadcast(in, *data, *slope, 0, 1, kSlopeShape));
}

void bit_shift(Inference& in) {
  binary_shape(in);
  const std::string_view direction = in.string_attribute("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    in.fail(kShiftDirection, {}, {"{} of BitShift is neither LEFT nor RIGHT", AttributeName("direction")});
  const Range& range = in.operand(0).range;
  if (direction == "RIGHT" && range.lo >= 0) in.set_range(0, {0, range.hi, false});
}

Dim bitwise_and(DimPool& pool, Dim a, Dim b) {
  const auto x = pool.as_constant(a), y = pool.as_constant(b);
  return x && y ? pool.constant(*x & *y) : Dim(Unknown::kNotTracked);
}

Dim bitwise_or(DimPool& pool, Dim a, Dim b) {
  const auto x = pool.as_constant(a), y = pool.as_constant(b);
  return x && y ? pool.constant(*x | *y) : Dim(Unknown::kNotTracked);
}

Dim bitwise_xor(DimPool& pool, Dim a, Dim b) {
  const auto x = pool.as_constant(a), y = pool.as_constant(b);
  return x && y ? pool.constant(*x ^ *y) : Dim(Unknown::kNotTracked);
}

template <ElementFunction kFunction>
void bitwise(Inference& in) {
  binary_shape(in);
  follow_integers<kFunction>(in);
}

void bitwise_not(Inference& in) { unary_shape(in); }

void swiglu(Inference& in) {
  unary_shape(in);
  const auto gate = in.shape(0), value = in.shape(1);
  if (!gate || !value) {
    if (value) in.set_shape(0, *value);
    return;
  }
  if (gate->size() != value->size()) {
    in.fail(kGateShapes, {1, 0},
            {"{} of shape {} and {} of shape {} have different ranks", OperandRef(0), *gate, OperandRef(1), *value});
    return;
  }
  Dims result;
  for (std::size_t i = 0; i < gate->size(); ++i)
    result.push_back(
        same_extent(in, (*gate)[i], (*value)[i], 0, 1, kGateShapes, {"gate and value differ at axis {}", Axis(i)}));
  in.set_shape(0, result);
}

double add_element(const ElementCall& call) { return call.operands[0] + call.operands[1]; }
double subtract_element(const ElementCall& call) { return call.operands[0] - call.operands[1]; }
double multiply_element(const ElementCall& call) { return call.operands[0] * call.operands[1]; }
double divide_element(const ElementCall& call) { return call.operands[0] / call.operands[1]; }
double power_element(const ElementCall& call) { return std::pow(call.operands[0], call.operands[1]); }
double least_element(const ElementCall& call) { return std::ranges::min(call.operands); }
double greatest_element(const ElementCall& call) { return std::ranges::max(call.operands); }
double sum_element(const ElementCall& call) { return std::accumulate(call.operands.begin(), call.operands.end(), 0.0); }
double mean_element(const ElementCall& call) { return sum_element(call) / static_cast<double>(call.operands.size()); }
double prelu_element(const ElementCall& call) {
  const double x = call.operands[0];
  return x >= 0 ? x : call.operands[1] * x;
}

OpEntry binary(std::string_view name, InferFunction function) {
  return OpEntry(name).trait(OpTrait::kElementwise).infer(function).constraint(kBroadcastable);
}

OpEntry variadic(std::string_view name, InferFunction function) {
  return binary(name, function).constraint(kVariadicShapes);
}

const RegisterOps kRegisterArithmetic{
    binary("Add", arithmetic<add, add_dims, add_floats>).element(add_element).computes(Opcode::kAdd),
    binary("Sub", arithmetic<subtract, subtract_dims, subtract_floats>)
        .element(subtract_element)
        .computes(Opcode::kSub),
    binary("Mul", arithmetic<multiply, multiply_dims, multiply_floats>)
        .element(multiply_element)
        .computes(Opcode::kMul),
    binary("Div", div).element(divide_element).computes(Opcode::kDiv).constraint(kDivisor),
    binary("Mod", mod).computes(Opcode::kMod).constraint(kDivisor).constraint(kModKind),
    binary("Pow", pow).element(power_element).computes(Opcode::kPow),
    variadic("Min", extreme<min_dims, true>).element(least_element).computes(Opcode::kMin),
    variadic("Max", extreme<max_dims, false>).element(greatest_element).computes(Opcode::kMax),
    variadic("Sum", sum).element(sum_element),
    variadic("Mean", mean).element(mean_element),
    OpEntry("PRelu").trait(OpTrait::kElementwise).element(prelu_element).infer(prelu).constraint(kSlopeShape),
    binary("BitShift", bit_shift).constraint(kShiftDirection),
    binary("BitwiseAnd", bitwise<bitwise_and>),
    binary("BitwiseOr", bitwise<bitwise_or>),
    binary("BitwiseXor", bitwise<bitwise_xor>),
    OpEntry("BitwiseNot").trait(OpTrait::kElementwise).infer(bitwise_not),
    OpEntry("SwiGLU").trait(OpTrait::kElementwise).infer(swiglu).constraint(kGateShapes),
};

}  // namespace
}  // namespace tensorlint::ops
