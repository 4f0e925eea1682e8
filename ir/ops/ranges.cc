#include "ir/ops/ranges.h"

#include <algorithm>
#include <cmath>

namespace tensorlint::ops {
namespace {

struct Rounding {
  double relative;  ///< at least one unit in the last place
  double absolute;  ///< one unit among subnormal numbers
  double largest;
};

std::optional<Rounding> rounding_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return Rounding{0x1p-52, 0x1p-1074, HUGE_VAL};
    case DType::kFloat32:
      return Rounding{0x1p-23, 0x1p-149, 0x1.fffffep127};
    case DType::kBFloat16:
      return Rounding{0x1p-7, 0x1p-133, 0x1.fep127};
    case DType::kFloat16:
      return Rounding{0x1p-10, 0x1p-24, 65504};
    default:
      return std::nullopt;
  }
}

/// Numbers around 0 round to 0 or away from it, never past it.
double outwards(double end, double sign, const Rounding& rounding, double units) {
  if (std::isinf(end) || end == 0) return end;
  const double moved = end + sign * units * std::max(std::fabs(end) * rounding.relative, rounding.absolute);
  return std::fabs(moved) >= rounding.largest ? std::copysign(HUGE_VAL, moved) : moved;
}

/// 0 times infinity is NaN, which is noted apart; as the end of an interval it is 0.
double product(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

bool may_be_infinite(const Range& range) { return std::isinf(range.lo) || std::isinf(range.hi); }
bool may_be_zero(const Range& range) { return range.lo <= 0 && range.hi >= 0; }

}  // namespace

Range widened(const Range& range, DType to) {
  const auto rounding = rounding_of(to);
  if (!rounding) return Range{};
  // Small whole numbers are exact in every one of these.
  const auto end = [&](double value, double sign) {
    return value == std::floor(value) && std::fabs(value) <= 256 ? value : outwards(value, sign, *rounding, 1);
  };
  return {end(range.lo, -1), end(range.hi, 1), range.nan};
}

Range widened(const Range& range, DTypeSet dtypes) {
  std::optional<Rounding> coarsest;
  for (int code = 1; code < kDTypeCount; ++code) {
    if (!dtypes.contains(static_cast<DType>(code))) continue;
    const auto rounding = rounding_of(static_cast<DType>(code));
    if (!rounding) return Range{};
    if (!coarsest) coarsest = rounding;
    coarsest =
        Rounding{std::max(coarsest->relative, rounding->relative), std::max(coarsest->absolute, rounding->absolute),
                 std::min(coarsest->largest, rounding->largest)};
  }
  if (!coarsest) return Range{};
  constexpr double kUnits = 8;
  return {outwards(range.lo, -1, *coarsest, kUnits), outwards(range.hi, 1, *coarsest, kUnits), range.nan};
}

Range add(const Range& a, const Range& b) {
  const double inf = HUGE_VAL;
  const bool cancels = (a.hi == inf && b.lo == -inf) || (a.lo == -inf && b.hi == inf);
  Range sum{a.lo + b.lo, a.hi + b.hi, a.nan || b.nan || cancels};
  if (std::isnan(sum.lo)) sum.lo = -inf;
  if (std::isnan(sum.hi)) sum.hi = inf;
  return sum;
}

Range subtract(const Range& a, const Range& b) { return add(a, {-b.hi, -b.lo, b.nan}); }

Range multiply(const Range& a, const Range& b) {
  const double ends[] = {product(a.lo, b.lo), product(a.lo, b.hi), product(a.hi, b.lo), product(a.hi, b.hi)};
  const bool undefined = (may_be_infinite(a) && may_be_zero(b)) || (may_be_infinite(b) && may_be_zero(a));
  return {*std::min_element(std::begin(ends), std::end(ends)), *std::max_element(std::begin(ends), std::end(ends)),
          a.nan || b.nan || undefined};
}

Range divide(const Range& a, const Range& b) {
  if (may_be_zero(b)) return Range{};
  const Range inverse{1 / b.hi, 1 / b.lo, b.nan};
  Range quotient = multiply(a, {std::nextafter(inverse.lo, -HUGE_VAL), std::nextafter(inverse.hi, HUGE_VAL), b.nan});
  quotient.nan = quotient.nan || (may_be_infinite(a) && may_be_infinite(b));
  return quotient;
}

void set_computed_range(Inference& in, int result, const Range& range) {
  const DTypeSet dtypes = in.result(result).dtypes;
  if (dtypes.proves(DTypeSet::floats())) {
    in.set_range(result, widened(range, dtypes));
  } else if (dtypes.proves(DTypeSet::integers())) {
    const Range limits = range_of(dtypes.single() ? dtypes : DTypeSet());
    if (limits.is_everything() || range.lo < limits.lo || range.hi > limits.hi || std::isnan(range.lo) ||
        std::isnan(range.hi))
      return;
    // From 2^53 on a sum of ends may be rounded inwards.
    if (std::fabs(range.lo) >= 0x1p53 || std::fabs(range.hi) >= 0x1p53) return;
    in.set_range(result, {range.lo, range.hi, false});
  }
}

bool attains_bounds(Inference& in, Opcode opcode) {
  if (in.result_count() == 0 || in.result().kind != ValueKind::kTensor) return false;
  const Range& result = in.result().range;
  const auto width = [](const Range& range) { return range.hi - range.lo; };
  const auto is_number = [&](int operand) { return in.has(operand) && width(in.operand(operand).range) == 0; };
  const auto attains = [&](int operand) { return in.has(operand) && in.operand(operand).attains; };
  if (repeats_elements(opcode)) return attains(0) && result == in.operand(0).range;
  if (!in.result().dtypes.proves(DTypeSet::integers())) return false;
  if (opcode == Opcode::kCast) return attains(0) && result == in.operand(0).range;
  if (opcode != Opcode::kAdd && opcode != Opcode::kSub && opcode != Opcode::kMul) return false;
  for (const int side : {0, 1}) {
    if (!attains(side) || !is_number(1 - side)) continue;
    const double factor = opcode == Opcode::kMul ? std::fabs(in.operand(1 - side).range.lo) : 1;
    return width(result) == factor * width(in.operand(side).range);  // else something wraps around
  }
  return false;
}

Range clamped(const Range& range, double lo, double hi) {
  const Range inside{std::clamp(range.lo, lo, hi), std::clamp(range.hi, lo, hi), range.nan};
  return inside.lo <= inside.hi ? inside : Range{lo, hi, range.nan};
}

}  // namespace tensorlint::ops
