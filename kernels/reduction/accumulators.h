#pragma once

// Accumulators: what a reduction keeps while it walks its elements. An accumulator of element type T has
//   State       what lanes, warps and blocks combine; trivially copyable, a multiple of 4 bytes, at most 32
//   Thread      what one thread keeps on a contiguous walk (several independent states hide latency)
//   absorb      kCount vectors at once, `index` of the first element and `stride` between vectors, in the reduced
//   order; false: not
//               taken, go on with single vectors (those are always taken)
//   step        one element into a State
//   result      the number that the finish works on: float, double or int64
//   kFinishes   what may be done to that number
//   kUsesIndex  whether `index` and `stride` matter
//   kStepsColumns  whether it has step_columns: several elements into each of several States at once
// All are plain functions, so that the tests run them over every value of the small types.

#include "kernels/common/exponential.h"
#include "kernels/common/vector.h"

namespace tensorlint::kernels {

/// What happens to an accumulator's result before it is stored.
enum class Finish : int { kPlain, kMean, kRoot, kLog, kAny, kAll };

/// A set of finishes. An accumulator's `kFinishes` are those that some reduction asks of it: only their code is in its
/// kernels, and the call refuses the others.
TL_HOST_DEVICE constexpr unsigned finish_bit(Finish finish) { return 1U << static_cast<int>(finish); }
template <typename... Finishes>
TL_HOST_DEVICE constexpr unsigned finishes(Finishes... all) {
  return (finish_bit(all) | ...);
}

/// Run-time switches of the few accumulators that have any; uniform over a launch.
struct AccumulatorOptions {
  std::uint64_t mask = ~std::uint64_t{0};  // kCountNonzero: the bits that make an element nonzero
  bool negate = false;                     // arg: look for the smallest
  bool last = false;                       // arg: the last of equals
};

template <typename S>
struct Slots {
  static constexpr int kCount = 4;
  S slot[kCount];
};

/// Shared by accumulators whose thread state is four independent states.
template <typename Self, typename S>
struct FourSlots {
  using State = S;
  using Thread = Slots<S>;
  static constexpr bool kUsesIndex = false;
  static constexpr bool kStepsColumns = false;

  static TL_HOST_DEVICE Thread start() {
    Thread thread;
    TL_UNROLL
    for (int i = 0; i < Thread::kCount; ++i) thread.slot[i] = Self::identity();
    return thread;
  }
  static TL_HOST_DEVICE State collapse(const Thread& thread) {
    return Self::combine(Self::combine(thread.slot[0], thread.slot[1]), Self::combine(thread.slot[2], thread.slot[3]));
  }
  template <typename C>
  static TL_HOST_DEVICE void step_thread(Thread& thread, C x, std::int64_t index, const AccumulatorOptions& options) {
    Self::step(thread.slot[0], x, index, options);
  }
};

enum class Term { kValue, kAbsolute, kSquare };

/// What sums accumulate in. Integers wrap modulo 2^64, so a sum cast back to its type wraps as that type would. float32
/// and bfloat16 squares overflow float32 from 1.8e19 on, hence float64 there.
template <typename T, Term kTerm>
struct SumType {
  using Type = std::conditional_t<
      std::is_integral_v<T>, std::uint64_t,
      std::conditional_t<std::is_same_v<T, double> ||
                             (kTerm == Term::kSquare && (std::is_same_v<T, float> || std::is_same_v<T, BFloat16>)),
                         double, float>>;
};

/// Sum of x, |x| or x^2.
template <typename T, Term kTerm>
struct Sum : FourSlots<Sum<T, kTerm>, typename SumType<T, kTerm>::Type> {
  using Element = T;
  using C = Compute<T>;
  using State = typename SumType<T, kTerm>::Type;
  using Result = std::conditional_t<std::is_integral_v<T>, std::int64_t, State>;
  static constexpr unsigned kFinishes = kTerm == Term::kValue    ? finishes(Finish::kPlain, Finish::kMean, Finish::kLog)
                                        : kTerm == Term::kSquare ? finishes(Finish::kPlain, Finish::kRoot)
                                                                 : finishes(Finish::kPlain);

