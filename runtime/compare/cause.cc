#include "runtime/compare/cause.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/compare/floats.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/values/codec.h"

namespace tensorlint::compare {

using runtime::HostTensor;

namespace {

constexpr std::size_t kFewElements = 8;  // look like anything
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

/// The elements of a recorded tensor and of its reference, and guesses about how the ones came from the others.
///
/// A guess is a prediction of the recorded elements. It counts where it removes four fifths of the error (root mean
/// square) and leaves 99 of 100 elements within their bounds: correlation proves nothing, since all that is nearly
/// right correlates with the reference.
class Guess {
 public:
  Guess(const Expected& expected, const HostTensor& other, const TensorTest& test, runtime::Memory& memory)
      : test_(test),
        format_(float_format(other.dtype())),
        is_float_(runtime::is_float(other.dtype())),
        dtype_(other.dtype()),
        a_(runtime::to_float64(expected.value.tensor(), memory)),
        b_(runtime::to_float64(other, memory)),
        c_(DType::kFloat64, other.extents(), memory),
        reference_(a_.as<double>()),
        recorded_(b_.as<double>()),
        bounds_(c_.as<double>()),
        extents_(other.extents().begin(), other.extents().end()),
        count_(other.size()) {
    strides_.assign(extents_.size(), 1);
    for (std::size_t axis = extents_.size(); axis-- > 1;) strides_[axis - 1] = strides_[axis] * extents_[axis];
    const std::span<double> bounds = c_.as_mutable<double>();
    bounds_ = bounds;
    double others = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      bounds[i] = is_float_ ? bound_of(expected, dtype_, reference_[i], i) : 0;
      error_ += error(i) * error(i);
      if (is_off(i))
        ++off_;
      else if (bounds[i] > 0 && std::isfinite(bounds[i]))
        others += error(i) / bounds[i] * error(i) / bounds[i];
    }
    // Errors that one rounding spreads evenly have a third of the square of their bound; all others have less.
    others_are_right_ = others <= 0.5 * static_cast<double>(count_ - off_);
  }

  bool is_finite() const {
    const auto finite = [](double x) { return std::isfinite(x); };
    return std::ranges::all_of(reference_, finite) && std::ranges::all_of(recorded_, finite);
  }

  std::string of_floats() const {
    using Step = std::string (Guess::*)() const;
    constexpr std::array<Step, 12> kSteps{&Guess::zero,    &Guess::one_for_all, &Guess::one_sign,
                                          &Guess::clipped, &Guess::moved,       &Guess::other_order,
                                          &Guess::part,    &Guess::narrowed,    &Guess::line_for_all,
                                          &Guess::by_axis, &Guess::one_term,    &Guess::toward_zero};
    for (const Step step : kSteps)
      if (std::string cause = (this->*step)(); !cause.empty()) return cause;
    return {};
  }

  std::string of_integers() const {
    double least = HUGE_VAL, most = -HUGE_VAL;
    for (std::size_t i = 0; i < count_; ++i)
      if (is_off(i)) least = std::min(least, error(i)), most = std::max(most, error(i));
    const std::string start =
        fmt::format("{} of {} {} {}", test_.beyond, count_, dtype_ == DType::kBool ? "truths" : "integers",
                    test_.beyond == 1 ? "differs" : "differ");
    if (!(least <= most) || dtype_ == DType::kBool) return start;
    if (least < -1 || most > 1) {
      if (std::string cause = moved(); !cause.empty()) return cause;
      if (std::string cause = other_order(); !cause.empty()) return cause;
    }
    const bool is_code = packed_bytes(dtype_, 2).value_or(0) <= 2;  // of quantised values
    const std::string_view all = off_ == 1 ? "" : "all ";
    if (std::fabs(least) == 1 && std::fabs(most) == 1) {
      const std::string by = least == most ? fmt::format("{:+}", least) : "1";
      const std::string_view why = !is_code       ? ""
                                   : is_shifted() ? ": another zero point"
                                                  : ": another rounding of the quantisation";
      return fmt::format("{}, {}by {}{}", start, all, by, why);
    }
    return least == most ? fmt::format("{}, {}by {:+}", start, all, least)
                         : fmt::format("{}, by {:+} to {:+}", start, least, most);
  }

