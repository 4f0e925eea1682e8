#include "runtime/compare/tensor_test.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_set>

#include "base/hash.h"
#include "runtime/compare/floats.h"
#include "runtime/compare/noise.h"
#include "runtime/values/codec.h"

namespace tensorlint::compare {

using runtime::HostTensor;

namespace {

constexpr double kIll = 0.1;                 // of the values: an error bound that says nothing
constexpr double kRmsLimit = 3;              // bounds are four standard deviations: a tensor cannot be at three
constexpr std::size_t kFewElements = 16;     // say nothing about their root mean square
constexpr std::size_t kFewDistinct = 64;     // nor about a slope
constexpr std::size_t kMostDistinct = 4096;  // that are counted

/// Least squares of error = slope * reference, through 0.
class Slope {
 public:
  void add(double reference, double error) {
    if (!std::isfinite(reference) || !std::isfinite(error)) return;
    squares_ += reference * reference, products_ += reference * error, errors_ += error * error;
    error_ += error;
    ++count_;
    if (distinct_.size() < kMostDistinct) distinct_.insert(std::bit_cast<std::uint64_t>(reference));
  }
  double slope() const { return squares_ > 0 ? products_ / squares_ : 0; }
  /// In standard errors. Equal references round equally: they count once. `rounding`: root mean square of what storing
  /// the elements rounds.
  double deviations(double allowance, double rounding) const {
    const std::size_t distinct = distinct_.size() < kMostDistinct ? distinct_.size() : count_;
    if (distinct < kFewDistinct || !(squares_ > 0)) return 0;
    const double residual = std::max(errors_ - slope() * products_, 0.0) / static_cast<double>(count_);
    const double each = std::max(residual, rounding * rounding);
    const double standard = std::sqrt(each / (squares_ / static_cast<double>(count_)) / static_cast<double>(distinct));
    const double beyond = std::fabs(slope()) - allowance;
    return beyond <= 0 ? 0 : standard > 0 ? beyond / standard : HUGE_VAL;
  }

  /// The mean of the errors, in standard errors.
  double offset(double rounding) const {
    const std::size_t distinct = distinct_.size() < kMostDistinct ? distinct_.size() : count_;
    if (distinct < kFewDistinct) return 0;
    const double mean = error_ / static_cast<double>(count_);
    const double each = std::max(errors_ / static_cast<double>(count_) - mean * mean, rounding * rounding);
    return each > 0 ? std::fabs(mean) / std::sqrt(each / static_cast<double>(distinct)) : 0;
  }

 private:
  double squares_ = 0, products_ = 0, errors_ = 0, error_ = 0;
  std::size_t count_ = 0;
  std::unordered_set<std::uint64_t, WordHash> distinct_;
};

void test_strings(const Expected& expected, const HostTensor& other, TensorTest& test) {
  const HostTensor& reference = expected.value.tensor();
  for (std::size_t i = 0; i < test.count; ++i) {
    if (reference.strings()[i] == other.strings()[i]) continue;
    if (test.differing++ == 0) test.worst = i;
  }
  if (test.differing == 0) return;
  test.beyond = test.differing;
  test.ratio = test.worst_error = HUGE_VAL;
  test.verdict = Verdict::kBug;
}

/// One element with all that is expected of it.
struct Element {
  double reference, rounded, other, bound, expected;
};

/// Error over bound; 0 where they agree, infinite where no bound covers it.
double ratio_of(const Element& e, const FloatFormat& format, bool is_float, const TestOptions& options,
                TensorTest& test, double& error) {
  error = 0;
  if (e.rounded == e.other || (std::isnan(e.rounded) && std::isnan(e.other))) return 0;
  ++test.differing;
  if (options.flushes && e.other == 0 && std::fabs(e.rounded) < std::ldexp(1.0, format.least_exponent)) return 0;
  error = std::fabs(e.other - e.reference);
  // Near the largest number one side may overflow.
  const double reach = std::fabs(e.reference) + e.bound + ulp_of(format, format.largest) / 2;
  const bool may_overflow = is_float && reach >= format.largest && std::signbit(e.reference) == std::signbit(e.other);
  if (std::isfinite(e.other) && std::isfinite(e.reference) && !std::isnan(error)) {
    if (std::isinf(e.bound)) return 0;
    return e.bound > 0 ? error / e.bound : HUGE_VAL;
  }
  if (std::isinf(e.other) && !std::isnan(e.reference) && may_overflow) return error = 0, 0;
  if (std::isinf(e.bound)) return error = 0, 0;
  test.is_other_class = true;
  error = HUGE_VAL;
  return HUGE_VAL;
}

}  // namespace

bool is_comparable(DType a, DType b) { return a == b || (is_real(a) && is_real(b)); }

bool is_comparable(const runtime::HostValue& value, const HostTensor& other) {
  return value.is_tensor() && value.tensor().extents() == other.extents() &&
         is_comparable(value.dtype(), other.dtype());
}

double bound_of(const Expected& expected, DType dtype, double reference, std::size_t element) {
  const double spread = expected.spread.is_absent() ? 0 : expected.spread.as<double>()[element];
  if (expected.is_chosen) return HUGE_VAL;  // rounding decides which shape it has
  if (!runtime::is_float(dtype)) return kDeviations * spread;
  const double half = ulp_of(float_format(dtype), reference) / 2;
  const double own = expected.own.is_absent() ? 0 : expected.own.as<double>()[element];
  const double bound = own + kDeviations * spread + (expected.is_rounded ? 2 * half : half);
  return std::isnan(bound) ? HUGE_VAL : bound;
}

std::string_view to_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::kIdentical:
      return "identical";
    case Verdict::kExplained:
      return "explained";
    case Verdict::kExplainedIf:
      return "explained-if";
    case Verdict::kIllConditioned:
      return "ill-conditioned";
    case Verdict::kBug:
      return "bug";
  }
  return "";
}

