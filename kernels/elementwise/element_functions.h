#pragma once

// Element functions of float, double and int64. Where a formula would cancel, another one is used, so that the error
// is one of the result's last places.

#include "kernels/common/convert.h"
#include "kernels/elementwise/elementwise.h"

namespace tensorlint::kernels {

namespace element {

TL_HOST_DEVICE float exponential(float x) { return expf(x); }
TL_HOST_DEVICE double exponential(double x) { return exp(x); }
TL_HOST_DEVICE float exponential_less_1(float x) { return expm1f(x); }
TL_HOST_DEVICE double exponential_less_1(double x) { return expm1(x); }
TL_HOST_DEVICE float logarithm(float x) { return logf(x); }
TL_HOST_DEVICE double logarithm(double x) { return log(x); }
TL_HOST_DEVICE float logarithm_plus_1(float x) { return log1pf(x); }
TL_HOST_DEVICE double logarithm_plus_1(double x) { return log1p(x); }
TL_HOST_DEVICE float error_function(float x) { return erff(x); }
TL_HOST_DEVICE double error_function(double x) { return erf(x); }
TL_HOST_DEVICE float complementary_error_function(float x) { return erfcf(x); }
TL_HOST_DEVICE double complementary_error_function(double x) { return erfc(x); }
TL_HOST_DEVICE float hyperbolic_tangent(float x) { return tanhf(x); }
TL_HOST_DEVICE double hyperbolic_tangent(double x) { return tanh(x); }
TL_HOST_DEVICE float root(float x) { return sqrtf(x); }
TL_HOST_DEVICE double root(double x) { return sqrt(x); }
TL_HOST_DEVICE float magnitude(float x) { return fabsf(x); }
TL_HOST_DEVICE double magnitude(double x) { return fabs(x); }
TL_HOST_DEVICE float power(float x, float y) { return powf(x, y); }
TL_HOST_DEVICE double power(double x, double y) { return pow(x, y); }
TL_HOST_DEVICE float remainder_of(float x, float y) { return fmodf(x, y); }
TL_HOST_DEVICE double remainder_of(double x, double y) { return fmod(x, y); }

template <typename C>
TL_HOST_DEVICE C sigmoid(C x) {
  const C e = exponential(-magnitude(x));
  return (x < 0 ? e : C{1}) / (C{1} + e);
}

/// x Phi(x): 1 + erf(z) cancels below zero, erfc(-z) does not.
template <typename C>
TL_HOST_DEVICE C gelu(C x) {
  constexpr C kRootHalf = static_cast<C>(0.70710678118654752440);
  return C{0.5} * x * complementary_error_function(-x * kRootHalf);
}

/// (1 + tanh(u)) / 2 is the sigmoid of 2 u.
template <typename C>
TL_HOST_DEVICE C tanh_gelu(C x) {
  constexpr C kScale = static_cast<C>(2 * 0.79788456080286535588), kCubic = static_cast<C>(0.044715);
  return x / (C{1} + exponential(-kScale * (x + kCubic * x * x * x)));
}

template <typename C>
TL_HOST_DEVICE C softplus(C x) {
  return (x < 0 ? C{0} : x) + logarithm_plus_1(exponential(-magnitude(x)));
}

/// x / 6 + 1/2 would cancel at -3.
template <typename C>
TL_HOST_DEVICE C hard_swish(C x) {
  const C gate = (x + C{3}) / C{6};
  return x * (gate < 0 ? C{0} : gate > 1 ? C{1} : gate);
}

template <typename C>
TL_HOST_DEVICE C hard_sigmoid(C x, C alpha, C beta) {
  const C y = fused_multiply_add(alpha, x, beta);
  return y < 0 ? C{0} : y > 1 ? C{1} : y;
}

/// 2/pi, the 1280 bits after the point, behind a word of zeros.
TL_HOST_DEVICE std::uint64_t two_over_pi(int word) {
  static constexpr std::uint64_t kWords[] = {
      0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
      0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41,
      0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
      0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
      0xf0cfbc209af4361d};
  return kWords[word];
}

/// x = r + quarters pi / 2 with |r| <= pi / 4, for finite x; quarters modulo 4.
struct Angle {
  double r;
  int quarters;
};
TL_HOST_DEVICE Angle reduced_angle(double x) {
  constexpr double kHalfPi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};
  const double size = fabs(x);
  if (size < 0x1p40) {
    // The first product's difference is exact, and the others' errors lie below 2^-53 of what is left.
    const double n = rint(x * 0x1.45f306dc9c883p-1);
    double r = fma(-n, kHalfPi[0], x);
    r = fma(-n, kHalfPi[1], r);
    r = fma(-n, kHalfPi[2], r);
    return {r, static_cast<int>(static_cast<std::int64_t>(n) & 3)};
  }
  // x = m 2^e. Of m 2/pi 2^e only the part below 4 counts: bits of 2/pi from e - 2 on. Source: Payne and Hanek, 1983.
  const std::uint64_t bits = bit_cast<std::uint64_t>(size);
  const std::uint64_t m = (bits & 0xfffffffffffffU) | std::uint64_t{1} << 52;
  const int first = static_cast<int>(bits >> 52) - 1075 - 2 + 64;
  const int word = first >> 6, shift = first & 63;
  const std::uint64_t t0 = two_over_pi(word), t1 = two_over_pi(word + 1), t2 = two_over_pi(word + 2),
                      t3 = two_over_pi(word + 3);
  const std::uint64_t w0 = shift == 0 ? t0 : t0 << shift | t1 >> (64 - shift);
  const std::uint64_t w1 = shift == 0 ? t1 : t1 << shift | t2 >> (64 - shift);
  const std::uint64_t w2 = shift == 0 ? t2 : t2 << shift | t3 >> (64 - shift);
  const std::uint64_t low = m * w1 + instruction::multiply_high(m, w2);
  const std::uint64_t carry = low < m * w1 ? 1 : 0;
  const std::uint64_t high = m * w0 + instruction::multiply_high(m, w1) + carry;
  // high:low in units of 2^-126: two bits of quarters, and a fraction that is rounded to the nearer one. Its size alone
  // becomes floating point: next to a multiple of pi / 2 there is nothing to cancel.
  std::uint64_t whole = high << 2 | low >> 62, rest = low << 2;
  const bool down = whole >> 63 != 0;
  const int quarters = static_cast<int>(high >> 62) + (down ? 1 : 0);
  if (down) {
    whole = ~whole + (rest == 0 ? 1 : 0);
    rest = std::uint64_t{0} - rest;
  }
  const double part = (static_cast<double>(whole) + static_cast<double>(rest) * 0x1p-64) * (0x1p-64 * kHalfPi[0]);
  return down == (x < 0) ? Angle{part, (x < 0 ? -quarters : quarters) & 3}
                         : Angle{-part, (x < 0 ? -quarters : quarters) & 3};
}

/// The sine, or with `quarter` 1 the cosine. Taylor's series: the next terms are below 2^-60.
TL_HOST_DEVICE double sine(double x, int quarter) {
  if (!(fabs(x) <= 1.7976931348623157e308)) return not_a_number<double>();
  if (x == 0 && quarter == 0) return x;  // the reduced angle of -0 is +0
  const Angle angle = reduced_angle(x);
  const double z = angle.r * angle.r;
  const int quarters = angle.quarters + quarter;
  double sum;
  if ((quarters & 1) == 0) {
    sum = -1.0 / 121645100408832000.0;
    sum = fma(sum, z, 1.0 / 355687428096000.0);
    sum = fma(sum, z, -1.0 / 1307674368000.0);
    sum = fma(sum, z, 1.0 / 6227020800.0);
    sum = fma(sum, z, -1.0 / 39916800.0);
    sum = fma(sum, z, 1.0 / 362880.0);
    sum = fma(sum, z, -1.0 / 5040.0);
    sum = fma(sum, z, 1.0 / 120.0);
    sum = fma(sum, z, -1.0 / 6.0);
    sum = fma(sum * z, angle.r, angle.r);
  } else {
    sum = 1.0 / 6402373705728000.0;
    sum = fma(sum, z, -1.0 / 20922789888000.0);
    sum = fma(sum, z, 1.0 / 87178291200.0);
    sum = fma(sum, z, -1.0 / 479001600.0);
    sum = fma(sum, z, 1.0 / 3628800.0);
    sum = fma(sum, z, -1.0 / 40320.0);
    sum = fma(sum, z, 1.0 / 720.0);
    sum = fma(sum, z, -1.0 / 24.0);
    sum = fma(sum, z, 0.5);
    sum = fma(-sum, z, 1.0);
  }
  return (quarters & 2) != 0 ? -sum : sum;
}

// --- integers: modulo 2^64

TL_HOST_DEVICE std::int64_t wrapped(std::uint64_t x) { return static_cast<std::int64_t>(x); }

TL_HOST_DEVICE std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? wrapped(std::uint64_t{0} - static_cast<std::uint64_t>(a)) : a / b;
}