  static TL_HOST_DEVICE State identity() { return State{0}; }
  static TL_HOST_DEVICE State combine(State a, State b) { return a + b; }
  static TL_HOST_DEVICE State term(C x) {
    if constexpr (std::is_integral_v<T>) {
      const State wide = static_cast<State>(static_cast<std::int64_t>(x));
      if constexpr (kTerm == Term::kAbsolute) return x < 0 ? State{0} - wide : wide;
      if constexpr (kTerm == Term::kSquare) return wide * wide;
      return wide;
    } else {
      const State wide = static_cast<State>(x);
      if constexpr (kTerm == Term::kAbsolute) return wide < 0 ? -wide : wide;
      if constexpr (kTerm == Term::kSquare) return wide * wide;
      return wide;
    }
  }
  static TL_HOST_DEVICE void step(State& state, C x, std::int64_t, const AccumulatorOptions&) { state += term(x); }

  template <int kCount>
  static TL_HOST_DEVICE bool absorb(Slots<State>& thread, const Vector<T> (&vectors)[kCount], std::int64_t,
                                    std::int64_t, const AccumulatorOptions&) {
    // 16 terms of at most 2^14, or 8 of at most 2^15, fit 32 bits; int16 squares do not.
    constexpr bool kNarrow = std::is_integral_v<T> && (sizeof(T) == 1 || (sizeof(T) == 2 && kTerm != Term::kSquare));
    TL_UNROLL
    for (int v = 0; v < kCount; ++v) {
      C x[Vector<T>::kSize];
      unpack(vectors[v], x);
      if constexpr (kNarrow) {
        std::int32_t part = 0;
        TL_UNROLL
        for (int i = 0; i < Vector<T>::kSize; ++i) {
          part += kTerm == Term::kSquare ? x[i] * x[i] : kTerm == Term::kAbsolute && x[i] < 0 ? -x[i] : x[i];
        }
        thread.slot[v % 4] += static_cast<State>(static_cast<std::int64_t>(part));
      } else {
        State part = term(x[0]);
        TL_UNROLL
        for (int i = 1; i < Vector<T>::kSize; ++i) part += term(x[i]);
        thread.slot[v % 4] += part;
      }
    }
    return true;
  }
  static TL_HOST_DEVICE Result result(State state, const AccumulatorOptions&) { return static_cast<Result>(state); }
};

/// Largest or smallest; NaN where any element is NaN. Of nothing: -inf or the lowest integer (+inf, the largest).
template <typename T, bool kMaximum>
struct Extreme : FourSlots<Extreme<T, kMaximum>, Compute<T>> {
  using Element = T;
  using C = Compute<T>;
  using State = C;
  using Result = std::conditional_t<std::is_integral_v<T>, std::int64_t, State>;
  static constexpr unsigned kFinishes = finishes(Finish::kPlain);

  static TL_HOST_DEVICE State identity() {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<C>(kMaximum ? Limits<T>::kLowest : Limits<T>::kLargest);
    } else {
      return kMaximum ? Limits<C>::kLowest : Limits<C>::kLargest;
    }
  }
  static TL_HOST_DEVICE State combine(State a, State b) { return kMaximum ? max_or_nan(a, b) : min_or_nan(a, b); }
  static TL_HOST_DEVICE void step(State& state, C x, std::int64_t, const AccumulatorOptions&) {
    state = combine(state, x);
  }
  template <int kCount>
  static TL_HOST_DEVICE bool absorb(Slots<State>& thread, const Vector<T> (&vectors)[kCount], std::int64_t,
                                    std::int64_t, const AccumulatorOptions&) {
    TL_UNROLL
    for (int v = 0; v < kCount; ++v) {
      C x[Vector<T>::kSize];
      unpack(vectors[v], x);
      TL_UNROLL
      for (int i = 0; i < Vector<T>::kSize; ++i) thread.slot[v % 4] = combine(thread.slot[v % 4], x[i]);
    }
    return true;
  }
  static TL_HOST_DEVICE Result result(State state, const AccumulatorOptions&) { return static_cast<Result>(state); }
};

/// A product as mantissa times 2^exponent: no intermediate overflow or underflow, in whatever order factors come.
struct Scaled {
  double mantissa;
  std::int64_t exponent;
};

/// Moves the exponent out of the mantissa. Zero, infinities and NaN stay as they are.
TL_HOST_DEVICE Scaled normalize(Scaled value) {
  std::uint64_t bits = bit_cast<std::uint64_t>(value.mantissa);
  std::int64_t field = static_cast<std::int64_t>(bits >> 52 & 0x7ffU);
  if (field == 0) {
    if (value.mantissa == 0.0) return value;
    value.mantissa *= 0x1p64;  // subnormal
    value.exponent -= 64;
    bits = bit_cast<std::uint64_t>(value.mantissa);
    field = static_cast<std::int64_t>(bits >> 52 & 0x7ffU);
  }
  if (field == 0x7ff) return value;
  value.exponent += field - 1023;
  value.mantissa = bit_cast<double>((bits & ~(std::uint64_t{0x7ff} << 52)) | std::uint64_t{1023} << 52);
  return value;
}