TensorTest test_tensor(const Expected& expected, const HostTensor& other, runtime::Memory& memory,
                       const TestOptions& options) {
  TensorTest test;
  test.count = other.size();
  if (other.dtype() == DType::kString) return test_strings(expected, other, test), test;
  const bool is_float = runtime::is_float(other.dtype());
  const FloatFormat format = float_format(other.dtype());
  const HostTensor reference = runtime::to_float64(expected.value.tensor(), memory);
  const HostTensor recorded = runtime::to_float64(other, memory);
  HostTensor stored;  // the reference as the dtype holds it
  if (is_float) {
    stored = HostTensor(other.dtype(), other.extents(), memory);
    runtime::store(stored, 0, test.count, reference.as<double>().data(), false);
  }
  const HostTensor rounded = is_float ? runtime::to_float64(stored, memory) : reference;
  Slope slope;
  double errors = 0, expectations = 0, roundings = 0, bounds = 0, values = 0, worst = -1;
  for (std::size_t i = 0; i < test.count; ++i) {
    Element e{reference.as<double>()[i], rounded.as<double>()[i], recorded.as<double>()[i], 0, 0};
    const double spread = expected.spread.is_absent() ? 0 : expected.spread.as<double>()[i];
    const double half = is_float ? ulp_of(format, std::fabs(e.reference)) / 2 : 0;
    const double own = expected.own.is_absent() ? 0 : expected.own.as<double>()[i];
    e.bound = bound_of(expected, other.dtype(), e.reference, i);
    e.expected = std::sqrt(own * own / 16 + spread * spread + half * half / 3);
    double error = 0;
    const double ratio = ratio_of(e, format, is_float, options, test, error);
    test.beyond += ratio > 1;
    if (ratio > worst || (ratio == worst && error > test.worst_error)) {
      worst = ratio;
      test.worst = i, test.worst_error = error, test.bound = e.bound, test.ratio = ratio;
      test.reference = e.reference, test.other = e.other;
    }
    if (!is_float || !std::isfinite(e.reference) || !std::isfinite(e.other)) continue;
    const double off = e.other - e.rounded;
    slope.add(e.rounded, off);
    errors += off * off, expectations += e.expected * e.expected, roundings += half * half / 3;
    if (std::isfinite(e.bound)) bounds += e.bound * e.bound, values += e.reference * e.reference;
  }
  const auto count = static_cast<double>(std::max<std::size_t>(test.count, 1));
  if (is_float && expectations > 0) test.rms_ratio = std::sqrt(errors / expectations);
  test.slope = slope.slope();
  const double spread_share = values > 0 ? std::sqrt(bounds / values) : 0;
  // Where elements have noise of their own, so has what they share.
  const double allowance = expected.systematic + (expected.spread.is_absent() ? 0 : spread_share);
  test.slope_z = slope.deviations(allowance, std::sqrt(roundings / count));
  test.offset_z = slope.offset(std::sqrt(roundings / count));
  const bool is_bug =
      test.beyond > 0 || (test.count >= kFewElements && test.rms_ratio > kRmsLimit) || test.slope_z > kDeviations;
  if (test.differing == 0)
    test.verdict = Verdict::kIdentical;
  else if (is_bug)
    test.verdict = Verdict::kBug;
  else
    test.verdict = values > 0 && bounds > kIll * kIll * values ? Verdict::kIllConditioned : Verdict::kExplained;
  return test;
}

}  // namespace tensorlint::compare