 private:
  double error(std::size_t i) const { return recorded_[i] - reference_[i]; }
  bool is_off(std::size_t i) const { return std::fabs(error(i)) > bounds_[i]; }
  /// What storing a recorded element, twice, rounds: it may be larger than the reference.
  double stored(std::size_t i) const { return is_float_ ? 4 * roundoff_of(format_) * std::fabs(recorded_[i]) : 0; }
  std::size_t at(std::size_t i, std::size_t axis) const { return i / strides_[axis] % extents_[axis]; }

  /// All integers that are no extremes, which clipping makes, differ.
  bool is_shifted() const {
    const auto [least, most] = std::ranges::minmax(recorded_);
    if (off_ < kFewElements) return false;
    for (std::size_t i = 0; i < count_; ++i)
      if (!is_off(i) && recorded_[i] != least && recorded_[i] != most) return false;
    return true;
  }

  /// Whether `predicted(i)` is what was recorded; NaN predicts nothing of an element, of which few may be so.
  template <typename Predicted, typename Slack>
  bool explains(const Predicted& predicted, const Slack& slack) const {
    std::size_t covered = 0, wrong = 0;
    double before = 0, after = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const double x = predicted(i);
      if (std::isnan(x)) continue;
      ++covered;
      const double left = recorded_[i] - x;
      before += error(i) * error(i), after += left * left;
      if (!(std::fabs(left) <= slack(i)) && ++wrong * 100 > count_) return false;
    }
    constexpr double kLeft = 1.0 / 5;
    return covered * 4 >= count_ * 3 && wrong * 100 <= covered && after <= kLeft * kLeft * before;
  }

  template <typename Predicted>
  bool explains(const Predicted& predicted, double stretch = 1) const {
    return explains(predicted, [&](std::size_t i) { return bounds_[i] * std::max(stretch, 1.0) + stored(i); });
  }

  /// Element i is that at `from(i)`, or unknown where that is `count_`.
  template <typename From>
  bool moves(const From& from) const {
    return explains(
        [&](std::size_t i) {
          const std::size_t j = from(i);
          return j < count_ ? reference_[j] : kNothing;
        },
        [&](std::size_t i) { return bounds_[from(i)] + bounds_[i]; });
  }

  std::string zero() const {
    return std::ranges::all_of(recorded_, [](double x) { return x == 0; }) ? "all elements are 0" : "";
  }

  /// Elements of one sign are right, and those of the other one are not: so do activations differ.
  std::string one_sign() const {
    std::array<std::size_t, 2> off{}, right{};
    bool are_zero = true;
    for (std::size_t i = 0; i < count_; ++i) {
      const std::size_t is_positive = reference_[i] > 0;
      if (is_off(i) || reference_[i] != 0) ++(is_off(i) ? off : right)[is_positive];
      if (is_off(i)) are_zero &= recorded_[i] == 0;
    }
    for (const std::size_t sign : {std::size_t{0}, std::size_t{1}}) {
      const bool is_so = off[1 - sign] == 0 && off[sign] >= kFewElements && right[1 - sign] >= kFewElements &&
                         off[sign] * 4 >= (off[sign] + right[sign]) * 3;
      if (!is_so) continue;
      return fmt::format("only elements that should be {} are off{}: another activation, or another slope of it",
                         sign == 0 ? "0 or less" : "positive", are_zero ? ", and are 0" : "");
    }
    return {};
  }

