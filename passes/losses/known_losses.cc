#include "passes/losses/known_losses.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <vector>

namespace tensorlint::losses {
namespace {

struct Point {
  double prediction, target;
};

/// What prediction and target may be, as points to compare at. Chosen without any pattern, and off the places where
/// pieces meet.
constexpr std::array kReals{Point{0.31, 0.9}, Point{-1.7, 0.45},  Point{2.63, -0.58}, Point{0.07, 0.113},
                            Point{1.9, 1.3},  Point{-0.83, -2.9}, Point{13.7, 1.21},  Point{-2.2, 17.3},
                            Point{0.6, 5.1},  Point{-0.21, 0.77}, Point{41.3, 3.7},   Point{-37.9, -1.1}};
constexpr std::array kProbabilities{Point{0.31, 0.9},  Point{0.17, 0.45}, Point{0.63, 0.58}, Point{0.07, 0.213},
                                    Point{0.91, 0.13}, Point{0.83, 0.71}, Point{0.37, 0.21}, Point{0.22, 0.73},
                                    Point{0.6, 0.11},  Point{0.52, 0.77}};
constexpr std::array kLogits{Point{0.31, 0.9}, Point{-1.7, 0.45},  Point{2.63, 0.58}, Point{0.07, 0.213},
                             Point{1.9, 0.13}, Point{-0.83, 0.71}, Point{3.7, 0.21},  Point{-2.2, 0.73},
                             Point{0.6, 0.11}, Point{-0.21, 0.77}};
constexpr std::array kLogProbabilities{Point{-0.31, 0.9}, Point{-1.7, 0.45},  Point{-2.63, 0.58}, Point{-0.07, 0.213},
                                       Point{-1.9, 0.13}, Point{-0.83, 0.71}, Point{-3.7, 0.21},  Point{-2.2, 0.73},
                                       Point{-0.6, 0.11}, Point{-0.21, 0.77}};
constexpr std::array kTwoLogProbabilities{
    Point{-0.31, -0.9},  Point{-1.7, -0.45}, Point{-2.63, -1.58}, Point{-0.07, -2.1}, Point{-1.9, -0.13},
    Point{-0.83, -0.71}, Point{-3.7, -0.21}, Point{-2.2, -0.73},  Point{-0.6, -3.11}, Point{-0.21, -0.77}};
constexpr std::array kCounts{Point{0.31, 2.0}, Point{-1.7, 1.0},  Point{1.63, 3.0}, Point{0.07, 7.0},
                             Point{1.9, 4.0},  Point{-0.83, 2.0}, Point{1.37, 5.0}, Point{-1.2, 3.0},
                             Point{0.6, 1.0},  Point{-0.21, 6.0}};
constexpr std::array kRates{Point{0.31, 2.0}, Point{1.7, 1.0},  Point{2.63, 3.0}, Point{0.77, 7.0}, Point{1.9, 4.0},
                            Point{0.83, 2.0}, Point{3.37, 5.0}, Point{1.2, 3.0},  Point{0.6, 1.0},  Point{5.21, 6.0}};
constexpr std::array kSigns{Point{0.31, 1.0}, Point{-1.7, 1.0},  Point{1.63, -1.0}, Point{0.07, -1.0},
                            Point{4.9, 1.0},  Point{-3.83, 1.0}, Point{0.57, 1.0},  Point{-0.2, -1.0},
                            Point{0.6, -1.0}, Point{-0.21, 1.0}, Point{7.3, -1.0},  Point{-5.1, -1.0}};

/// A term of a loss; `c` is a threshold, a margin or an exponent.
using Term = double (*)(double p, double t, double c);

double square(double x) { return x * x; }
double hinge(double x) { return std::max(x, 0.0); }
/// log(1 + e^x)
double softplus(double x) { return hinge(x) + std::log1p(std::exp(-std::abs(x))); }
double logistic(double x) { return 1 / (1 + std::exp(-x)); }

double squared_error(double p, double t, double) { return square(p - t); }
double absolute_error(double p, double t, double) { return std::abs(p - t); }
double huber(double p, double t, double c) {
  const double size = std::abs(p - t);
  return size < c ? square(size) / 2 : c * (size - c / 2);
}
double log_cosh(double p, double t, double) {
  const double size = std::abs(p - t);
  return size + std::log1p(std::exp(-2 * size));
}
double over(double p, double t, double) { return hinge(p - t); }
double under(double p, double t, double) { return hinge(t - p); }
double relative(double p, double t, double) { return std::abs(p - t) / std::abs(t); }
double squared_relative(double p, double t, double) { return square((p - t) / t); }
double symmetric_relative(double p, double t, double) { return std::abs(p - t) / (std::abs(p) + std::abs(t)); }
double right(double p, double t, double) { return -t * std::log(p); }
double wrong(double p, double t, double) { return -(1 - t) * std::log1p(-p); }
double right_logit(double p, double t, double) { return t * softplus(-p); }
double wrong_logit(double p, double t, double) { return (1 - t) * softplus(p); }
double focal_right(double p, double t, double c) { return -t * std::pow(1 - p, c) * std::log(p); }
double focal_wrong(double p, double t, double c) { return -(1 - t) * std::pow(p, c) * std::log1p(-p); }
double focal_right_logit(double p, double t, double c) { return t * std::pow(logistic(-p), c) * softplus(-p); }
double focal_wrong_logit(double p, double t, double c) { return (1 - t) * std::pow(logistic(p), c) * softplus(p); }
double divergence(double p, double t, double) { return t * (std::log(t) - p); }
double log_divergence(double p, double t, double) { return std::exp(t) * (t - p); }
double poisson(double p, double t, double) { return std::exp(p) - t * p; }
double poisson_rate(double p, double t, double) { return p - t * std::log(p); }
double margin(double p, double t, double c) { return hinge(c - t * p); }
double squared_margin(double p, double t, double c) { return square(hinge(c - t * p)); }
double soft_margin(double p, double t, double) { return softplus(-t * p); }

enum class Parameter { kNone, kThreshold, kExponent };

struct KnownLoss {
  LossKind kind;
  std::span<const Point> points;
  Term first, second;  ///< null: one term
  Parameter parameter = Parameter::kNone;
};

/// The simpler one first: a Huber loss with a large threshold is a squared error.
const std::array kKnownLosses{
    KnownLoss{LossKind::kMse, kReals, squared_error, nullptr},
    KnownLoss{LossKind::kL1, kReals, absolute_error, nullptr},
    KnownLoss{LossKind::kHuber, kReals, huber, nullptr, Parameter::kThreshold},
    KnownLoss{LossKind::kLogCosh, kReals, log_cosh, nullptr},
    KnownLoss{LossKind::kQuantile, kReals, over, under},
    KnownLoss{LossKind::kBinaryCrossEntropy, kProbabilities, right, wrong},
    KnownLoss{LossKind::kBinaryCrossEntropyWithLogits, kLogits, right_logit, wrong_logit},
    KnownLoss{LossKind::kBinaryFocal, kProbabilities, focal_right, focal_wrong, Parameter::kExponent},
    KnownLoss{LossKind::kBinaryFocal, kLogits, focal_right_logit, focal_wrong_logit, Parameter::kExponent},
    KnownLoss{LossKind::kKlDivergence, kLogProbabilities, divergence, nullptr},
    KnownLoss{LossKind::kKlDivergence, kTwoLogProbabilities, log_divergence, nullptr},
    KnownLoss{LossKind::kPoisson, kCounts, poisson, nullptr},
    KnownLoss{LossKind::kPoisson, kRates, poisson_rate, nullptr},
    KnownLoss{LossKind::kHinge, kSigns, margin, nullptr, Parameter::kThreshold},
    KnownLoss{LossKind::kHinge, kSigns, squared_margin, nullptr, Parameter::kThreshold},
    KnownLoss{LossKind::kHinge, kSigns, soft_margin, nullptr},
    KnownLoss{LossKind::kRelativeError, kReals, relative, nullptr},
    KnownLoss{LossKind::kRelativeError, kReals, squared_relative, nullptr},
    KnownLoss{LossKind::kRelativeError, kReals, symmetric_relative, nullptr},
};

/// Guards against log(0) and 0/0 move a value by less; a loss of another kind is off by far more at some point.
constexpr double kTolerance = 2e-3;
/// Most functions are off by more than this part of the largest value at some of the first points already: at the
/// others they are not evaluated then.
constexpr std::size_t kFirstPoints = 5;
constexpr double kRoughTolerance = 0.05;

/// values = scale . columns + constant, for one or two columns: least squares by normal equations.
class Fit {
 public:
  Fit(std::span<const double> values, std::span<const double> first, std::span<const double> second)
      : count_(second.empty() ? 1U : 2U) {
    const double mean = average(values), means[2] = {average(first), second.empty() ? 0 : average(second)};
    const std::span<const double> columns[2] = {first, second};
    double products[2][2] = {}, sides[2] = {};
    for (std::size_t k = 0; k < values.size(); ++k)
      for (std::size_t i = 0; i < count_; ++i) {
        sides[i] += (columns[i][k] - means[i]) * (values[k] - mean);
        for (std::size_t j = 0; j < count_; ++j)
          products[i][j] += (columns[i][k] - means[i]) * (columns[j][k] - means[j]);
      }
    if (count_ == 1) {
      scales_[0] = sides[0] / products[0][0];
    } else {
      const double determinant = products[0][0] * products[1][1] - products[0][1] * products[1][0];
      scales_[0] = (sides[0] * products[1][1] - sides[1] * products[0][1]) / determinant;
      scales_[1] = (sides[1] * products[0][0] - sides[0] * products[1][0]) / determinant;
    }
    double largest = 0, residual = 0;
    for (std::size_t k = 0; k < values.size(); ++k) {
      double fitted = mean;
      for (std::size_t i = 0; i < count_; ++i) fitted += scales_[i] * (columns[i][k] - means[i]);
      largest = std::max(largest, std::abs(values[k] - mean));
      residual = std::max(residual, std::abs(values[k] - fitted));
      // Relative to the value itself, so that one large point does not hide the others.
      off_ = std::max(off_, std::abs(values[k] - fitted) / (std::abs(values[k] - mean) + 1e-3 * largest + 1e-12));
    }
    varies_ = largest > 1e-9;
    is_hopeless_ = varies_ && residual > kRoughTolerance * largest;
  }

