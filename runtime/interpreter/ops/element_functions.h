#pragma once

#include <cmath>
#include <numbers>

#include "runtime/values/vector_math.h"

namespace tensorlint::runtime {

// Functions of one element: value and slope (the derivative; at a kink that of the right side, where ONNX and PyTorch
// have none, too). Evaluation, error amplitude |x slope(x)| and gradients share one definition. kIsVector: without
// branches and calls, so that a loop over it becomes vector instructions.

struct VectorFunction {
  static constexpr bool kIsVector = true;
};
struct ScalarFunction {
  static constexpr bool kIsVector = false;
};

// --- exponentials and logarithms

struct ExpFunction : VectorFunction {
  double value(double x) const { return fast_exp(x); }
  double slope(double x) const { return fast_exp(x); }
};

struct LogFunction : VectorFunction {
  double value(double x) const { return fast_log(x); }
  double slope(double x) const { return 1 / x; }
};

struct SqrtFunction : VectorFunction {
  double value(double x) const { return std::sqrt(x); }
  double slope(double x) const { return 0.5 / std::sqrt(x); }
};

struct ReciprocalFunction : VectorFunction {
  double value(double x) const { return 1 / x; }
  double slope(double x) const { return -1 / (x * x); }
};

struct ErfFunction : VectorFunction {
  double value(double x) const { return fast_erf(x); }
  double slope(double x) const { return 2 * std::numbers::inv_sqrtpi * fast_exp(-x * x); }
};

// --- trigonometry

struct SinFunction : ScalarFunction {
  double value(double x) const { return std::sin(x); }
  double slope(double x) const { return std::cos(x); }
};

struct CosFunction : ScalarFunction {
  double value(double x) const { return std::cos(x); }
  double slope(double x) const { return -std::sin(x); }
};

struct TanFunction : ScalarFunction {
  double value(double x) const { return std::tan(x); }
  double slope(double x) const { return 1 + std::tan(x) * std::tan(x); }
};

struct AsinFunction : ScalarFunction {
  double value(double x) const { return std::asin(x); }
  double slope(double x) const { return 1 / std::sqrt((1 - x) * (1 + x)); }
};

struct AcosFunction : ScalarFunction {
  double value(double x) const { return std::acos(x); }
  double slope(double x) const { return -1 / std::sqrt((1 - x) * (1 + x)); }
};

struct AtanFunction : ScalarFunction {
  double value(double x) const { return std::atan(x); }
  double slope(double x) const { return 1 / (1 + x * x); }
};

struct SinhFunction : ScalarFunction {
  double value(double x) const { return std::sinh(x); }
  double slope(double x) const { return std::cosh(x); }
};

struct CoshFunction : ScalarFunction {
  double value(double x) const { return std::cosh(x); }
  double slope(double x) const { return std::sinh(x); }
};

struct AsinhFunction : ScalarFunction {
  double value(double x) const { return std::asinh(x); }
  double slope(double x) const { return 1 / std::hypot(1.0, x); }
};

struct AcoshFunction : ScalarFunction {
  double value(double x) const { return std::acosh(x); }
  double slope(double x) const { return 1 / std::sqrt((x - 1) * (x + 1)); }
};

struct AtanhFunction : ScalarFunction {
  double value(double x) const { return std::atanh(x); }
  double slope(double x) const { return 1 / ((1 - x) * (1 + x)); }
};

// --- signs and rounding

struct NegFunction : VectorFunction {
  double value(double x) const { return -x; }
  double slope(double) const { return -1; }
};

struct AbsFunction : VectorFunction {
  double value(double x) const { return std::fabs(x); }
  double slope(double x) const { return x > 0 ? 1 : x < 0 ? -1 : 0; }
};

struct SignFunction : VectorFunction {
  double value(double x) const { return x > 0 ? 1 : x < 0 ? -1 : x; }
  double slope(double) const { return 0; }
};

struct FloorFunction : VectorFunction {
  double value(double x) const { return std::floor(x); }
  double slope(double) const { return 0; }
};

struct CeilFunction : VectorFunction {
  double value(double x) const { return std::ceil(x); }
  double slope(double) const { return 0; }
};

/// Halves to the even neighbour.
struct RoundFunction : VectorFunction {
  double value(double x) const { return std::nearbyint(x); }
  double slope(double) const { return 0; }
};

struct ClipFunction : VectorFunction {
  double least, most;
  double value(double x) const {
    const double raised = x < least ? least : x;  // NaN stays
    return raised > most ? most : raised;
  }
  double slope(double x) const { return x >= least && x <= most ? 1 : 0; }
};

// --- activations

struct ReluFunction : VectorFunction {
  double value(double x) const { return x < 0 ? 0 : x; }
  double slope(double x) const { return x > 0 ? 1 : 0; }
};

struct LeakyReluFunction : VectorFunction {
  double alpha;
  double value(double x) const { return x < 0 ? alpha * x : x; }
  double slope(double x) const { return x < 0 ? alpha : 1; }
};

struct ThresholdedReluFunction : VectorFunction {
  double alpha;
  // NaN is not above alpha.
  double value(double x) const { return x > alpha ? x : 0; }
  double slope(double x) const { return x > alpha ? 1 : 0; }
};

struct EluFunction : VectorFunction {
  double alpha;
  double value(double x) const { return x < 0 ? alpha * fast_expm1(x) : x; }
  double slope(double x) const { return x < 0 ? alpha * fast_exp(x) : 1; }
};

struct CeluFunction : VectorFunction {
  double alpha;
  double value(double x) const { return (x < 0 ? 0 : x) + (x > 0 ? 0 : alpha * fast_expm1(x / alpha)); }
  double slope(double x) const { return x > 0 ? 1 : fast_exp(x / alpha); }
};

struct SeluFunction : VectorFunction {
  double alpha, gamma;
  double value(double x) const { return gamma * (x <= 0 ? alpha * fast_expm1(x) : x); }
  double slope(double x) const { return gamma * (x <= 0 ? alpha * fast_exp(x) : 1); }
};

struct SigmoidFunction : VectorFunction {
  double value(double x) const { return fast_sigmoid(x); }
  double slope(double x) const { return fast_sigmoid(x) * fast_sigmoid(-x); }
};

struct TanhFunction : VectorFunction {
  double value(double x) const { return fast_tanh(x); }
  double slope(double x) const { return 4 * fast_sigmoid(2 * x) * fast_sigmoid(-2 * x); }
};

struct SoftplusFunction : VectorFunction {
  double value(double x) const { return fast_softplus(x); }
  double slope(double x) const { return fast_sigmoid(x); }
};

struct SoftsignFunction : VectorFunction {
  double value(double x) const { return x / (1 + std::fabs(x)); }
  double slope(double x) const { return 1 / ((1 + std::fabs(x)) * (1 + std::fabs(x))); }
};

struct HardSigmoidFunction : VectorFunction {
  double alpha, beta;
  double value(double x) const {
    const double y = alpha * x + beta;
    return y < 0 ? 0 : y > 1 ? 1 : y;
  }
  double slope(double x) const { return alpha * x + beta > 0 && alpha * x + beta < 1 ? alpha : 0; }
};

/// x HardSigmoid(x) with alpha 1/6, as ONNX's schema says it: a division would round differently.
struct HardSwishFunction : VectorFunction {
  double value(double x) const {
    const double gate = x / 6 + 0.5;
    return x * (gate < 0 ? 0 : gate > 1 ? 1 : gate);
  }
  double slope(double x) const { return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5; }
};

/// x sigmoid(alpha x).
struct SwishFunction : VectorFunction {
  double alpha;
  double value(double x) const { return x * fast_sigmoid(alpha * x); }
  double slope(double x) const {
    const double gate = fast_sigmoid(alpha * x);
    return gate + alpha * x * gate * fast_sigmoid(-alpha * x);
  }
};

/// x tanh(softplus(x)): with w = e^x, tanh(ln(1 + w)) = (w^2 + 2 w) / (w^2 + 2 w + 2).
struct MishFunction : VectorFunction {
  static double gate(double x) {
    const double w = fast_exp(x > 40 ? 40 : x), n = w * (w + 2);
    return n / (n + 2);
  }
  double value(double x) const { return x * gate(x); }
  double slope(double x) const { return gate(x) + x * (1 - gate(x) * gate(x)) * fast_sigmoid(x); }
};

/// x Phi(x), Phi the normal distribution.
struct GeluFunction : VectorFunction {
  double value(double x) const { return 0.5 * x * (1 + fast_erf(x * (1 / std::numbers::sqrt2))); }
  double slope(double x) const {
    const double density = std::numbers::inv_sqrtpi * (1 / std::numbers::sqrt2) * fast_exp(-0.5 * x * x);
    return 0.5 * (1 + fast_erf(x * (1 / std::numbers::sqrt2))) + x * density;
  }
};

/// Its approximation 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
struct TanhGeluFunction : VectorFunction {
  static constexpr double kScale = 0.79788456080286535588, kCubic = 0.044715;
  double value(double x) const { return 0.5 * x * (1 + fast_tanh(kScale * (x + kCubic * x * x * x))); }
  double slope(double x) const {
    const double t = fast_tanh(kScale * (x + kCubic * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kScale * (1 + 3 * kCubic * x * x);
  }
};

/// Softshrink where bias is lambda, hard shrink where it is 0.
struct ShrinkFunction : VectorFunction {
  double lambda, bias;
  double value(double x) const { return x < -lambda ? x + bias : x > lambda ? x - bias : 0; }
  double slope(double x) const { return x < -lambda || x > lambda ? 1 : 0; }
};

}  // namespace tensorlint::runtime
