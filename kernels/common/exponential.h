#pragma once

// Sums of exponentials around a running maximum m. float works in base 2: e^x is 2^(x L), L = log2 e. Terms are
// relative to a reference near 2^(m L): where m L is small enough that its rounding is below half a unit, the reference
// is 2^b with b = m L rounded, and a term is one fused multiply-add and one ex2; beyond, it is e^m itself and a term
// costs a subtraction more. Either way the same reference divides every term, so its rounding cancels.

#include "kernels/common/vector.h"

namespace tensorlint::kernels {

/// A term is 2^((x - origin) L - shift) in float, e^(x - origin) in double.
template <typename C>
struct ExpReference {
  C origin;
  C shift;
};

template <typename C>
struct ExpBase;

template <>
struct ExpBase<float> {
  static constexpr float kLog2E = 1.44269504088896341F;
  static constexpr float kLn2 = 0.693147180559945309F;
  // Up to here the rounding of m L is at most a quarter.
  static constexpr float kPlain = 4194304.0F;

  /// Infinite maxima have the reference 1, so that +inf stays +inf and an empty sum stays 0.
  static TL_HOST_DEVICE ExpReference<float> reference(float maximum) {
    const float magnitude = fabsf(maximum);
    if (magnitude < kPlain) return {0.0F, maximum * kLog2E};
    return {magnitude <= 3.402823466e38F ? maximum : 0.0F, 0.0F};
  }
  static TL_HOST_DEVICE bool is_plain(const ExpReference<float>& reference) { return reference.origin == 0.0F; }
  static TL_HOST_DEVICE float plain_term(float x, const ExpReference<float>& reference) {
    return exp2_fast(fmaf(x, kLog2E, -reference.shift));
  }
  static TL_HOST_DEVICE float exponent(float x, const ExpReference<float>& reference) {
    return fmaf(x - reference.origin, kLog2E, -reference.shift);
  }
  static TL_HOST_DEVICE float term(float x, const ExpReference<float>& reference) {
    return exp2_fast(exponent(x, reference));
  }
  /// log2 of e^maximum over its reference.
  static TL_HOST_DEVICE float residue(float maximum, const ExpReference<float>& reference) {
    return reference.shift == 0.0F ? 0.0F : fmaf(maximum, kLog2E, -reference.shift);
  }
  /// Reference of `from` over that of `to`.
  static TL_HOST_DEVICE float rescale(float from, float to) {
    const ExpReference<float> a = reference(from);
    const ExpReference<float> b = reference(to);
    const float to_finite = fabsf(to) <= 3.402823466e38F ? to : 0.0F;
    return exp2_fast(fmaf(from - to_finite, kLog2E, residue(to_finite, b) - residue(from, a)));
  }
  /// The same between references that are powers of two: short, for the fast loop.
  static TL_HOST_DEVICE float plain_rescale(const ExpReference<float>& from, const ExpReference<float>& to) {
    return exp2_fast(from.shift - to.shift);
  }
  /// ln of a sum relative to the reference of `maximum`.
  static TL_HOST_DEVICE float log_of_sum(float maximum, const ExpReference<float>& reference, float sum) {
    if (!(fabsf(maximum) <= 3.402823466e38F)) return logf(sum);
    return maximum + (log2f(sum) - residue(maximum, reference)) * kLn2;
  }
  /// ln(sum) - x without the cancellation of the two. The exponent is halved, so that it is finite for every finite
  /// distance of x from the maximum: (x - m) L is not from 2.36e38 on.
  static TL_HOST_DEVICE float log_of_sum_minus(float x, const ExpReference<float>& reference, float sum) {
    const float half = fmaf(x - reference.origin, 0.5F * kLog2E, -0.5F * reference.shift);
    return (0.5F * log2f(sum) - half) * (2.0F * kLn2);
  }
};

template <>
struct ExpBase<double> {
  static TL_HOST_DEVICE ExpReference<double> reference(double maximum) {
    return {fabs(maximum) <= 1.7976931348623157e308 ? maximum : 0.0, 0.0};
  }
  static TL_HOST_DEVICE bool is_plain(const ExpReference<double>&) { return true; }
  static TL_HOST_DEVICE double plain_term(double x, const ExpReference<double>& reference) {
    return exp(x - reference.origin);
  }
  static TL_HOST_DEVICE double term(double x, const ExpReference<double>& reference) {
    return exp(x - reference.origin);
  }
  static TL_HOST_DEVICE double rescale(double from, double to) { return exp(from - reference(to).origin); }
  static TL_HOST_DEVICE double plain_rescale(const ExpReference<double>& from, const ExpReference<double>& to) {
    return exp(from.origin - to.origin);
  }
  static TL_HOST_DEVICE double log_of_sum(double, const ExpReference<double>& reference, double sum) {
    return reference.origin + log(sum);
  }
  static TL_HOST_DEVICE double log_of_sum_minus(double x, const ExpReference<double>& reference, double sum) {
    return log(sum) - (x - reference.origin);
  }
};

TL_HOST_DEVICE float exponential(float x) { return exp2_fast(x * ExpBase<float>::kLog2E); }
TL_HOST_DEVICE double exponential(double x) { return exp(x); }

/// The maximum and the sum of e^x relative to its reference, as a monoid.
template <typename C>
struct ExpSum {
  struct State {
    C maximum;
    C sum;
  };
  /// What one thread carries along.
  struct Running {
    C maximum;
    C sum;
    ExpReference<C> reference;
  };
  using Base = ExpBase<C>;