  /// The terms have one sign: none of them is rewarded while the other one is punished.
  bool holds() const {
    return varies_ && off_ < kTolerance && scales_[0] != 0 && (count_ == 1 || scales_[0] * scales_[1] > 0);
  }
  bool rises() const { return holds() && scales_[0] > 0; }
  /// More points do not change that it does not hold. Not said where the first ones show nothing.
  bool is_hopeless() const { return is_hopeless_; }

 private:
  static double average(std::span<const double> values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }

  std::size_t count_;
  double scales_[2] = {}, off_ = 0;
  bool varies_ = false, is_hopeless_ = false;
};

bool is_finite(std::span<const double> values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

std::vector<double> parameters_of(Parameter parameter, std::span<const double> constants) {
  if (parameter == Parameter::kNone) return {0};
  std::vector<double> values;
  if (parameter == Parameter::kThreshold) values.push_back(1);
  if (parameter == Parameter::kExponent) values = {2, 1, 3};
  for (const double constant : constants)
    if (constant > 0 && constant < 1000) values.push_back(constant);
  return values;
}

/// Of the values at the first points, or at all of them.
bool is_known(const KnownLoss& loss, std::span<const double> values, std::span<const double> constants) {
  const bool are_all = values.size() == loss.points.size();
  std::vector<double> first(values.size()), second(loss.second == nullptr ? 0 : values.size());
  const auto is_loss_with = [&](double parameter) {
    for (std::size_t k = 0; k < values.size(); ++k) {
      const Point& at = loss.points[k];
      first[k] = loss.first(at.prediction, at.target, parameter);
      if (loss.second != nullptr) second[k] = loss.second(at.prediction, at.target, parameter);
    }
    const Fit fit(values, first, second);
    if (!are_all) return !fit.is_hopeless();
    // A margin that no point gets beyond is a product, or its square.
    if (loss.kind == LossKind::kHinge && loss.parameter == Parameter::kThreshold &&
        std::ranges::find(first, 0.0) == first.end())
      return false;
    return fit.holds();
  };
  return std::ranges::any_of(parameters_of(loss.parameter, constants), is_loss_with);
}

}  // namespace

std::optional<LossKind> identify_pair(const PairFunction& function, std::span<const double> constants) {
  std::map<const Point*, std::vector<double>> sampled;  // by the points
  // False where some value up to there is not finite.
  const auto sample = [&](std::span<const Point> points, std::vector<double>& values, std::size_t count) {
    while (values.size() < count && (values.empty() || std::isfinite(values.back()))) {
      const Point& at = points[values.size()];
      values.push_back(function(at.prediction, at.target));
    }
    return std::isfinite(values.back());
  };
  for (const KnownLoss& loss : kKnownLosses) {
    std::vector<double>& values = sampled[loss.points.data()];
    if (!sample(loss.points, values, kFirstPoints)) continue;
    if (is_known(loss, std::span(values).first(kFirstPoints), constants) &&
        sample(loss.points, values, loss.points.size()) && is_known(loss, values, constants))
      return loss.kind;
  }
  return std::nullopt;
}

std::optional<LossKind> identify_log_probability(const std::function<double(double)>& function,
                                                 std::span<const double> constants) {
  constexpr std::array kPoints{-0.31, -1.7, -2.63, -0.07, -0.9, -0.83, -3.7, -2.2, -0.6, -0.21};
  std::vector<double> values, terms(kPoints.size());
  for (const double at : kPoints) values.push_back(function(at));
  if (!is_finite(values)) return std::nullopt;
  const auto fits = [&](double exponent) {
    for (std::size_t k = 0; k < kPoints.size(); ++k)
      terms[k] = std::pow(-std::expm1(kPoints[k]), exponent) * -kPoints[k];
    return Fit(values, terms, {}).rises();
  };
  if (fits(0)) return LossKind::kCrossEntropy;
  return std::ranges::any_of(parameters_of(Parameter::kExponent, constants), fits) ? std::optional(LossKind::kFocal)
                                                                                   : std::nullopt;
}

}  // namespace tensorlint::losses
