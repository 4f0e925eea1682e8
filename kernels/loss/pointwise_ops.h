#pragma once

// Element losses as pure functions: value and slope (derivative by the input) at one element, in the compute type C.

#include "kernels/common/exponential.h"

namespace tensorlint::kernels {

template <typename C>
struct ValueAndSlope {
  C value;
  C slope;
};

/// Parameters of one element.
template <typename C>
struct PointwiseOptions {
  C delta = C{1};      // Huber: where the parabola ends
  C curvature = C{1};  // Huber: second derivative inside; 1, or 1 / beta for smooth L1
  C limit = C{1};      // Huber: slope outside; delta, or 1 for smooth L1
  C positive = C{1};   // logits: weight of the positive class
};

TL_HOST_DEVICE float logarithm(float x) { return logf(x); }
TL_HOST_DEVICE double logarithm(double x) { return log(x); }
TL_HOST_DEVICE float logarithm_1p(float x) { return log1pf(x); }
TL_HOST_DEVICE double logarithm_1p(double x) { return log1p(x); }
TL_HOST_DEVICE float magnitude(float x) { return fabsf(x); }
TL_HOST_DEVICE double magnitude(double x) { return fabs(x); }

/// (x - t)^2
struct SquaredOp {
  template <typename C>
  static TL_HOST_DEVICE ValueAndSlope<C> at(C x, C t, const PointwiseOptions<C>&) {
    const C d = x - t;
    return {d * d, d + d};
  }
};

/// |x - t|; slope 0 where equal.
struct AbsoluteOp {
  template <typename C>
  static TL_HOST_DEVICE ValueAndSlope<C> at(C x, C t, const PointwiseOptions<C>&) {
    const C d = x - t;
    return {magnitude(d), d > C{0} ? C{1} : d < C{0} ? C{-1} : d == C{0} ? C{0} : d};
  }
};

/// Huber and, with curvature 1 / beta and limit 1, smooth L1. No square is formed, so a tiny beta loses nothing to
/// underflow.
struct HuberOp {
  template <typename C>
  static TL_HOST_DEVICE ValueAndSlope<C> at(C x, C t, const PointwiseOptions<C>& o) {
    const C d = x - t;
    const C size = magnitude(d);
    if (size < o.delta) return {C(0.5) * size * (size * o.curvature), d * o.curvature};
    return {(size - C(0.5) * o.delta) * o.limit, d > C{0} ? o.limit : d < C{0} ? -o.limit : d};
  }
};

/// Binary cross entropy of a probability x: logarithms are held at -100 and the slope's denominator at 1e-12, as
/// PyTorch does. NaN outside [0, 1], where PyTorch's kernel asserts.
struct BinaryOp {
  template <typename C>
  static TL_HOST_DEVICE ValueAndSlope<C> at(C x, C t, const PointwiseOptions<C>&) {
    if (!(x >= C{0} && x <= C{1})) return {not_a_number<C>(), not_a_number<C>()};
    const C rest = C{1} - x;
    const C log_x = max_number(logarithm(x), C{-100});
    const C log_rest = max_number(logarithm_1p(-x), C{-100});
    return {(t - C{1}) * log_rest - t * log_x, (x - t) / max_number(x * rest, C(1e-12))};
  }
};

/// Binary cross entropy of a logit. softplus on both sides, so that for targets in [0, 1] nothing cancels.
struct BinaryLogitsOp {
  template <typename C>
  static TL_HOST_DEVICE ValueAndSlope<C> at(C x, C t, const PointwiseOptions<C>& o) {
    const C e = exponential(-magnitude(x));
    const C tail = logarithm_1p(e);
    const C small = e / (C{1} + e);  // sigmoid(-|x|)
    const C large = C{1} / (C{1} + e);
    const C plus = (x > C{0} ? x : C{0}) + tail;    // softplus(x)
    const C minus = (x < C{0} ? -x : C{0}) + tail;  // softplus(-x)
    const C sigmoid = x >= C{0} ? large : small;
    const C opposite = x >= C{0} ? small : large;
    const C positive = o.positive * t;
    const C value = (C{1} - t) * plus + positive * minus;
    return {is_nan(x) ? x : value, is_nan(x) ? x : (C{1} - t) * sigmoid - positive * opposite};
  }
};

/// t (ln t - x), 0 where t is 0.
struct KlDivergenceOp {
  template <typename C>
  static TL_HOST_DEVICE ValueAndSlope<C> at(C x, C t, const PointwiseOptions<C>&) {
    return {t == C{0} ? C{0} : t * (logarithm(t) - x), -t};
  }
};

/// e^t (t - x): the target is a log-probability. NaN for one of -infinity, as in PyTorch.
struct KlDivergenceLogOp {
  template <typename C>
  static TL_HOST_DEVICE ValueAndSlope<C> at(C x, C t, const PointwiseOptions<C>&) {
    const C p = exponential(t);
    return {p * (t - x), -p};
  }
};

}  // namespace tensorlint::kernels