  std::string clipped() const {
    const auto [least, most] = std::ranges::minmax(recorded_);
    std::size_t above = 0, below = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (!is_off(i)) continue;
      const bool is_above = recorded_[i] == most && reference_[i] > most;
      if (!is_above && !(recorded_[i] == least && reference_[i] < least)) return {};
      ++(is_above ? above : below);
    }
    if (above + below < 3 || least == most) return {};
    if (below == 0) return fmt::format("elements above {:.6g} are clipped to it", most);
    if (above == 0) return fmt::format("elements below {:.6g} are clipped to it", least);
    return fmt::format("elements are clipped to {:.6g} and {:.6g}", least, most);
  }

  std::string moved() const {
    const std::size_t rank = extents_.size();
    if (count_ < kFewElements) return {};
    for (std::size_t axis = 0; axis < rank; ++axis) {
      if (extents_[axis] < 2) continue;
      const std::size_t stride = strides_[axis], extent = extents_[axis];
      if (extent >= 4) {
        for (const bool is_before : {true, false})
          if (moves([&](std::size_t i) {
                const std::size_t index = at(i, axis);
                return is_before ? (index == 0 ? count_ : i - stride) : (index + 1 == extent ? count_ : i + stride);
              }))
            return fmt::format("elements are those one place {} along axis {}: shifted by one",
                               is_before ? "before" : "further", axis);
      }
      if (moves([&](std::size_t i) { return i - at(i, axis) * stride + (extent - 1 - at(i, axis)) * stride; }))
        return fmt::format("elements are in reverse order along axis {}", axis);
      if (extent % 2 == 0 && extent >= 4 &&
          moves([&](std::size_t i) { return i - at(i, axis) * stride + (at(i, axis) + extent / 2) % extent * stride; }))
        return fmt::format("the halves along axis {} are exchanged", axis);
      constexpr std::size_t kMostExchanged = 8;  // axes: each pair is tried on all elements
      for (std::size_t b = axis + 1; b < std::min(rank, kMostExchanged); ++b)
        if (extents_[b] == extent && moves([&](std::size_t i) {
              return i - at(i, axis) * stride - at(i, b) * strides_[b] + at(i, b) * stride + at(i, axis) * strides_[b];
            }))
          return fmt::format("axes {} and {} are exchanged: a transposed operand or result", axis, b);
    }
    if (rank < 2 || extents_[rank - 2] < 2 || extents_[rank - 1] < 2) return {};
    const std::size_t rows = extents_[rank - 2], columns = extents_[rank - 1];
    if (moves([&](std::size_t i) {
          const std::size_t k = i % (rows * columns);
          return i - k + k % rows * columns + k / rows;
        }))
      return fmt::format("elements lie in memory as if axes {} and {} were exchanged", rank - 2, rank - 1);
    for (const bool is_before : {true, false})
      if (rows >= 8 && columns >= 8 && moves([&](std::size_t i) {
            const std::size_t row = at(i, rank - 2), column = at(i, rank - 1);
            if (is_before) return row == 0 || column == 0 ? count_ : i - columns - 1;
            return row + 1 == rows || column + 1 == columns ? count_ : i + columns + 1;
          }))
        return fmt::format("elements are those one place {} along axes {} and {}: another padding or offset",
                           is_before ? "before" : "further", rank - 2, rank - 1);
    return {};
  }

  std::string other_order() const {
    // Of so many elements, any two draws from one distribution are nearly the same in order.
    const double u = roundoff_of(format_);
    if (count_ > (std::size_t{1} << 22) || (is_float_ && static_cast<double>(count_) * 16 * u * u > 1)) return {};
    std::vector<std::pair<double, double>> right(count_);
    std::vector<double> other(recorded_.begin(), recorded_.end());
    for (std::size_t i = 0; i < count_; ++i) right[i] = {reference_[i], bounds_[i]};
    std::ranges::sort(right);
    std::ranges::sort(other);
    double after = 0;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const double left = other[i] - right[i].first;
      after += left * left;
      wrong += !(std::fabs(left) <= right[i].second);
    }
    if (wrong * 100 > count_ || after > error_ / 25 || right.front().first == right.back().first || off_ < 2) return {};
    return "the same elements in another order: a transposed operand, or another axis";
  }

  /// Indices of the least box around the elements that are off; empty where they do not fill half of it.
  std::string box() const {
    std::vector<std::size_t> first(extents_.size(), std::numeric_limits<std::size_t>::max()), last(extents_.size(), 0);
    for (std::size_t i = 0; i < count_; ++i) {
      if (!is_off(i)) continue;
      for (std::size_t axis = 0; axis < extents_.size(); ++axis)
        first[axis] = std::min(first[axis], at(i, axis)), last[axis] = std::max(last[axis], at(i, axis));
    }
    std::size_t size = 1;
    std::vector<std::string> words;
    for (std::size_t axis = 0; axis < extents_.size(); ++axis) {
      const std::size_t extent = last[axis] - first[axis] + 1;
      size *= extent;
      words.push_back(extent == extents_[axis] && extent > 1 ? ":"
                      : extent == 1                          ? fmt::format("{}", first[axis])
                                                             : fmt::format("{}:{}", first[axis], last[axis] + 1));
    }
    if (off_ * 2 < size || size * 2 > count_) return {};
    return fmt::format(", at [{}]", fmt::join(words, ", "));
  }

  std::string part() const {
    if (off_ == 0 || off_ == count_ || !others_are_right_) return {};
    std::size_t zeros = 0, first = count_;
    for (std::size_t i = count_; i-- > 0;)
      if (is_off(i)) first = i, zeros += recorded_[i] == 0;
    const std::string where = off_ > 1 ? box() : "";
    if (zeros * 10 >= off_ * 9)
      return off_ == 1
                 ? fmt::format("1 of {} elements is 0", count_)
                 : fmt::format("{} of {} elements are 0{}: they may not have been computed", zeros, count_, where);
    if (first * 2 > count_ && off_ * 10 >= (count_ - first) * 9 && off_ > 1)
      return fmt::format("only elements from {} of {} on are off{}: the handling of a tail", first, count_, where);
    if (off_ * 4 >= count_ && where.empty()) return {};
    return fmt::format("{} of {} elements {} off{}", off_, count_, off_ == 1 ? "is" : "are", where);
  }

  static bool is_number_of(const FloatFormat& format, double x) {
    if (std::fabs(x) > format.largest) return false;
    const double steps = x / ulp_of(format, x);
    return steps == std::nearbyint(steps);
  }

  /// All elements are numbers of a narrower format.
  std::string narrowed() const {
    struct Narrow {
      std::string_view name;
      FloatFormat format;
    };
    const std::array<Narrow, 2> formats{Narrow{"bfloat16", float_format(DType::kBFloat16)},
                                        Narrow{"float16", float_format(DType::kFloat16)}};
    for (const auto& [name, narrow] : formats) {
      if (narrow.digits >= format_.digits) continue;
      std::size_t nonzero = 0, common = 0, stored = 0, cut = 0;
      double squares = 0;
      bool all = true;
      for (std::size_t i = 0; i < count_ && all; ++i) {
        all = is_number_of(narrow, recorded_[i]);
        if (recorded_[i] == 0) continue;
        const double own = bounds_[i] - ulp_of(format_, reference_[i]) / 2, ulp = ulp_of(narrow, reference_[i]);
        const double short_by = (std::fabs(reference_[i]) - std::fabs(recorded_[i])) / ulp;
        ++nonzero;
        common += std::fabs(reference_[i] / ulp - std::nearbyint(reference_[i] / ulp)) < narrow_share(narrow);
        stored += std::fabs(error(i)) <= ulp / 2 + own;
        cut += short_by >= -own / ulp && short_by <= 1 + own / ulp;
        squares += reference_[i] * reference_[i];
      }
      if (!all || nonzero < 2 * kFewElements || common * 2 > nonzero) continue;
      if (stored * 100 >= nonzero * 99) return fmt::format("all elements are rounded to {}", name);
      if (cut * 100 >= nonzero * 99) return fmt::format("all elements are cut off to {}, toward zero", name);
      const double u = 64 * roundoff_of(narrow);
      if (error_ <= u * u * squares) return fmt::format("all elements are {0} numbers: computed in {0}", name);
    }
    return {};
  }

  /// How near to a number of the narrower format counts as being one, in its ulps.
  double narrow_share(const FloatFormat& narrow) const { return std::ldexp(1.0, narrow.digits - format_.digits); }

  struct Line {
    double x = 0, y = 0, xx = 0, xy = 0, n = 0;
    void add(double a, double b) { x += a, y += b, xx += a * a, xy += a * b, n += 1; }
    double offset() const { return n > 0 ? (y - x) / n : 0; }
    double factor() const { return xx > 0 ? xy / xx : 1; }
    /// Least squares of b = slope a + intercept.
    std::pair<double, double> fit() const {
      const double spread = xx - x * x / n;
      const double slope = spread > 0 ? (xy - x * y / n) / spread : 1;
      return {slope, (y - slope * x) / n};
    }
  };

  std::string one_for_all() const {
    Line all;
    for (std::size_t i = 0; i < count_; ++i) all.add(reference_[i], recorded_[i]);
    const double factor = all.factor(), offset = all.offset();
    if (explains([&](std::size_t i) { return factor * reference_[i]; }, std::fabs(factor)))
      return fmt::format("all elements are {:.6g} times the reference", factor);
    if (explains([&](std::size_t i) { return reference_[i] + offset; }))
      return fmt::format("all elements are off by {:.6g}", offset);
    return {};
  }

  std::string line_for_all() const {
    if (count_ < 2 * kFewElements) return {};
    Line all;
    for (std::size_t i = 0; i < count_; ++i) all.add(reference_[i], recorded_[i]);
    const auto [slope, intercept] = all.fit();
    if (!explains([&](std::size_t i) { return slope * reference_[i] + intercept; }, std::fabs(slope))) return {};
    return fmt::format("elements are {:.6g} times the reference {} {:.6g}", slope, intercept < 0 ? "-" : "+",
                       std::fabs(intercept));
  }

  /// One number for each index of an axis; else one for each row along an axis, of which there are more.
  std::string by_axis() const {
    std::vector<std::size_t> axes;
    for (std::size_t axis = extents_.size(); axis-- > 0;)
      if (extents_[axis] > 1) axes.push_back(axis);
    if (axes.size() < 2) return {};
    // Of a matrix, an index of the one axis is a row along the other: its columns are channels.
    const std::size_t tried = axes.size() == 2 ? 1 : axes.size();
    for (std::size_t k = 0; k < tried; ++k) {
      const std::size_t axis = axes[k];
      const std::string what = fmt::format("each index of axis {}", axis);
      const auto group = [&](std::size_t i) { return at(i, axis); };
      const Words words{what, "a bias or another term that depends on it", "a scale that depends on it"};
      if (std::string cause = by_group(extents_[axis], group, words); !cause.empty()) return cause;
      if (std::string cause = by_line(extents_[axis], group, what); !cause.empty()) return cause;
    }
    for (std::size_t k = 0; k < tried; ++k) {
      const std::size_t axis = axes[k], extent = extents_[axis], stride = strides_[axis];
      const auto group = [&](std::size_t i) { return i / (stride * extent) * stride + i % stride; };
      const Words words{fmt::format("each row along axis {}", axis), "a sum or mean of the row, or another term",
                        "what the row is divided by, or another scale"};
      if (std::string cause = by_group(count_ / extent, group, words); !cause.empty()) return cause;
    }
    return {};
  }

  template <typename Group>
  std::vector<Line> lines_of(std::size_t groups, const Group& group) const {
    std::vector<Line> lines(groups);
    for (std::size_t i = 0; i < count_; ++i) lines[group(i)].add(reference_[i], recorded_[i]);
    return lines;
  }

  struct Words {
    std::string what;
    std::string_view term, scale;
  };

  template <typename Group>
  std::string by_group(std::size_t groups, const Group& group, const Words& words) const {
    if (count_ / groups < 4) return {};
    const std::vector<Line> lines = lines_of(groups, group);
    std::vector<double> numbers(groups);
    std::ranges::transform(lines, numbers.begin(), &Line::offset);
    const auto [lowest, highest] = std::ranges::minmax(numbers);
    if (explains([&](std::size_t i) { return reference_[i] + numbers[group(i)]; }))
      return fmt::format("{} is off by a number of its own, from {:.6g} to {:.6g}: {}", words.what, lowest, highest,
                         words.term);
    std::ranges::transform(lines, numbers.begin(), &Line::factor);
    const auto [least, most] = std::ranges::minmax(numbers);
    if (explains([&](std::size_t i) { return numbers[group(i)] * reference_[i]; }, std::max(-least, most)))
      return fmt::format("{} has a factor of its own, from {:.6g} to {:.6g}: {}", words.what, least, most, words.scale);
    return {};
  }

  template <typename Group>
  std::string by_line(std::size_t groups, const Group& group, std::string_view what) const {
    if (count_ / groups < 2 * kFewElements) return {};
    std::vector<std::pair<double, double>> fits(groups);
    std::ranges::transform(lines_of(groups, group), fits.begin(), &Line::fit);
    const auto [least, most] = std::ranges::minmax(fits, {}, &std::pair<double, double>::first);
    const auto line = [&](std::size_t i) { return fits[group(i)].first * reference_[i] + fits[group(i)].second; };
    if (!explains(line, std::max(-least.first, most.first))) return {};
    if (most.first - least.first <= 1e-3 * std::fabs(most.first))
      return fmt::format(
          "elements are {:.4g} times the reference, and {} is off by a number of its own: a scale before a bias",
          most.first, what);
    return fmt::format("{} has a factor and an offset of its own: its scale, mean or variance", what);
  }

  /// The difference is a column times a row: so a sum of products lacks a term.
  std::string one_term() const {
    const std::size_t rank = extents_.size();
    if (rank < 2 || extents_.back() < kFewElements || count_ / extents_.back() < kFewElements) return {};
    const std::size_t columns = extents_.back();
    std::size_t pivot = 0;
    for (std::size_t i = 0; i < count_; ++i)
      if (std::fabs(error(i)) > std::fabs(error(pivot))) pivot = i;
    if (error(pivot) == 0) return {};
    const std::size_t row = pivot / columns * columns, column = pivot % columns;
    const auto share = [&](std::size_t i) { return error(i - i % columns + column) / error(pivot); };
    const bool is_term = explains(
        [&](std::size_t i) {
          const bool is_fitted = i % columns == column || i - i % columns == row;
          return is_fitted ? kNothing : reference_[i] + share(i) * error(row + i % columns);
        },
        [&](std::size_t i) {
          // What is predicted has the errors of three elements.
          const auto slack = [&](std::size_t k) { return bounds_[k] + stored(k); };
          return slack(i) + std::fabs(share(i)) * (slack(row + i % columns) + slack(pivot)) +
                 slack(i - i % columns + column);
        });
    return is_term ? "the difference is one column times one row: a term of the sum is missing, or another one" : "";
  }

  std::string toward_zero() const {
    std::size_t beyond_half = 0, cut = 0, nonzero = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (reference_[i] == 0) continue;
      const double ulp = ulp_of(format_, reference_[i]), own = (bounds_[i] - ulp / 2) / ulp;
      const double short_by = (std::fabs(reference_[i]) - std::fabs(recorded_[i])) / ulp;
      if (own > 0.25) return {};
      ++nonzero;
      cut += short_by >= -own && short_by <= 1 + own;
      beyond_half += short_by > 0.5 + own;
    }
    if (nonzero < 2 * kFewElements || cut * 100 < nonzero * 99 || beyond_half * 4 < nonzero) return {};
    return "elements are rounded toward zero, not to the nearest number";
  }

  const TensorTest& test_;
  FloatFormat format_;
  bool is_float_, others_are_right_ = false;
  DType dtype_;
  HostTensor a_, b_, c_;
  std::span<const double> reference_, recorded_, bounds_;
  std::vector<std::size_t> extents_, strides_{};
  std::size_t count_, off_ = 0;
  double error_ = 0;
};

}  // namespace

std::string guess_cause(const Expected& expected, const HostTensor& other, const TensorTest& test,
                        runtime::Memory& memory) {
  if (other.dtype() == DType::kString) return {};
  if (test.is_other_class) {
    if (std::isnan(test.other)) return "not a number where the reference is one";
    if (std::isinf(test.other)) return "overflow: infinite where the reference is finite";
    return "finite where the reference is not";
  }
  const bool is_float = runtime::is_float(other.dtype());
  const FloatFormat format = float_format(other.dtype());
  if (is_float && std::fabs(test.other) == format.largest)
    return fmt::format("saturated at {}, the largest number of its dtype", format.largest);
  try {
    const Guess guess(expected, other, test, memory);
    if (!is_float) return guess.of_integers();
    if (test.count >= kFewElements && guess.is_finite())
      if (std::string cause = guess.of_floats(); !cause.empty()) return cause;
  } catch (const runtime::RunFault&) {
    return {};  // a guess is worth no more memory than the limit leaves
  }
  if (is_float && test.beyond == 0 && test.slope_z > kDeviations)
    return fmt::format("errors within rounding, and all in one direction: about {:.3g} of the value", test.slope);
  return {};
}

}  // namespace tensorlint::compare