/// Product. Floats in float64 with the exponent apart; integers modulo 2^64.
template <typename T, bool kInteger = std::is_integral_v<T>>
struct Product : FourSlots<Product<T>, Scaled> {
  using Element = T;
  using C = Compute<T>;
  using State = Scaled;
  using Result = double;
  static constexpr unsigned kFinishes = finishes(Finish::kPlain);

  static TL_HOST_DEVICE State identity() { return {1.0, 0}; }
  static TL_HOST_DEVICE State combine(State a, State b) {
    return normalize({a.mantissa * b.mantissa, a.exponent + b.exponent});
  }
  static TL_HOST_DEVICE void step(State& state, C x, std::int64_t, const AccumulatorOptions&) {
    const Scaled factor =
        std::is_same_v<T, double> ? normalize({static_cast<double>(x), 0}) : Scaled{static_cast<double>(x), 0};
    state = normalize({state.mantissa * factor.mantissa, state.exponent + factor.exponent});
  }
  template <int kCount>
  static TL_HOST_DEVICE bool absorb(Slots<State>& thread, const Vector<T> (&vectors)[kCount], std::int64_t index,
                                    std::int64_t, const AccumulatorOptions& options) {
    TL_UNROLL
    for (int v = 0; v < kCount; ++v) {
      C x[Vector<T>::kSize];
      unpack(vectors[v], x);
      Scaled& slot = thread.slot[v % 4];
      if constexpr (std::is_same_v<T, double>) {
        TL_UNROLL
        for (int i = 0; i < Vector<T>::kSize; ++i) step(slot, x[i], index, options);
      } else {
        // Four factors of at least 2^-149 and below 2^128 stay inside float64 between normalisations.
        TL_UNROLL
        for (int i = 0; i < Vector<T>::kSize; i += 4) {
          const double low = static_cast<double>(x[i]) * static_cast<double>(x[i + 1]);
          const double high = static_cast<double>(x[i + 2]) * static_cast<double>(x[i + 3]);
          slot = normalize({slot.mantissa * (low * high), slot.exponent});
        }
      }
    }
    return true;
  }
  static TL_HOST_DEVICE Result result(State state, const AccumulatorOptions&) {
    const std::int64_t limited = state.exponent > 5000 ? 5000 : state.exponent < -5000 ? -5000 : state.exponent;
    return ldexp(state.mantissa, static_cast<int>(limited));
  }
};

template <typename T>
struct Product<T, true> : FourSlots<Product<T, true>, std::uint64_t> {
  using Element = T;
  using C = Compute<T>;
  using State = std::uint64_t;
  using Result = std::int64_t;
  static constexpr unsigned kFinishes = finishes(Finish::kPlain);

  static TL_HOST_DEVICE State identity() { return 1; }
  static TL_HOST_DEVICE State combine(State a, State b) { return a * b; }
  static TL_HOST_DEVICE void step(State& state, C x, std::int64_t, const AccumulatorOptions&) {
    state *= static_cast<State>(static_cast<std::int64_t>(x));
  }
  template <int kCount>
  static TL_HOST_DEVICE bool absorb(Slots<State>& thread, const Vector<T> (&vectors)[kCount], std::int64_t index,
                                    std::int64_t, const AccumulatorOptions& options) {
    TL_UNROLL
    for (int v = 0; v < kCount; ++v) {
      C x[Vector<T>::kSize];
      unpack(vectors[v], x);
      TL_UNROLL
      for (int i = 0; i < Vector<T>::kSize; ++i) step(thread.slot[v % 4], x[i], index, options);
    }
    return true;
  }
  static TL_HOST_DEVICE Result result(State state, const AccumulatorOptions&) { return static_cast<Result>(state); }
};

/// ln of the sum of e^x; -inf of nothing.
template <typename T>
struct LogSumExp {
  using Element = T;
  using C = Compute<T>;
  using Monoid = ExpSum<C>;
  using State = typename Monoid::State;
  using Thread = typename Monoid::Running;
  using Result = C;
  static constexpr bool kUsesIndex = false;
  static constexpr bool kStepsColumns = true;
  static constexpr unsigned kFinishes = finishes(Finish::kPlain);

