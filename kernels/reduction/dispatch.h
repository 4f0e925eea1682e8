#pragma once

#include "kernels/reduction/kernels.h"

namespace tensorlint::kernels {

/// The accumulators that have kernels; reductions are these with a finish.
enum class AccumulatorKind { kSum, kAbsolute, kSquare, kMaximum, kMinimum, kProduct, kLogSumExp, kArg, kCountNonzero };

/// Calls `visit` with the accumulator as a type argument; false where element type T has none of that kind.
template <typename T, typename Visit>
bool with_accumulator(AccumulatorKind kind, const Visit& visit) {
  constexpr bool kSigned = std::is_same_v<T, std::int8_t> || std::is_same_v<T, std::int16_t> ||
                           std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t>;
  constexpr bool kReal = !std::is_integral_v<T> || std::is_same_v<T, float> || std::is_same_v<T, double>;
  constexpr bool kByte = std::is_same_v<T, std::uint8_t>;
  if constexpr (kSigned || kReal || kByte) {
    switch (kind) {
      case AccumulatorKind::kSum:
        return visit(Sum<T, Term::kValue>{}), true;
      case AccumulatorKind::kSquare:
        return visit(Sum<T, Term::kSquare>{}), true;
      case AccumulatorKind::kMaximum:
        return visit(Extreme<T, true>{}), true;
      case AccumulatorKind::kMinimum:
        return visit(Extreme<T, false>{}), true;
      case AccumulatorKind::kProduct:
        return visit(Product<T>{}), true;
      case AccumulatorKind::kArg:
        return visit(ArgExtreme<T>{}), true;
      case AccumulatorKind::kAbsolute:
        if constexpr (kByte) return visit(Sum<T, Term::kValue>{}), true;
        if constexpr (!kByte) return visit(Sum<T, Term::kAbsolute>{}), true;
        break;
      case AccumulatorKind::kLogSumExp:
        if constexpr (kReal) return visit(LogSumExp<T>{}), true;
        break;
      case AccumulatorKind::kCountNonzero:
        break;
    }
  }
  if constexpr (std::is_unsigned_v<T>) {
    if (kind == AccumulatorKind::kCountNonzero) return visit(CountNonzero<T>{}), true;
  }
  return false;
}

/// Launches the kernel of `kind` on elements of type T. One instance file for each T. Errors: kUnsupportedDtype,
/// kLaunchFailed.
template <typename T>
Status launch_kind(AccumulatorKind kind, const ReductionParameters& p, Stream stream);

#if defined(TL_REDUCTION_INSTANCES)
template <typename T>
Status launch_kind(AccumulatorKind kind, const ReductionParameters& p, Stream stream) {
  Status status = Status::kUnsupportedDtype;
  with_accumulator<T>(kind, [&](auto accumulator) { status = launch_reduction<decltype(accumulator)>(p, stream); });
  return status;
}
#endif

}  // namespace tensorlint::kernels