  static TL_HOST_DEVICE State identity() { return {Limits<C>::kLowest, C{0}}; }
  static TL_HOST_DEVICE Running start() { return {Limits<C>::kLowest, C{0}, {C{0}, C{0}}}; }
  static TL_HOST_DEVICE State collapse(const Running& running) { return {running.maximum, running.sum}; }

  /// The sum of `state` relative to the reference of `maximum`. A maximum of -inf has a sum of 0 or NaN: nothing to
  /// scale, and the factor may be infinite.
  static TL_HOST_DEVICE C sum_at(C from, C sum, C maximum) {
    return from == Limits<C>::kLowest || from == maximum ? sum
                                                         : instruction::product(sum, Base::rescale(from, maximum));
  }

  static TL_HOST_DEVICE State combine(const State& a, const State& b) {
    const C maximum = max_number(a.maximum, b.maximum);
    return {maximum, sum_at(a.maximum, a.sum, maximum) + sum_at(b.maximum, b.sum, maximum)};
  }

  static TL_HOST_DEVICE void raise(Running& running, C maximum) {
    if (!(maximum > running.maximum)) return;
    running.sum = sum_at(running.maximum, running.sum, maximum);
    running.maximum = maximum;
    running.reference = Base::reference(maximum);
  }

  static TL_HOST_DEVICE void step(Running& running, C x) {
    raise(running, x);
    running.sum += Base::term(x, running.reference);
  }
  static TL_HOST_DEVICE void step(State& state, C x) { state = combine(state, {x, Base::term(x, Base::reference(x))}); }

  /// `kCount` vectors at once: one maximum and at most one rescale for all. False, with only the maximum taken, where
  /// terms have to be relative to e^m itself: the caller leaves its fast loop and goes on with absorb. One test a batch
  /// keeps the long form out of it.
  template <int kCount, typename T>
  static TL_HOST_DEVICE bool absorb_plain(Running& running, const Vector<T> (&vectors)[kCount]) {
    const C maximum = largest_of(vectors, kCount, running.maximum);
    if (maximum > running.maximum) {
      const ExpReference<C> next = Base::reference(maximum);
      if (!Base::is_plain(next)) return false;
      if (running.maximum != Limits<C>::kLowest) running.sum *= Base::plain_rescale(running.reference, next);
      running.maximum = maximum;
      running.reference = next;
    }
    if (!Base::is_plain(running.reference)) return false;
    TL_UNROLL
    for (int v = 0; v < kCount; ++v) {
      C x[Vector<T>::kSize];
      unpack(vectors[v], x);
      C part = C{0};
      TL_UNROLL
      for (int i = 0; i < Vector<T>::kSize; ++i) part += Base::plain_term(x[i], running.reference);
      running.sum += part;
    }
    return true;
  }

  template <typename T>
  static TL_HOST_DEVICE void absorb(Running& running, const Vector<T>& vector) {
    C x[Vector<T>::kSize];
    unpack(vector, x);
    C maximum = x[0];
    TL_UNROLL
    for (int i = 1; i < Vector<T>::kSize; ++i) maximum = max_number(maximum, x[i]);
    raise(running, maximum);
    C part = C{0};
    TL_UNROLL
    for (int i = 0; i < Vector<T>::kSize; ++i) part += Base::term(x[i], running.reference);
    running.sum += part;
  }
};

}  // namespace tensorlint::kernels