  static TL_HOST_DEVICE State identity() { return Monoid::identity(); }
  static TL_HOST_DEVICE Thread start() { return Monoid::start(); }
  static TL_HOST_DEVICE State collapse(const Thread& thread) { return Monoid::collapse(thread); }
  static TL_HOST_DEVICE State combine(const State& a, const State& b) { return Monoid::combine(a, b); }
  static TL_HOST_DEVICE void step(State& state, C x, std::int64_t, const AccumulatorOptions&) {
    Monoid::step(state, x);
  }
  static TL_HOST_DEVICE void step_thread(Thread& thread, C x, std::int64_t, const AccumulatorOptions&) {
    Monoid::step(thread, x);
  }
  template <int kCount>
  static TL_HOST_DEVICE bool absorb(Thread& thread, const Vector<T> (&vectors)[kCount], std::int64_t, std::int64_t,
                                    const AccumulatorOptions&) {
    if (Monoid::absorb_plain(thread, vectors)) return true;
    if (kCount > 1) return false;
    Monoid::absorb(thread, vectors[0]);
    return true;
  }
  /// x[c][k] into state k: one maximum for all of a column, and a rescale only where it rose.
  template <int kCount, int kWidth>
  static TL_HOST_DEVICE void step_columns(State (&states)[kWidth], const C (&x)[kCount][kWidth]) {
    using Base = ExpBase<C>;
    C largest[kWidth];
    bool raised = false;
    TL_UNROLL
    for (int k = 0; k < kWidth; ++k) {
      largest[k] = max_number(states[k].maximum, x[0][k]);
      TL_UNROLL
      for (int c = 1; c < kCount; ++c) largest[k] = max_number(largest[k], x[c][k]);
      raised = raised || largest[k] > states[k].maximum;
    }
    if (raised) {  // seldom, once the first elements have been seen
      TL_UNROLL
      for (int k = 0; k < kWidth; ++k) {
        states[k].sum = Monoid::sum_at(states[k].maximum, states[k].sum, largest[k]);
        states[k].maximum = largest[k];
      }
    }
    TL_UNROLL
    for (int k = 0; k < kWidth; ++k) {
      const ExpReference<C> reference = Base::reference(states[k].maximum);
      C part = Base::term(x[0][k], reference);
      TL_UNROLL
      for (int c = 1; c < kCount; ++c) part += Base::term(x[c][k], reference);
      states[k].sum += part;
    }
  }
  static TL_HOST_DEVICE Result result(const State& state, const AccumulatorOptions&) {
    return ExpBase<C>::log_of_sum(state.maximum, ExpBase<C>::reference(state.maximum), state.sum);
  }
};

/// Index of the largest (or, negated, smallest) element; NaN counts as larger than all; ties by position.
template <typename T>
struct ArgExtreme {
  using Element = T;
  using C = Compute<T>;
  struct State {
    std::int64_t order;  // of equals the lowest wins: the index, or kFarthest - index where the last is wanted
    C value;             // negated where the smallest is wanted
  };
  using Thread = Slots<State>;
  using Result = std::int64_t;
  static constexpr bool kUsesIndex = true;
  static constexpr bool kStepsColumns = false;
  static constexpr unsigned kFinishes = finishes(Finish::kPlain);
  static constexpr std::int64_t kFarthest = std::int64_t{1} << 62;  // above every index
  static constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::max();

