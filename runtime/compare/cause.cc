#include "runtime/compare/cause.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "runtime/compare/floats.h"
#include "runtime/values/codec.h"

namespace tensorlint::compare {

using runtime::HostTensor;

namespace {

/// How an affine map of the reference fits what was recorded.
struct Fit {
  double factor = 1, offset = 0, residual = 0;  ///< residual: root mean square, of the recorded elements' deviation 1
};

Fit fit(std::span<const double> reference, std::span<const double> other) {
  const auto n = static_cast<double>(reference.size());
  double x = 0, y = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) x += reference[i] / n, y += other[i] / n;
  double xx = 0, xy = 0, yy = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double a = reference[i] - x, b = other[i] - y;
    xx += a * a, xy += a * b, yy += b * b;
  }
  Fit result;
  if (!(xx > 0) || !(yy > 0)) return {1, y - x, yy > 0 ? 1.0 : 0.0};
  result.factor = xy / xx;
  result.offset = y - result.factor * x;
  result.residual = std::sqrt(std::max(1 - xy * xy / (xx * yy), 0.0));
  return result;
}

/// The elements are the same, in another order.
bool is_permuted(std::vector<double> reference, std::vector<double> other, double close) {
  std::ranges::sort(reference);
  std::ranges::sort(other);
  for (std::size_t i = 0; i < reference.size(); ++i)
    if (!(std::fabs(reference[i] - other[i]) <= close * std::fabs(reference[i]))) return false;
  return true;
}

std::string differing_part(const TensorTest& test, const HostTensor& other, std::span<const double> reference,
                           std::span<const double> recorded) {
  std::size_t zeros = 0, first = test.count, last = 0;
  const double close = 64 * roundoff_of(float_format(other.dtype()));
  for (std::size_t i = 0; i < test.count; ++i) {
    if (std::fabs(reference[i] - recorded[i]) <= close * std::fabs(reference[i])) continue;
    first = std::min(first, i), last = i;
    zeros += recorded[i] == 0;
  }
  if (test.beyond > 0 && zeros * 10 >= test.beyond * 9 && test.beyond < test.count)
    return fmt::format("{} of {} elements are 0: they may not have been computed", zeros, test.count);
  if (first < test.count && first * 2 > test.count && last + 1 == test.count)
    return fmt::format("only elements from {} of {} on are off: the handling of a tail", first, test.count);
  if (test.beyond * 4 < test.count) return fmt::format("{} of {} elements are off", test.beyond, test.count);
  return {};
}

}  // namespace

std::string guess_cause(const Expected& expected, const HostTensor& other, const TensorTest& test,
                        runtime::Memory& memory) {
  if (other.dtype() == DType::kString) return {};
  if (!runtime::is_float(other.dtype()))
    return fmt::format("{} of {} elements differ, and are exact", test.beyond, test.count);
  const FloatFormat format = float_format(other.dtype());
  if (test.is_other_class) {
    if (std::isnan(test.other)) return "not a number where the reference is one";
    if (std::isinf(test.other)) return "overflow: infinite where the reference is finite";
    return "finite where the reference is not";
  }
  if (std::fabs(test.other) == format.largest)
    return fmt::format("saturated at {}, the largest number of its dtype", format.largest);
  const HostTensor a = runtime::to_float64(expected.value.tensor(), memory), b = runtime::to_float64(other, memory);
  const std::span<const double> reference = a.as<double>(), recorded = b.as<double>();
  const auto finite = [](double x) { return std::isfinite(x); };
  if (!std::ranges::all_of(reference, finite) || !std::ranges::all_of(recorded, finite)) return {};
  if (test.count >= 8) {
    if (std::ranges::all_of(recorded, [](double x) { return x == 0; })) return "all elements are 0";
    const Fit line = fit(reference, recorded);
    const double close = 64 * roundoff_of(format);
    double scale = 0;
    for (const double x : reference) scale = std::max(scale, std::fabs(x));
    if (line.residual <= std::sqrt(close) / 4) {
      const bool has_offset = std::fabs(line.offset) > close * scale;
      const bool has_factor = std::fabs(line.factor - 1) > close;
      if (has_factor && !has_offset) return fmt::format("all elements are {:.6g} times the reference", line.factor);
      if (has_offset && !has_factor) return fmt::format("all elements are off by {:.6g}", line.offset);
      if (has_factor) return fmt::format("elements are about {:.6g} x + {:.6g}", line.factor, line.offset);
    }
    if (is_permuted({reference.begin(), reference.end()}, {recorded.begin(), recorded.end()}, close))
      return "the same elements in another order: a transposed operand, or another axis";
    if (std::string part = differing_part(test, other, reference, recorded); !part.empty()) return part;
  }
  if (test.beyond == 0 && test.slope_z > kDeviations)
    return fmt::format("errors within rounding, and all in one direction: about {:.3g} of the value", test.slope);
  return {};
}

}  // namespace tensorlint::compare