TL_HOST_DEVICE std::int64_t remainder_of(std::int64_t a, std::int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

TL_HOST_DEVICE std::int64_t floored_remainder_of(std::int64_t a, std::int64_t b) {
  const std::int64_t rest = remainder_of(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

TL_HOST_DEVICE std::int64_t power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  std::uint64_t result = 1, square = static_cast<std::uint64_t>(base);
  TL_ROLLED
  for (auto left = static_cast<std::uint64_t>(exponent); left != 0; left >>= 1) {
    if ((left & 1U) != 0) result *= square;
    square *= square;
  }
  return wrapped(result);
}

}  // namespace element

/// Elements that a thread computes at once.
constexpr int kLaneElements = 8;

template <typename C>
struct Lane {
  C x[kLaneElements];
};

namespace element {

/// a = function(a): unrolled, for functions of a few instructions.
template <typename C, typename Function>
TL_DEVICE void each(Lane<C>& a, const Function& function) {
  TL_UNROLL
  for (int i = 0; i < kLaneElements; ++i) a.x[i] = function(a.x[i]);
}
template <typename C, typename Function>
TL_DEVICE void each(Lane<C>& a, const Lane<C>& b, const Function& function) {
  TL_UNROLL
  for (int i = 0; i < kLaneElements; ++i) a.x[i] = function(a.x[i], b.x[i]);
}

template <typename C>
TL_DEVICE void rotate(Lane<C>& a, C last) {
  TL_UNROLL
  for (int i = 0; i + 1 < kLaneElements; ++i) a.x[i] = a.x[i + 1];
  a.x[kLaneElements - 1] = last;
}

/// The same, one element after the other, for functions of many instructions: the elements turn through the registers,
/// since registers cannot be indexed.
template <typename C, typename Function>
TL_DEVICE void each_in_turn(Lane<C>& a, const Function& function) {
  TL_ROLLED
  for (int i = 0; i < kLaneElements; ++i) rotate(a, function(a.x[0]));
}
template <typename C, typename Function>
TL_DEVICE void each_in_turn(Lane<C>& a, Lane<C>& b, const Function& function) {
  TL_ROLLED
  for (int i = 0; i < kLaneElements; ++i) {
    rotate(a, function(a.x[0], b.x[0]));
    rotate(b, b.x[0]);
  }
}

template <typename C>
TL_DEVICE C truth(bool value) {
  return value ? C{1} : C{0};
}

/// What floats and integers have in common. False where `op` is none of these.
template <typename C>
TL_DEVICE bool apply_common(ElementOp op, Lane<C>& a, Lane<C>& b, const Lane<C>& c) {
  switch (op) {
    case ElementOp::kMin:
      each(a, b, [](C x, C y) { return x < y || x != x ? x : y; });
      return true;
    case ElementOp::kMax:
      each(a, b, [](C x, C y) { return x > y || x != x ? x : y; });
      return true;
    case ElementOp::kSign:
      each(a, [](C x) { return x > 0 ? C{1} : x < 0 ? C{-1} : x; });
      return true;
    case ElementOp::kRelu:
      each(a, [](C x) { return x < 0 ? C{0} : x; });
      return true;
    case ElementOp::kClip:
      TL_UNROLL
      for (int i = 0; i < kLaneElements; ++i) {
        const C raised = a.x[i] < b.x[i] ? b.x[i] : a.x[i];
        a.x[i] = raised > c.x[i] ? c.x[i] : raised;
      }
      return true;
    case ElementOp::kEqual:
      each(a, b, [](C x, C y) { return truth<C>(x == y); });
      return true;
    case ElementOp::kGreater:
      each(a, b, [](C x, C y) { return truth<C>(x > y); });
      return true;
    case ElementOp::kLess:
      each(a, b, [](C x, C y) { return truth<C>(x < y); });
      return true;
    case ElementOp::kGreaterOrEqual:
      each(a, b, [](C x, C y) { return truth<C>(x >= y); });
      return true;
    case ElementOp::kLessOrEqual:
      each(a, b, [](C x, C y) { return truth<C>(x <= y); });
      return true;
    case ElementOp::kAnd:
      each(a, b, [](C x, C y) { return truth<C>(x != 0 && y != 0); });
      return true;
    case ElementOp::kOr:
      each(a, b, [](C x, C y) { return truth<C>(x != 0 || y != 0); });
      return true;
    case ElementOp::kXor:
      each(a, b, [](C x, C y) { return truth<C>((x != 0) != (y != 0)); });
      return true;
    case ElementOp::kNot:
      each(a, [](C x) { return truth<C>(x == 0); });
      return true;
    case ElementOp::kWhere:
      TL_UNROLL
      for (int i = 0; i < kLaneElements; ++i) a.x[i] = a.x[i] != 0 ? b.x[i] : c.x[i];
      return true;
    case ElementOp::kCast:
      return true;
    default:
      return false;
  }
}

template <typename C>
TL_DEVICE void apply_float(ElementOp op, Lane<C>& a, Lane<C>& b, C alpha, C beta) {
  switch (op) {
    case ElementOp::kAdd:
      return each(a, b, [](C x, C y) { return x + y; });
    case ElementOp::kSub:
      return each(a, b, [](C x, C y) { return x - y; });
    case ElementOp::kMul:
      return each(a, b, [](C x, C y) { return x * y; });
    case ElementOp::kDiv:
      return each_in_turn(a, b, [](C x, C y) { return x / y; });
    case ElementOp::kTruncatedMod:
      return each_in_turn(a, b, [](C x, C y) { return remainder_of(x, y); });
    case ElementOp::kPow:
      return each_in_turn(a, b, [](C x, C y) { return power(x, y); });
    case ElementOp::kNeg:
      return each(a, [](C x) { return -x; });
    case ElementOp::kAbs:
      return each(a, [](C x) { return magnitude(x); });
    case ElementOp::kExp:
      return each_in_turn(a, [](C x) { return exponential(x); });
    case ElementOp::kLog:
      return each_in_turn(a, [](C x) { return logarithm(x); });
    case ElementOp::kSqrt:
      return each_in_turn(a, [](C x) { return root(x); });
    case ElementOp::kReciprocal:
      return each_in_turn(a, [](C x) { return C{1} / x; });
    case ElementOp::kErf:
      return each_in_turn(a, [](C x) { return error_function(x); });
    case ElementOp::kTanh:
      return each_in_turn(a, [](C x) { return hyperbolic_tangent(x); });
    case ElementOp::kSigmoid:
      return each_in_turn(a, [](C x) { return sigmoid(x); });
    case ElementOp::kLeakyRelu:
      return each(a, [alpha](C x) { return x < 0 ? alpha * x : x; });
    case ElementOp::kElu:
      return each_in_turn(a, [alpha](C x) { return x < 0 ? alpha * exponential_less_1(x) : x; });
    case ElementOp::kGelu:
      return each_in_turn(a, [](C x) { return gelu(x); });
    case ElementOp::kTanhGelu:
      return each_in_turn(a, [](C x) { return tanh_gelu(x); });
    case ElementOp::kHardSigmoid:
      return each(a, [alpha, beta](C x) { return hard_sigmoid(x, alpha, beta); });
    case ElementOp::kHardSwish:
      return each_in_turn(a, [](C x) { return hard_swish(x); });
    case ElementOp::kSoftplus:
      return each_in_turn(a, [](C x) { return softplus(x); });
    case ElementOp::kSwish:
      return each_in_turn(a, [alpha](C x) { return x * sigmoid(alpha * x); });
    case ElementOp::kFloor:
      return each(a, [](C x) { return static_cast<C>(floor(x)); });
    case ElementOp::kCeil:
      return each(a, [](C x) { return static_cast<C>(ceil(x)); });
    case ElementOp::kRound:
      return each(a, [](C x) { return static_cast<C>(rint(x)); });
    case ElementOp::kSin:
      return each_in_turn(a, [](C x) { return static_cast<C>(sine(static_cast<double>(x), 0)); });
    case ElementOp::kCos:
      return each_in_turn(a, [](C x) { return static_cast<C>(sine(static_cast<double>(x), 1)); });
    case ElementOp::kIsNaN:
      return each(a, [](C x) { return truth<C>(x != x); });
    default:
      return;
  }
}

TL_DEVICE void apply_integer(ElementOp op, Lane<std::int64_t>& a, Lane<std::int64_t>& b) {
  using Word = std::uint64_t;
  using C = std::int64_t;
  switch (op) {
    case ElementOp::kAdd:
      return each(a, b, [](C x, C y) { return wrapped(static_cast<Word>(x) + static_cast<Word>(y)); });
    case ElementOp::kSub:
      return each(a, b, [](C x, C y) { return wrapped(static_cast<Word>(x) - static_cast<Word>(y)); });
    case ElementOp::kMul:
      return each(a, b, [](C x, C y) { return wrapped(static_cast<Word>(x) * static_cast<Word>(y)); });
    case ElementOp::kDiv:
      return each_in_turn(a, b, [](C x, C y) { return quotient(x, y); });
    case ElementOp::kTruncatedMod:
      return each_in_turn(a, b, [](C x, C y) { return remainder_of(x, y); });
    case ElementOp::kFlooredMod:
      return each_in_turn(a, b, [](C x, C y) { return floored_remainder_of(x, y); });
    case ElementOp::kPow:
      return each_in_turn(a, b, [](C x, C y) { return power(x, y); });
    case ElementOp::kNeg:
      return each(a, [](C x) { return wrapped(Word{0} - static_cast<Word>(x)); });
    case ElementOp::kAbs:
      return each(a, [](C x) { return x < 0 ? wrapped(Word{0} - static_cast<Word>(x)) : x; });
    default:
      return;
  }
}

}  // namespace element

/// a = op(a, b, c). b is used up.
template <typename C>
TL_DEVICE void apply_element_op(ElementOp op, Lane<C>& a, Lane<C>& b, const Lane<C>& c, double alpha, double beta) {
  if (element::apply_common(op, a, b, c)) return;
  if constexpr (std::is_floating_point_v<C>) {
    element::apply_float(op, a, b, static_cast<C>(alpha), static_cast<C>(beta));
  } else {
    element::apply_integer(op, a, b);
  }
}

}  // namespace tensorlint::kernels