  static TL_HOST_DEVICE State identity() { return {kNothing, C{0}}; }
  static TL_HOST_DEVICE Thread start() {
    Thread thread;
    TL_UNROLL
    for (int i = 0; i < Thread::kCount; ++i) thread.slot[i] = identity();
    return thread;
  }
  static TL_HOST_DEVICE State collapse(const Thread& thread) {
    return combine(combine(thread.slot[0], thread.slot[1]), combine(thread.slot[2], thread.slot[3]));
  }
  static TL_HOST_DEVICE bool above(C a, C b) { return is_nan(a) ? !is_nan(b) : a > b; }
  static TL_HOST_DEVICE State combine(const State& a, const State& b) {
    if (a.order == kNothing) return b;
    if (b.order == kNothing) return a;
    if (above(a.value, b.value)) return a;
    if (above(b.value, a.value)) return b;
    return a.order < b.order ? a : b;
  }
  // What makes keys of the elements in word `i` of a vector where the smallest is wanted: the sign of floats, all bits
  // of integers.
  static TL_HOST_DEVICE constexpr std::uint32_t negation(int i) {
    if (std::is_integral_v<T>) return 0xffffffffU;
    if (sizeof(T) == 8) return i % 2 == 1 ? 0x80000000U : 0U;
    return sizeof(T) == 1 ? 0x80808080U : sizeof(T) == 2 ? 0x80008000U : 0x80000000U;
  }
  static TL_HOST_DEVICE C key(C x, const AccumulatorOptions& options) {
    if constexpr (std::is_unsigned_v<T>) return options.negate ? static_cast<C>(Limits<T>::kLargest) - x : x;
    if constexpr (std::is_integral_v<T>) return options.negate ? ~x : x;
    return options.negate ? -x : x;
  }
  static TL_HOST_DEVICE std::int64_t order_of(std::int64_t index, const AccumulatorOptions& options) {
    return options.last ? kFarthest - index : index;
  }
  static TL_HOST_DEVICE void step(State& state, C x, std::int64_t index, const AccumulatorOptions& options) {
    state = combine(state, {order_of(index, options), key(x, options)});
  }
  static TL_HOST_DEVICE void step_thread(Thread& thread, C x, std::int64_t index, const AccumulatorOptions& options) {
    step(thread.slot[0], x, index, options);
  }
  template <int kCount>
  static TL_HOST_DEVICE bool absorb(Thread& thread, const Vector<T> (&vectors)[kCount], std::int64_t index,
                                    std::int64_t stride, const AccumulatorOptions& options) {
    // Most batches raise nothing: one maximum of all their elements tells.
    Vector<T> keys[kCount];
    C largest = C{0};
    TL_UNROLL
    for (int v = 0; v < kCount; ++v) {
      TL_UNROLL
      for (int i = 0; i < 4; ++i) keys[v].words[i] = vectors[v].words[i] ^ (options.negate ? negation(i) : 0U);
      C x[Vector<T>::kSize];
      unpack(keys[v], x);
      TL_UNROLL
      for (int i = 0; i < Vector<T>::kSize; ++i) largest = v == 0 && i == 0 ? x[0] : max_or_nan(largest, x[i]);
    }
    State& best = thread.slot[0];
    if (best.order != kNothing && (options.last ? above(best.value, largest) : !above(largest, best.value)))
      return true;
    // Where it is: the first of the vectors, and in it the first, or the last of both, that no other is above.
    TL_UNROLL
    for (int v = 0; v < kCount; ++v) {
      C x[Vector<T>::kSize];
      unpack(keys[v], x);
      C highest = x[0];
      int offset = 0;
      TL_UNROLL
      for (int i = 1; i < Vector<T>::kSize; ++i) {
        const bool take = options.last ? !above(highest, x[i]) : above(x[i], highest);
        highest = take ? x[i] : highest;
        offset = take ? i : offset;
      }
      best = combine(best, {order_of(index + v * stride + offset, options), highest});
    }
    return true;
  }
  static TL_HOST_DEVICE Result result(const State& state, const AccumulatorOptions& options) {
    return options.last ? kFarthest - state.order : state.order;
  }
};

/// Number of elements with a bit of `options.mask` set; the element type is the raw word of that size.
template <typename T>
struct CountNonzero : FourSlots<CountNonzero<T>, std::uint64_t> {
  using Element = T;
  using C = Compute<T>;
  using State = std::uint64_t;
  using Result = std::int64_t;
  static constexpr unsigned kFinishes =
      finishes(Finish::kPlain, Finish::kMean, Finish::kRoot, Finish::kLog, Finish::kAny, Finish::kAll);

  static TL_HOST_DEVICE State identity() { return 0; }
  static TL_HOST_DEVICE State combine(State a, State b) { return a + b; }
  static TL_HOST_DEVICE void step(State& state, C x, std::int64_t, const AccumulatorOptions& options) {
    state += (x & static_cast<C>(options.mask)) != 0 ? 1U : 0U;
  }
  template <int kCount>
  static TL_HOST_DEVICE bool absorb(Slots<State>& thread, const Vector<T> (&vectors)[kCount], std::int64_t,
                                    std::int64_t, const AccumulatorOptions& options) {
    TL_UNROLL
    for (int v = 0; v < kCount; ++v) {
      C x[Vector<T>::kSize];
      unpack(vectors[v], x);
      unsigned part = 0;
      TL_UNROLL
      for (int i = 0; i < Vector<T>::kSize; ++i) part += (x[i] & static_cast<C>(options.mask)) != 0 ? 1U : 0U;
      thread.slot[v % 4] += part;
    }
    return true;
  }
  static TL_HOST_DEVICE Result result(State state, const AccumulatorOptions&) { return static_cast<Result>(state); }
};

}  // namespace tensorlint::kernels
