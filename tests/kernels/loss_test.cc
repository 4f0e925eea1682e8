// Losses on the emulator against float64 references written from the definitions.

#include "kernels/loss/loss.h"

#include <algorithm>
#include <functional>

#include "kernels/loss/dispatch.h"
#include "tests/kernels/testing.h"

namespace tensorlint::kernels {
namespace {

using testing::Access;
using testing::Buffer;

template <typename T>
class Loss : public ::testing::Test {};
using LossTypes = ::testing::Types<double, float, Half, BFloat16>;
TYPED_TEST_SUITE(Loss, LossTypes);

template <typename T>
constexpr double compute_unit() {
  return std::is_same_v<T, double> ? 0x1p-53 : 0x1p-24;
}

/// `scale`: the size of what was added on the way to `want`, in which the rounding of `steps` operations counts.
/// `times`: what multiplies the exponentials in `want`, each of which may have been flushed to 0.
template <typename T>
void expect_close(T got_element, double want, double scale, double steps, const std::string& what, double times = 1) {
  const double got = testing::value_of(got_element);
  const double bound = steps * compute_unit<T>() * scale + std::fabs(want) * testing::unit_roundoff<T>() * 1.01 +
                       testing::smallest_subnormal<T>() + times * testing::flushed_exponential<T>();
  const double ratio = testing::error_ratio(got, want, bound, testing::largest<T>());
  ASSERT_LE(ratio, 1.0) << what << ": got " << got << ", want " << want << " within " << bound;
}

double log_or_minus_infinity(double x) { return x > 0 ? std::log(x) : x == 0 ? -INFINITY : NAN; }

struct Pointwise {
  const char* name;
  PointwiseKind kind;
  double delta;
  std::function<double(double x, double t, double pw)> value;
  std::function<double(double x, double t, double pw)> slope;
};

double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }
double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

const std::vector<Pointwise>& pointwise_cases() {
  static const std::vector<Pointwise> all = {
      {"squared", PointwiseKind::kSquared, 1, [](double x, double t, double) { return (x - t) * (x - t); },
       [](double x, double t, double) { return 2 * (x - t); }},
      {"absolute", PointwiseKind::kAbsolute, 1, [](double x, double t, double) { return std::fabs(x - t); },
       [](double x, double t, double) { return sign(x - t); }},
      {"huber", PointwiseKind::kHuber, 0.75,
       [](double x, double t, double) {
         return std::fabs(x - t) < 0.75 ? 0.5 * (x - t) * (x - t) : 0.75 * (std::fabs(x - t) - 0.375);
       },
       [](double x, double t, double) { return std::fabs(x - t) < 0.75 ? x - t : 0.75 * sign(x - t); }},
      {"smooth l1", PointwiseKind::kSmoothL1, 0.5,
       [](double x, double t, double) { return std::fabs(x - t) < 0.5 ? (x - t) * (x - t) : std::fabs(x - t) - 0.25; },
       [](double x, double t, double) { return std::fabs(x - t) < 0.5 ? 2 * (x - t) : sign(x - t); }},
      {"smooth l1 beta 0", PointwiseKind::kSmoothL1, 0, [](double x, double t, double) { return std::fabs(x - t); },
       [](double x, double t, double) { return sign(x - t); }},
      {"binary", PointwiseKind::kBinary, 1,
       [](double x, double t, double) {
         return x < 0 || x > 1
                    ? NAN
                    : -t * std::max(log_or_minus_infinity(x), -100.0) - (1 - t) * std::max(std::log1p(-x), -100.0);
       },
       [](double x, double t, double) { return x < 0 || x > 1 ? NAN : (x - t) / std::max(x * (1 - x), 1e-12); }},
      {"binary logits", PointwiseKind::kBinaryLogits, 1,
       [](double x, double t, double pw) { return (1 - t) * softplus(x) + pw * t * softplus(-x); },
       [](double x, double t, double pw) { return (1 - t) * sigmoid(x) - pw * t * sigmoid(-x); }},
      {"kl", PointwiseKind::kKlDivergence, 1,
       [](double x, double t, double) { return t == 0 ? 0 : t * (log_or_minus_infinity(t) - x); },
       [](double, double t, double) { return -t; }},
      {"kl log", PointwiseKind::kKlDivergenceLog, 1, [](double x, double t, double) { return std::exp(t) * (t - x); },
       [](double, double t, double) { return -std::exp(t); }},
  };
  return all;
}

// Inputs inside each loss's domain; with `wild`, also its edges and values that break naive formulas.
template <typename T>
void fill_pair(PointwiseKind kind, Buffer<T>& x, Buffer<T>& t, bool wild) {
  std::mt19937_64 random(x.size());
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  const double big = std::is_same_v<T, Half> ? 200 : 1e15;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double a = (uniform() - 0.5) * 6, b = (uniform() - 0.5) * 6;
    if (kind == PointwiseKind::kBinary || kind == PointwiseKind::kBinaryLogits || kind == PointwiseKind::kKlDivergence)
      b = uniform();
    if (kind == PointwiseKind::kBinary) a = uniform();
    if (kind == PointwiseKind::kKlDivergence || kind == PointwiseKind::kKlDivergenceLog) a = -uniform() * 5;
    if (kind == PointwiseKind::kKlDivergenceLog) b = -uniform() * 5;
    if (wild && i % 3 == 0) {
      if (kind == PointwiseKind::kBinary) {
        a = i % 2 == 0 ? 0 : 1;
        b = i % 4 < 2 ? 0 : 1;
      } else if (kind == PointwiseKind::kBinaryLogits) {
        a = i % 2 == 0 ? 90 : -90;
        b = i % 4 < 2 ? 0 : 1;
      } else if (kind == PointwiseKind::kKlDivergence) {
        b = 0;
      } else if (kind != PointwiseKind::kKlDivergenceLog) {
        a = i % 2 == 0 ? big : 1 / big;
      }
    }
    x[i] = testing::element_from<T>(a);
    t[i] = testing::element_from<T>(b);
  }
}

template <typename T>
void check_pointwise_case(const Pointwise& c, std::int64_t n, Averaging averaging, bool with_weights, bool wild,
                          std::size_t shift, const testing::Schedule& schedule) {
  const auto count = static_cast<std::size_t>(n);
  Buffer<T> x(count, Access::kReadOnly, "input", shift);
  Buffer<T> t(count, Access::kReadOnly, "target", shift);
  fill_pair(c.kind, x, t, wild);
  Buffer<T> weight(3, Access::kReadOnly, "weight");
  Buffer<T> positive(5, Access::kReadOnly, "positive");
  for (std::size_t i = 0; i < 3; ++i) weight[i] = testing::element_from<T>(0.5 + static_cast<double>(i));
  for (std::size_t i = 0; i < 5; ++i) positive[i] = testing::element_from<T>(1.0 + 0.25 * static_cast<double>(i));
  const bool each = averaging == Averaging::kNone;
  Buffer<T> upstream(each ? count : 1, Access::kReadOnly, "upstream");
  for (std::size_t i = 0; i < upstream.size(); ++i) upstream[i] = testing::element_from<T>(i % 2 == 0 ? 2.0 : -0.5);
  Buffer<T> losses(count, Access::kWriteFirst, "losses", shift);
  Buffer<T> total(1, Access::kWriteFirst, "total");
  Buffer<T> gradient(count, Access::kWriteFirst, "gradient", shift);
  PointwiseLoss request;
  request.kind = c.kind;
  request.dtype = Traits<T>::kDtype;
  request.averaging = averaging;
  request.elements = n;
  request.batch = 4;
  request.delta = c.delta;
  request.input = x.data();
  request.target = t.data();
  if (with_weights) {
    request.weight = weight.data();
    request.weight_period = 3;
    request.positive_weight = positive.data();
    request.positive_period = 5;
  }
  request.upstream = upstream.data();
  request.gradient = gradient.data();
  if (each) {
    request.losses = losses.data();
  } else {
    request.total = total.data();
  }
  std::size_t bytes = 0;
  ASSERT_EQ(pointwise_loss_workspace(request, &bytes), Status::kOk);
  Buffer<std::uint32_t> workspace(bytes / 4, Access::kWriteFirst, "workspace");
  testing::use(schedule);
  ASSERT_EQ(initialize_loss_workspace(workspace.data(), bytes, nullptr), Status::kOk);
  ASSERT_EQ(pointwise_loss(request, workspace.data(), bytes, nullptr), Status::kOk);
  ASSERT_TRUE(testing::clean()) << c.name;

  const double divisor = averaging == Averaging::kMean        ? static_cast<double>(n)
                         : averaging == Averaging::kBatchMean ? 4.0
                                                              : 1.0;
  double sum = 0, amplitude = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double a = testing::value_of(x[i]), b = testing::value_of(t[i]);
    const double w = with_weights ? testing::value_of(weight[i % 3]) : 1.0;
    const double pw = with_weights && c.kind == PointwiseKind::kBinaryLogits ? testing::value_of(positive[i % 5]) : 1.0;
    const double value = w * c.value(a, b, pw);
    const double up = testing::value_of(upstream[each ? i : 0]);
    const double slope = w * c.slope(a, b, pw) * up / divisor;
    // Exponentials carry their argument's error, so their scale grows with it; 16 ulp cover the functions used.
    const double scale =
        std::fabs(value) * (1 + (std::fabs(a) < 100 && std::fabs(b) < 100 ? std::fabs(a) + std::fabs(b) : 0)) +
        (c.kind == PointwiseKind::kKlDivergence
             ? w * std::fabs(b) * (std::fabs(a) + std::fabs(b == 0 ? 0 : std::log(b)))
             : 0) +
        (c.kind == PointwiseKind::kKlDivergenceLog ? w * std::exp(b) * (std::fabs(a) + std::fabs(b)) : 0) +
        (c.kind == PointwiseKind::kBinary ? w * 1e-6 : 0);  // logarithms near 1 of probabilities rounded to float
    sum += value;
    amplitude += scale;
    const std::string where = std::string(c.name) + " element " + std::to_string(i) + " of " + std::to_string(n);
    if (each) expect_close(losses[i], value, scale, 16, where + " loss");
    // The logit's slope is a difference of two products; the others are single products.
    const double terms = c.kind == PointwiseKind::kBinaryLogits
                             ? w * std::fabs(up / divisor) * ((1 - b) * sigmoid(a) + pw * b * sigmoid(-a))
                             : std::fabs(slope);
    const double slope_scale =
        terms * (4 + (std::fabs(a) < 100 && std::fabs(b) < 100 ? std::fabs(a) + std::fabs(b) : 0));
    expect_close(gradient[i], slope, slope_scale, 16,
                 where + " slope at " + std::to_string(a) + ", " + std::to_string(b),
                 w * std::fabs(up / divisor) * (1 + pw));
    if (::testing::Test::HasFatalFailure()) return;
  }
  if (!each)
    expect_close(total[0], sum / divisor, amplitude / divisor, 80 + static_cast<double>(n) / 2048,
                 std::string(c.name) + " total of " + std::to_string(n));
}

TYPED_TEST(Loss, PointwiseAgreesWithFloat64) {
  int turn = 0;
  for (const Pointwise& c : pointwise_cases()) {
    for (const std::int64_t n : {1, 2, 7, 8, 9, 255, 256, 257, 511, 513, 1025, 4097}) {
      for (const Averaging averaging : {Averaging::kNone, Averaging::kSum, Averaging::kMean, Averaging::kBatchMean}) {
        check_pointwise_case<TypeParam>(c, n, averaging, turn % 2 == 0, turn % 3 == 0, turn % 5 == 0,
                                        testing::schedules(3)[static_cast<std::size_t>(turn % 3)]);
        if (this->HasFatalFailure()) return;
        ++turn;
      }
    }
  }
}

TEST(Pointwise, OutOfDomainIsNanAndEmptyMeanIsNan) {
  Buffer<float> x(2, Access::kReadOnly, "x"), t(2, Access::kReadOnly, "t");
  Buffer<float> losses(2, Access::kWriteFirst, "losses"), total(1, Access::kWriteFirst, "total");
  x[0] = 1.5F;
  x[1] = NAN;
  t[0] = t[1] = 0.5F;
  PointwiseLoss request;
  request.kind = PointwiseKind::kBinary;
  request.averaging = Averaging::kNone;
  request.elements = 2;
  request.input = x.data();
  request.target = t.data();
  request.losses = losses.data();
  testing::use({});
  ASSERT_EQ(pointwise_loss(request, nullptr, 0, nullptr), Status::kOk);
  ASSERT_TRUE(testing::clean());
  EXPECT_TRUE(std::isnan(losses[0]) && std::isnan(losses[1]));
  request.kind = PointwiseKind::kBinaryLogits;
  ASSERT_EQ(pointwise_loss(request, nullptr, 0, nullptr), Status::kOk);
  ASSERT_TRUE(testing::clean());
  EXPECT_TRUE(std::isnan(losses[1]));
  request.averaging = Averaging::kMean;
  request.elements = 0;
  request.losses = nullptr;
  request.total = total.data();
  ASSERT_EQ(pointwise_loss(request, nullptr, 0, nullptr), Status::kOk);
  ASSERT_TRUE(testing::clean());
  EXPECT_TRUE(std::isnan(total[0]));
  EXPECT_TRUE(testing::clean());
}

struct ClassCase {
  std::int64_t rows, classes, inner;
  double smoothing = 0;
  bool weighted = false;
  Averaging averaging = Averaging::kMean;
  int bad = 0;           // labels out of range
  bool ignored = false;  // some labels; with rows == 3 all
  double spread = 8;     // of the logits
  bool infinite = false;
};

template <typename T>
void fill_logits(Buffer<T>& logits, const ClassCase& c) {
  std::mt19937_64 random(logits.size() * 7 + 1);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double u = static_cast<double>(random() >> 11) * 0x1p-53;
    double x = (u - 0.5) * c.spread;
    if (c.infinite && random() % 5 == 0) x = -INFINITY;
    logits[i] = testing::element_from<T>(x);
  }
}

template <typename T>
void check_classes(ClassLossKind kind, const ClassCase& c, const testing::Schedule& schedule, std::size_t shift = 0) {
  const auto positions = static_cast<std::size_t>(c.rows * c.inner);
  const auto elements = positions * static_cast<std::size_t>(c.classes);
  Buffer<T> logits(elements, Access::kReadOnly, "logits", shift);
  fill_logits(logits, c);
  std::mt19937_64 random(positions + 5);
  Buffer<std::int64_t> labels(positions, Access::kReadOnly, "labels");
  for (std::size_t i = 0; i < positions; ++i) {
    labels[i] = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(c.classes));
    if (c.ignored && (c.rows == 3 || random() % 3 == 0)) labels[i] = -7;
  }
  for (int i = 0; i < c.bad; ++i) labels[positions - 1 - static_cast<std::size_t>(i)] = i % 2 == 0 ? c.classes : -1;
  Buffer<T> probabilities(kind == ClassLossKind::kCrossEntropyProbabilities ? elements : 0, Access::kReadOnly,
                          "probabilities", shift);
  for (std::size_t i = 0; i < probabilities.size(); ++i)
    probabilities[i] =
        testing::element_from<T>(static_cast<double>(random() % 1000) / 1000 / static_cast<double>(c.classes));
  Buffer<T> weight(static_cast<std::size_t>(c.classes), Access::kReadOnly, "weight");
  for (std::size_t i = 0; i < weight.size(); ++i)
    weight[i] = testing::element_from<T>(0.5 + static_cast<double>(i % 4) * 0.5);
  const bool each = c.averaging == Averaging::kNone;
  Buffer<T> upstream(each ? positions : 1, Access::kReadOnly, "upstream");
  for (std::size_t i = 0; i < upstream.size(); ++i) upstream[i] = testing::element_from<T>(i % 2 == 0 ? 1.5 : -0.5);
  Buffer<T> losses(positions, Access::kWriteFirst, "losses");
  Buffer<T> total(1, Access::kWriteFirst, "total");
  Buffer<T> gradient(elements, Access::kWriteFirst, "gradient", shift);
  Buffer<std::int64_t> report(2, Access::kWriteFirst, "report");
  ClassLoss request;
  request.kind = kind;
  request.dtype = Traits<T>::kDtype;
  request.averaging = c.averaging;
  request.rows = c.rows;
  request.classes = c.classes;
  request.inner = c.inner;
  request.logits = logits.data();
  request.labels = labels.data();
  request.probabilities = probabilities.data();
  if (c.weighted) request.weight = weight.data();
  request.smoothing = c.smoothing;
  request.ignore_index = -7;
  request.upstream = upstream.data();
  if (each) {
    request.losses = losses.data();
  } else {
    request.total = total.data();
  }
  request.gradient = gradient.data();
  const bool indices = kind != ClassLossKind::kCrossEntropyProbabilities;
  if (indices) request.bad_labels = report.data();
  std::size_t bytes = 0;
  ASSERT_EQ(class_loss_workspace(request, &bytes), Status::kOk);
  Buffer<std::uint32_t> workspace(bytes / 4, Access::kWriteFirst, "workspace");
  testing::use(schedule);
  ASSERT_EQ(initialize_loss_workspace(workspace.data(), bytes, nullptr), Status::kOk);
  ASSERT_EQ(class_loss(request, workspace.data(), bytes, nullptr), Status::kOk);
  ASSERT_TRUE(testing::clean());
  if (indices) {
    ASSERT_EQ(report[0], c.bad);
    ASSERT_EQ(report[1], c.bad > 0 ? static_cast<std::int64_t>(positions) - c.bad : -1);
  }

  const double e = c.smoothing, count = static_cast<double>(c.classes);
  const auto w = [&](std::int64_t k) {
    return c.weighted ? testing::value_of(weight[static_cast<std::size_t>(k)]) : 1.0;
  };
  double divisor = indices ? 0 : static_cast<double>(positions);
  if (indices) {
    for (std::size_t i = 0; i < positions; ++i) {
      if (labels[i] >= 0 && labels[i] < c.classes) divisor += w(labels[i]);
    }
  }
  if (c.averaging != Averaging::kMean) divisor = 1;
  double sum = 0, amplitude = 0;
  for (std::int64_t row = 0; row < c.rows; ++row) {
    for (std::int64_t inside = 0; inside < c.inner; ++inside) {
      const auto position = static_cast<std::size_t>(row * c.inner + inside);
      const auto at = [&](std::int64_t k) {
        return static_cast<std::size_t>((row * c.classes + k) * c.inner + inside);
      };
      const bool ignored = indices && labels[position] == -7;
      const bool bad = indices && !ignored && (labels[position] < 0 || labels[position] >= c.classes);
      long double exponentials = 0;
      double maximum = -INFINITY;
      for (std::int64_t k = 0; k < c.classes; ++k) maximum = std::max(maximum, testing::value_of(logits[at(k)]));
      for (std::int64_t k = 0; k < c.classes; ++k)
        exponentials += std::exp(static_cast<long double>(testing::value_of(logits[at(k)]) - maximum));
      const double lse =
          kind == ClassLossKind::kNegativeLogLikelihood ? 0 : maximum + static_cast<double>(std::log(exponentials));
      double loss = 0, scale = 0, mass = 0;
      const auto q = [&](std::int64_t k) {
        const double target = indices ? (k == labels[position] ? 1.0 : 0.0) : testing::value_of(probabilities[at(k)]);
        return w(k) * ((1 - e) * target + e / count);
      };
      if (bad) loss = NAN;
      if (!ignored && !bad) {
        for (std::int64_t k = 0; k < c.classes; ++k) {
          const double x = testing::value_of(logits[at(k)]);
          const double share =
              indices && e > 0 ? (k == labels[position] ? (1 - e) * w(labels[position]) : 0) + e / count * w(k) : q(k);
          mass += share;
          if (share != 0) {
            loss += share * (lse - x);
            scale += share * (std::fabs(lse) + std::fabs(x) + 1);
          }
        }
      }
      sum += loss;
      amplitude += scale;
      const double steps = 64 + count / 64;
      const std::string where = " row " + std::to_string(row) + " inside " + std::to_string(inside) + " of " +
                                std::to_string(c.rows) + "x" + std::to_string(c.classes) + "x" +
                                std::to_string(c.inner);
      if (each) expect_close(losses[position], loss, scale, steps, "loss" + where);
      const double gain = testing::value_of(upstream[each ? position : 0]) / divisor;
      for (std::int64_t k = 0; k < c.classes; ++k) {
        double want = 0, size = 0;
        if (bad) {
          want = NAN;
        } else if (!ignored) {
          const double share =
              indices && e > 0 ? (k == labels[position] ? (1 - e) * w(k) : 0) + e / count * w(k) : q(k);
          const double p =
              kind == ClassLossKind::kNegativeLogLikelihood
                  ? 0
                  : static_cast<double>(std::exp(static_cast<long double>(testing::value_of(logits[at(k)]) - maximum)) /
                                        exponentials);
          want = gain * (mass * p - share);
          size = std::fabs(gain) * (mass * p + std::fabs(share));
          // The exponent's own size counts: up to |x - max|.
          const double exponent = std::fabs(testing::value_of(logits[at(k)]) - maximum);
          if (std::isfinite(exponent)) size += std::fabs(gain) * mass * p * exponent;
        }
        expect_close(gradient[at(k)], want, size, steps, "gradient of class " + std::to_string(k) + where,
                     std::fabs(gain) * mass);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
  if (!each) expect_close(total[0], sum / divisor, amplitude / std::fabs(divisor), 64 + count / 64, "total");
}

std::vector<ClassCase> class_cases() {
  std::vector<ClassCase> cases;
  int turn = 0;
  for (const std::int64_t classes : {1, 2, 3, 8, 9, 31, 33, 64, 127, 129, 257}) {
    for (const Averaging averaging : {Averaging::kNone, Averaging::kSum, Averaging::kMean}) {
      ClassCase c{static_cast<std::int64_t>(5 + turn % 4), classes, 1};
      c.averaging = averaging;
      c.weighted = turn % 2 == 0;
      c.smoothing = turn % 3 == 0 ? 0.125 : 0;
      c.ignored = turn % 4 == 1;
      cases.push_back(c);
      c.inner = 1 + turn % 5 * 9;
      c.rows = 2;
      cases.push_back(c);
      c.inner = 8 << turn % 3;  // whole vectors of every type
      c.rows = 1 + turn % 2;
      cases.push_back(c);
      ++turn;
    }
  }
  for (const std::int64_t classes : {515, 1031, 2050, 4096}) {  // a block to a row, cached
    ClassCase c{2, classes, 1};
    c.weighted = classes == 1031;
    c.smoothing = classes == 2050 ? 0.1 : 0;
    cases.push_back(c);
  }
  ClassCase all_ignored{3, 40, 1};
  all_ignored.ignored = true;
  cases.push_back(all_ignored);
  all_ignored.inner = 3;
  cases.push_back(all_ignored);
  all_ignored.inner = 8;
  cases.push_back(all_ignored);
  ClassCase bad{6, 17, 1};
  bad.bad = 2;
  cases.push_back(bad);
  bad.inner = 4;
  bad.averaging = Averaging::kNone;
  cases.push_back(bad);
  bad.inner = 16;
  cases.push_back(bad);
  ClassCase hard{7, 300, 1};
  hard.spread = 400;
  cases.push_back(hard);
  hard.spread = 30;
  hard.infinite = true;
  hard.averaging = Averaging::kNone;
  cases.push_back(hard);
  hard.inner = 24;  // -inf logits in vector columns and in columns of single elements, at labels too
  hard.rows = 1;
  hard.classes = 40;
  cases.push_back(hard);
  hard.inner = 7;
  cases.push_back(hard);
  return cases;
}

// A logit of NaN or +inf makes its own row NaN, loss and gradient, and no other; an ignored row with one stays zero.
template <typename T>
void check_poisoned_row(double poison) {
  for (const std::int64_t inner : {1, 3, 8}) {
    for (const std::int64_t classes : {5, 40, 700}) {
      const std::int64_t rows = 4;
      const auto positions = static_cast<std::size_t>(rows * inner);
      const auto elements = positions * static_cast<std::size_t>(classes);
      const auto at = [&](std::size_t position, std::int64_t k) {
        const auto in = static_cast<std::size_t>(inner), c = static_cast<std::size_t>(classes);
        return position / in * c * in + static_cast<std::size_t>(k) * in + position % in;
      };
      Buffer<T> logits(elements, Access::kReadOnly, "logits");
      fill_logits(logits, ClassCase{rows, classes, inner});
      Buffer<std::int64_t> labels(positions, Access::kReadOnly, "labels");
      for (std::size_t i = 0; i < positions; ++i) labels[i] = static_cast<std::int64_t>(i) % classes;
      labels[1] = -100;
      logits[at(1, 2)] = testing::element_from<T>(poison);
      logits[at(positions - 2, classes - 1)] = testing::element_from<T>(poison);
      Buffer<T> losses(positions, Access::kWriteFirst, "losses"), gradient(elements, Access::kWriteFirst, "gradient");
      ClassLoss request;
      request.dtype = Traits<T>::kDtype;
      request.averaging = Averaging::kNone;
      request.rows = rows;
      request.classes = classes;
      request.inner = inner;
      request.logits = logits.data();
      request.labels = labels.data();
      request.losses = losses.data();
      request.gradient = gradient.data();
      std::size_t bytes = 0;
      ASSERT_EQ(class_loss_workspace(request, &bytes), Status::kOk);
      Buffer<std::uint32_t> workspace(bytes / 4, Access::kWriteFirst, "workspace");
      testing::use({});
      ASSERT_EQ(initialize_loss_workspace(workspace.data(), bytes, nullptr), Status::kOk);
      ASSERT_EQ(class_loss(request, workspace.data(), bytes, nullptr), Status::kOk);
      ASSERT_TRUE(testing::clean());
      for (std::size_t position = 0; position < positions; ++position) {
        const bool poisoned = position == positions - 2;
        EXPECT_EQ(std::isnan(testing::value_of(losses[position])), poisoned) << position;
        for (std::int64_t k = 0; k < classes; ++k) {
          const double g = testing::value_of(gradient[at(position, k)]);
          ASSERT_EQ(std::isnan(g), poisoned) << "position " << position << " class " << k << " of " << classes;
          ASSERT_TRUE(position != 1 || g == 0.0);
        }
      }
    }
  }
}

TYPED_TEST(Loss, NanStaysInItsRow) { check_poisoned_row<TypeParam>(NAN); }
TYPED_TEST(Loss, PositiveInfinityMakesItsRowNan) { check_poisoned_row<TypeParam>(INFINITY); }

/// Softmax of `logits`, rows * classes * inner of them.
template <typename T>
void run_softmax(Buffer<T>& logits, std::int64_t rows, std::int64_t classes, std::int64_t inner, bool logarithmic,
                 Buffer<T>& output) {
  Softmax request;
  request.dtype = Traits<T>::kDtype;
  request.logarithmic = logarithmic;
  request.rows = rows;
  request.classes = classes;
  request.inner = inner;
  request.input = logits.data();
  request.output = output.data();
  testing::use({});
  ASSERT_EQ(softmax(request, nullptr), Status::kOk);
  ASSERT_TRUE(testing::clean());
}

TYPED_TEST(Loss, SoftmaxOfPositiveInfinityIsNan) {
  using T = TypeParam;
  for (const std::int64_t inner : {1, 3, 8}) {
    for (const std::int64_t classes : {5, 40, 700}) {
      const auto step = static_cast<std::size_t>(inner), length = static_cast<std::size_t>(classes);
      Buffer<T> logits(3 * length * step, Access::kReadOnly, "logits");
      fill_logits(logits, ClassCase{3, classes, inner});
      logits[(length + 2) * step] = testing::element_from<T>(INFINITY);  // row 1, its first position
      for (const bool logarithmic : {false, true}) {
        Buffer<T> output(logits.size(), Access::kWriteFirst, "output");
        run_softmax(logits, 3, classes, inner, logarithmic, output);
        if (this->HasFatalFailure()) return;
        for (std::size_t i = 0; i < logits.size(); ++i) {
          const bool poisoned = i / (length * step) == 1 && i % step == 0;
          ASSERT_EQ(std::isnan(testing::value_of(output[i])), poisoned) << i << " of " << classes << " x " << inner;
        }
      }
    }
  }
}

// Masks of the smallest number: (x - maximum) / ln 2 does not fit float32, x - maximum does.
TYPED_TEST(Loss, LogarithmsOfMaskedClassesAreFinite) {
  using T = TypeParam;
  const double lowest = -testing::largest<T>(), relative = 4 * compute_unit<T>() + testing::unit_roundoff<T>();
  for (const std::int64_t inner : {1, 3, 8}) {
    for (const std::int64_t classes : {5, 40, 700}) {
      for (const double maximum : {2.5, -2.5, 0.0, lowest / 8}) {
        const auto elements = static_cast<std::size_t>(classes * inner);
        Buffer<T> logits(elements, Access::kReadOnly, "logits"), output(elements, Access::kWriteFirst, "output");
        for (std::size_t i = 0; i < elements; ++i)
          logits[i] = testing::element_from<T>(i / static_cast<std::size_t>(inner) == 1 ? maximum : lowest);
        run_softmax(logits, 1, classes, inner, true, output);
        if (this->HasFatalFailure()) return;
        for (std::size_t i = 0; i < elements; ++i) {
          const double got = testing::value_of(output[i]), want = testing::value_of(logits[i]) - maximum;
          ASSERT_TRUE(std::isfinite(got)) << maximum << ", element " << i;
          ASSERT_LE(std::fabs(got - want), relative * (std::fabs(want) + 8));
        }
        Buffer<std::int64_t> labels(static_cast<std::size_t>(inner), Access::kReadOnly, "labels");
        for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = classes - 1;
        Buffer<T> losses(labels.size(), Access::kWriteFirst, "losses");
        ClassLoss request;
        request.dtype = Traits<T>::kDtype;
        request.averaging = Averaging::kNone;
        request.rows = 1;
        request.classes = classes;
        request.inner = inner;
        request.logits = logits.data();
        request.labels = labels.data();
        request.losses = losses.data();
        std::size_t bytes = 0;
        ASSERT_EQ(class_loss_workspace(request, &bytes), Status::kOk);
        Buffer<std::uint32_t> workspace(bytes / 4, Access::kWriteFirst, "workspace");
        testing::use({});
        ASSERT_EQ(initialize_loss_workspace(workspace.data(), bytes, nullptr), Status::kOk);
        ASSERT_EQ(class_loss(request, workspace.data(), bytes, nullptr), Status::kOk);
        ASSERT_TRUE(testing::clean());
        for (std::size_t i = 0; i < losses.size(); ++i) {
          const double got = testing::value_of(losses[i]), want = maximum - lowest;
          ASSERT_TRUE(std::isfinite(got)) << maximum;
          ASSERT_LE(std::fabs(got - want), relative * std::fabs(want));
        }
      }
    }
  }
}

TYPED_TEST(Loss, CrossEntropyAgreesWithFloat64) {
  std::size_t turn = 0;
  for (const ClassCase& c : class_cases()) {
    const testing::Schedule schedule = testing::schedules(3)[turn % 3];
    check_classes<TypeParam>(ClassLossKind::kCrossEntropy, c, schedule, turn % 2);
    if (!c.ignored && c.bad == 0 && !c.infinite)
      check_classes<TypeParam>(ClassLossKind::kCrossEntropyProbabilities, c, schedule, turn % 2);
    if (c.smoothing == 0 && !c.infinite)
      check_classes<TypeParam>(ClassLossKind::kNegativeLogLikelihood, c, schedule, turn % 2);
    if (this->HasFatalFailure()) FAIL() << "case " << turn;
    ++turn;
  }
}

// -inf logits: softmax of a row with some, and of a row with only those (NaN).
template <typename T>
void check_softmax(std::int64_t rows, std::int64_t classes, std::int64_t inner, bool logarithmic, double spread,
                   const testing::Schedule& schedule) {
  const auto elements = static_cast<std::size_t>(rows * classes * inner);
  ClassCase c{rows, classes, inner};
  c.spread = spread;
  c.infinite = spread == 9;
  Buffer<T> logits(elements, Access::kReadOnly, "logits");
  fill_logits(logits, c);
  Buffer<T> output(elements, Access::kWriteFirst, "output");
  Softmax request;
  request.dtype = Traits<T>::kDtype;
  request.logarithmic = logarithmic;
  request.rows = rows;
  request.classes = classes;
  request.inner = inner;
  request.input = logits.data();
  request.output = output.data();
  testing::use(schedule);
  ASSERT_EQ(softmax(request, nullptr), Status::kOk);
  ASSERT_TRUE(testing::clean());
  // The gradient from the rounded forward result, as a backward pass has it.
  Buffer<T> forward(elements, Access::kReadOnly, "forward"), upstream(elements, Access::kReadOnly, "upstream");
  std::copy(output.data(), output.data() + elements, forward.data());
  for (std::size_t i = 0; i < elements; ++i)
    upstream[i] = testing::element_from<T>(static_cast<double>(i * 37 % 19) - 9);
  Buffer<T> gradient(elements, Access::kWriteFirst, "gradient");
  request.input = forward.data();
  request.upstream = upstream.data();
  request.output = gradient.data();
  ASSERT_EQ(softmax(request, nullptr), Status::kOk);
  ASSERT_TRUE(testing::clean());
  const double steps = 64 + static_cast<double>(classes) / 64;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t inside = 0; inside < inner; ++inside) {
      const auto at = [&](std::int64_t k) { return static_cast<std::size_t>((row * classes + k) * inner + inside); };
      double maximum = -INFINITY, dot = 0, dot_scale = 0;
      long double sum = 0;
      for (std::int64_t k = 0; k < classes; ++k) maximum = std::max(maximum, testing::value_of(logits[at(k)]));
      for (std::int64_t k = 0; k < classes; ++k) {
        sum += std::exp(static_cast<long double>(testing::value_of(logits[at(k)]) - maximum));
        const double part = testing::value_of(upstream[at(k)]) * (logarithmic ? 1 : testing::value_of(forward[at(k)]));
        dot += part;
        dot_scale += std::fabs(part);
      }
      for (std::int64_t k = 0; k < classes; ++k) {
        const double x = testing::value_of(logits[at(k)]) - maximum;
        const double p = static_cast<double>(std::exp(static_cast<long double>(x)) / sum);
        const double want = logarithmic ? x - static_cast<double>(std::log(sum)) : p;
        const double size = logarithmic ? std::fabs(x) + 1 + static_cast<double>(std::log(sum))
                                        : p * (1 + (std::isfinite(x) ? std::fabs(x) : 0));
        expect_close(output[at(k)], want, std::isfinite(size) ? size : 0, steps,
                     "softmax class " + std::to_string(k) + " of " + std::to_string(classes));
        const double y = testing::value_of(forward[at(k)]), g = testing::value_of(upstream[at(k)]);
        const double factor = logarithmic ? std::exp(y) : y;
        const double derivative = logarithmic ? g - factor * dot : y * (g - dot);
        const double derivative_size =
            (logarithmic ? std::fabs(g) + factor * dot_scale * (1 + (std::isfinite(y) ? std::fabs(y) : 0))
                         : std::fabs(y) * (std::fabs(g) + dot_scale));
        expect_close(gradient[at(k)], derivative, derivative_size, steps,
                     "softmax gradient of class " + std::to_string(k), logarithmic ? dot_scale : 0);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TYPED_TEST(Loss, SoftmaxAgreesWithFloat64) {
  int turn = 0;
  for (const std::int64_t classes : {1, 3, 16, 33, 127, 257, 700, 2049}) {
    for (const bool logarithmic : {false, true}) {
      check_softmax<TypeParam>(3, classes, 1, logarithmic, turn % 2 == 0 ? 9 : 60,
                               testing::schedules(3)[static_cast<std::size_t>(turn % 3)]);
      check_softmax<TypeParam>(2, classes, 5, logarithmic, turn % 2 == 0 ? 60 : 9,
                               testing::schedules(3)[static_cast<std::size_t>(turn % 3)]);
      check_softmax<TypeParam>(2, classes, turn % 3 == 0 ? 24 : 8, logarithmic, turn % 2 == 0 ? 9 : 60,
                               testing::schedules(3)[static_cast<std::size_t>(turn % 3)]);
      if (this->HasFatalFailure()) FAIL() << "classes " << classes;
      ++turn;
    }
  }
}

TYPED_TEST(Loss, CosineAgreesWithFloat64) {
  using T = TypeParam;
  int turn = 0;
  for (const std::int64_t length : {1, 2, 7, 33, 129, 300, 1030}) {
    for (const Averaging averaging : {Averaging::kNone, Averaging::kMean}) {
      const std::int64_t rows = 9;
      const auto elements = static_cast<std::size_t>(rows * length);
      Buffer<T> first(elements, Access::kReadOnly, "first"), second(elements, Access::kReadOnly, "second");
      Buffer<T> target(static_cast<std::size_t>(rows), Access::kReadOnly, "target");
      std::mt19937_64 random(elements);
      for (std::size_t i = 0; i < elements; ++i) {
        const double huge = !std::is_same_v<T, Half> && i / static_cast<std::size_t>(length) == 4 ? 1e25 : 1.0;
        first[i] = testing::element_from<T>((static_cast<double>(random() % 1000) / 500 - 0.8) * huge);
        second[i] = testing::element_from<T>(static_cast<double>(random() % 1000) / 500 - 0.8);
      }
      for (std::size_t i = 0; i < target.size(); ++i)
        target[i] = testing::element_from<T>(i % 3 == 0 ? -1.0 : i == 7 ? 0.0 : 1.0);
      Buffer<T> losses(target.size(), Access::kWriteFirst, "losses"), total(1, Access::kWriteFirst, "total");
      Buffer<T> first_gradient(elements, Access::kWriteFirst, "first gradient"),
          second_gradient(elements, Access::kWriteFirst, "second gradient");
      CosineLoss request;
      request.dtype = Traits<T>::kDtype;
      request.averaging = averaging;
      request.rows = rows;
      request.length = length;
      request.margin = 0.1;
      request.first = first.data();
      request.second = second.data();
      request.target = target.data();
      (averaging == Averaging::kNone ? request.losses : request.total) =
          averaging == Averaging::kNone ? losses.data() : total.data();
      request.first_gradient = first_gradient.data();
      request.second_gradient = second_gradient.data();
      std::size_t bytes = 0;
      ASSERT_EQ(cosine_loss_workspace(request, &bytes), Status::kOk);
      Buffer<std::uint32_t> workspace(bytes / 4, Access::kWriteFirst, "workspace");
      testing::use(testing::schedules(3)[static_cast<std::size_t>(turn++ % 3)]);
      ASSERT_EQ(initialize_loss_workspace(workspace.data(), bytes, nullptr), Status::kOk);
      ASSERT_EQ(cosine_loss(request, workspace.data(), bytes, nullptr), Status::kOk);
      ASSERT_TRUE(testing::clean());
      double sum = 0;
      for (std::int64_t row = 0; row < rows; ++row) {
        double dot = 0, aa = 1e-12, bb = 1e-12;
        const auto at = [&](std::int64_t i) { return static_cast<std::size_t>(row * length + i); };
        for (std::int64_t i = 0; i < length; ++i) {
          dot += testing::value_of(first[at(i)]) * testing::value_of(second[at(i)]);
          aa += testing::value_of(first[at(i)]) * testing::value_of(first[at(i)]);
          bb += testing::value_of(second[at(i)]) * testing::value_of(second[at(i)]);
        }
        const double norm = std::sqrt(aa) * std::sqrt(bb), cosine = dot / norm,
                     y = testing::value_of(target[static_cast<std::size_t>(row)]);
        const double loss = y == 1 ? 1 - cosine : y == -1 ? std::max(0.0, cosine - 0.1) : 0;
        sum += loss;
        if (averaging == Averaging::kNone)
          expect_close(losses[static_cast<std::size_t>(row)], loss, 1, 16 + static_cast<double>(length), "cosine loss");
        const double slope = (y == 1                    ? -1
                              : y == -1 && cosine > 0.1 ? 1
                                                        : 0) /
                             (averaging == Averaging::kMean ? static_cast<double>(rows) : 1.0);
        for (std::int64_t i = 0; i < length; ++i) {
          const double a = testing::value_of(first[at(i)]), b = testing::value_of(second[at(i)]);
          expect_close(first_gradient[at(i)], slope * (b / norm - cosine * a / aa),
                       std::fabs(slope) * (std::fabs(b) / norm + std::fabs(a) / aa), 64 + static_cast<double>(length),
                       "first gradient");
          expect_close(second_gradient[at(i)], slope * (a / norm - cosine * b / bb),
                       std::fabs(slope) * (std::fabs(a) / norm + std::fabs(b) / bb), 64 + static_cast<double>(length),
                       "second gradient");
          if (this->HasFatalFailure()) return;
        }
      }
      if (averaging == Averaging::kMean)
        expect_close(total[0], sum / 9, 1, 64 + static_cast<double>(length), "cosine total");
    }
  }
}

// The synchronisation structures of losses. A small part limit makes clusters at small sizes.
struct Structure {
  const char* name;
  ClassTask task;
  std::int64_t rows, classes, inner;
  int capability;
  std::size_t part_bytes;
  unsigned cluster;
  unsigned units = kColumnUnits;  // at most; columns
  bool warps = false;             // a warp a row, kept in shared memory, though rows are few
};

class ClassStructures : public ::testing::TestWithParam<Structure> {};

TEST_P(ClassStructures, SameBitsInEverySchedule) {
  using T = BFloat16;
  const Structure& s = GetParam();
  const auto positions = static_cast<std::size_t>(s.rows * s.inner),
             elements = positions * static_cast<std::size_t>(s.classes);
  ClassParameters<T> p;
  ASSERT_EQ(plan_class_rows(s.rows, s.classes, Vector<T>::kSize, true, s.capability, s.part_bytes, &p.plan),
            Status::kOk);
  if (s.inner > 1) {
    ASSERT_EQ(plan_class_columns(s.rows, s.classes, s.inner, Vector<T>::kSize, &p.plan), Status::kOk);
    p.plan.units = std::min(p.plan.units, s.units);
    p.plan.blocks = 2;  // fewer than tiles
    p.by_inner = Divisor::of(s.inner);
  }
  ASSERT_EQ(p.plan.cluster, s.cluster);
  if (s.warps) {
    p.plan.lanes = kWarpLanes;
    p.plan.cached = true;
    p.plan.shared_bytes = static_cast<std::size_t>(p.plan.part) * 16 * kWarps;
  }
  // Fewer blocks than rows, so that blocks go round.
  if (s.inner == 1) p.plan.blocks = std::min(p.plan.blocks, 3 * s.cluster);
  Buffer<T> logits(elements, Access::kReadOnly, "logits");
  fill_logits(logits, ClassCase{s.rows, s.classes, s.inner});
  Buffer<std::int64_t> labels(positions, Access::kReadOnly, "labels");
  for (std::size_t i = 0; i < positions; ++i)
    labels[i] = i % 4 == 1 ? -100 : static_cast<std::int64_t>(i * 41 % static_cast<std::size_t>(s.classes));
  Buffer<LabelSummary> summary(1, Access::kReadOnly, "summary");
  summary[0] = {5.0, 0, kNoBadLabel};
  Buffer<double> partials(p.plan.blocks, Access::kWriteFirst, "partials");
  Buffer<unsigned> ticket(1, Access::kReadWrite, "ticket");
  ticket[0] = 0;
  p.logits = logits.data();
  if (s.task == ClassTask::kProbabilities) p.second = logits.data();  // any numbers will do
  p.labels.data = labels.data();
  p.rows = s.rows;
  p.classes = s.classes;
  p.inner = s.inner;
  p.summary = summary.data();
  p.partials = partials.data();
  p.ticket = ticket.data();
  std::vector<std::uint16_t> first;
  for (const testing::Schedule& schedule : testing::schedules(testing::schedule_count(200))) {
    Buffer<T> output(elements, Access::kWriteFirst, "output"), total(1, Access::kWriteFirst, "total");
    p.output = output.data();
    p.total = total.data();
    testing::use(schedule);
    ASSERT_EQ(launch_classes<T>(s.task, p, nullptr), Status::kOk);
    ASSERT_TRUE(testing::clean()) << "seed " << schedule.seed;
    std::vector<std::uint16_t> bits;
    for (std::size_t i = 0; i < elements; ++i) bits.push_back(output[i].bits);
    bits.push_back(total[0].bits);
    if (first.empty()) first = bits;
    ASSERT_EQ(bits, first) << "seed " << schedule.seed;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ClassStructures,
    ::testing::Values(Structure{"lanes", ClassTask::kIndices, 70, 24, 1, 90, kPartBytes, 1},
                      Structure{"cached_block", ClassTask::kIndices, 5, 1100, 1, 90, kPartBytes, 1},
                      Structure{"streamed_block", ClassTask::kIndices, 4, 1100, 1, 80, 512, 1},
                      Structure{"warps", ClassTask::kIndices, 53, 301, 1, 90, kPartBytes, 1, kColumnUnits, true},
                      Structure{"cluster_of_2", ClassTask::kIndices, 7, 1100, 1, 90, 2048, 2},
                      Structure{"cluster_of_4", ClassTask::kIndices, 5, 1100, 1, 90, 1024, 4},
                      Structure{"cluster_of_8_uncached", ClassTask::kIndices, 4, 1100, 1, 90, 16, 8},
                      Structure{"columns", ClassTask::kIndices, 3, 20, 29, 90, kPartBytes, 1},
                      Structure{"vector_columns", ClassTask::kIndices, 3, 37, 48, 90, kPartBytes, 1, 8},
                      Structure{"vector_columns_probabilities", ClassTask::kProbabilities, 3, 11, 48, 90, kPartBytes, 1,
                                4},
                      Structure{"vector_columns_softmax", ClassTask::kSoftmax, 2, 37, 96, 90, kPartBytes, 1, 16}),
    [](const auto& info) { return std::string(info.param.name); });

// The structures that ClassStructures does not reach; `run` launches and returns its results.
template <typename Run>
void same_bits_in_every_schedule(const Run& run) {
  std::vector<double> first;
  for (const testing::Schedule& schedule : testing::schedules(testing::schedule_count(200))) {
    testing::use(schedule);
    const std::vector<double> results = run();
    ASSERT_TRUE(testing::clean()) << "seed " << schedule.seed;
    if (first.empty()) first = results;
    ASSERT_EQ(results, first) << "seed " << schedule.seed;
  }
}

template <typename T>
void fill_small(Buffer<T>& buffer) {
  for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<T>(static_cast<double>(i * 37 % 101) / 64);
}

TEST(LossStructures, PointwiseOverSeveralBlocks) {
  Buffer<float> x(6150, Access::kReadOnly, "x"), t(6150, Access::kReadOnly, "t"),
      total(1, Access::kWriteFirst, "total");
  fill_small(x);
  for (std::size_t i = 0; i < t.size(); ++i) t[i] = 0.25F;
  Buffer<unsigned> ticket(1, Access::kReadWrite, "ticket");
  ticket[0] = 0;
  PointwiseParameters<float> p;
  p.input = x.data();
  p.target = t.data();
  p.total = total.data();
  p.ticket = ticket.data();
  p.elements = 6150;
  p.split_length = 512;
  p.blocks = 3;
  p.aligned = true;
  same_bits_in_every_schedule([&] {
    Buffer<double> partials(3, Access::kWriteFirst, "partials");
    p.partials = partials.data();
    EXPECT_EQ(launch_pointwise<float>(PointwiseKind::kSquared, p, nullptr), Status::kOk);
    EXPECT_TRUE(testing::clean());
    return std::vector<double>{static_cast<double>(total[0])};
  });
}

TEST(LossStructures, LabelsOverSeveralBlocks) {
  Buffer<std::int64_t> labels(6001, Access::kReadOnly, "labels"), report(2, Access::kWriteFirst, "report");
  Buffer<float> weight(9, Access::kReadOnly, "weight");
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int64_t>(i % 11) - 1;
  fill_small(weight);
  Buffer<unsigned> ticket(1, Access::kReadWrite, "ticket");
  ticket[0] = 0;
  LabelParameters<float> p;
  p.labels.data = labels.data();
  p.weight = weight.data();
  p.report = report.data();
  p.ticket = ticket.data();
  p.positions = 6001;
  p.classes = 9;
  p.blocks = 3;
  same_bits_in_every_schedule([&] {
    Buffer<double> summary(3, Access::kWriteFirst, "summary"), partials(9, Access::kWriteFirst, "partials");
    p.summary = reinterpret_cast<LabelSummary*>(summary.data());
    p.partials = reinterpret_cast<LabelSummary*>(partials.data());
    EXPECT_EQ(launch_labels<float>(p, nullptr), Status::kOk);
    EXPECT_TRUE(testing::clean());
    return std::vector<double>{summary[0], static_cast<double>(report[0]), static_cast<double>(report[1])};
  });
  EXPECT_EQ(report[0], 1091);  // 546 of -1, 545 of 9
  EXPECT_EQ(report[1], 0);
}

struct GradientStructure {
  const char* name;
  std::int64_t rows, classes, inner;
};
class SoftmaxGradientStructures : public ::testing::TestWithParam<GradientStructure> {};

TEST_P(SoftmaxGradientStructures, SameBitsInEverySchedule) {
  const GradientStructure& s = GetParam();
  const auto elements = static_cast<std::size_t>(s.rows * s.classes * s.inner);
  Buffer<float> y(elements, Access::kReadOnly, "y"), g(elements, Access::kReadOnly, "g");
  fill_small(y);
  fill_small(g);
  ClassParameters<float> p;
  if (s.inner == 1) {
    ASSERT_EQ(plan_class_rows(s.rows, s.classes, 4, false, 0, kPartBytes, &p.plan), Status::kOk);
  } else {
    ASSERT_EQ(plan_class_columns(s.rows, s.classes, s.inner, 4, &p.plan), Status::kOk);
    p.plan.units = std::min(p.plan.units, 8U);
  }
  p.plan.blocks = 2;
  p.logits = y.data();
  p.second = g.data();
  p.rows = s.rows;
  p.classes = s.classes;
  p.inner = s.inner;
  p.by_inner = Divisor::of(s.inner);
  same_bits_in_every_schedule([&] {
    Buffer<float> output(elements, Access::kWriteFirst, "output");
    p.output = output.data();
    EXPECT_EQ(launch_softmax_gradient<float>(p, nullptr), Status::kOk);
    EXPECT_TRUE(testing::clean());
    return std::vector<double>(output.data(), output.data() + elements);
  });
}

INSTANTIATE_TEST_SUITE_P(All, SoftmaxGradientStructures,
                         ::testing::Values(GradientStructure{"lanes", 70, 24, 1}, GradientStructure{"block", 5, 700, 1},
                                           GradientStructure{"columns", 3, 20, 29},
                                           GradientStructure{"vector_columns", 3, 20, 100}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(LossStructures, CosineByBlocks) {
  constexpr std::size_t kElements = 5 * 700;
  Buffer<float> a(kElements, Access::kReadOnly, "a"), b(kElements, Access::kReadOnly, "b");
  Buffer<float> target(5, Access::kReadOnly, "target"), total(1, Access::kWriteFirst, "total");
  fill_small(a);
  for (std::size_t i = 0; i < kElements; ++i) b[i] = static_cast<float>(i % 7) - 2.0F;
  for (std::size_t i = 0; i < 5; ++i) target[i] = i % 2 == 0 ? 1.0F : -1.0F;
  Buffer<unsigned> ticket(1, Access::kReadWrite, "ticket");
  ticket[0] = 0;
  CosineParameters<float> p;
  p.first = a.data();
  p.second = b.data();
  p.target = target.data();
  p.total = total.data();
  p.ticket = ticket.data();
  p.rows = 5;
  p.length = 700;
  p.lanes = kThreads;
  same_bits_in_every_schedule([&] {
    Buffer<double> partials(2, Access::kWriteFirst, "partials");
    Buffer<float> gradient(kElements, Access::kWriteFirst, "gradient");
    p.partials = partials.data();
    p.first_gradient = gradient.data();
    EXPECT_EQ(launch_cosine<float>(p, 2, nullptr), Status::kOk);
    EXPECT_TRUE(testing::clean());
    std::vector<double> results(gradient.data(), gradient.data() + kElements);
    results.push_back(static_cast<double>(total[0]));
    return results;
  });
}

TEST(ClassLoss, PartitionOfARowDoesNotChangeItsMeaning) {
  // Cluster sizes against one block: same row, results within rounding.
  using T = float;
  Buffer<T> logits(4000, Access::kReadOnly, "logits");
  fill_logits(logits, ClassCase{2, 2000, 1});
  std::vector<std::vector<float>> outputs;
  for (const std::size_t part : {kPartBytes, std::size_t{4096}, std::size_t{2048}, std::size_t{1024}}) {
    ClassParameters<T> p;
    ASSERT_EQ(plan_class_rows(2, 2000, Vector<T>::kSize, true, 90, part, &p.plan), Status::kOk);
    Buffer<T> output(4000, Access::kWriteFirst, "output");
    p.logits = logits.data();
    p.output = output.data();
    p.rows = 2;
    p.classes = 2000;
    testing::use({testing::Order::kRandom, 3});
    ASSERT_EQ(launch_classes<T>(ClassTask::kSoftmax, p, nullptr), Status::kOk);
    ASSERT_TRUE(testing::clean());
    outputs.emplace_back(output.data(), output.data() + 4000);
  }
  for (std::size_t i = 0; i < 4000; ++i) {
    for (const auto& output : outputs) ASSERT_NEAR(output[i], outputs[0][i], outputs[0][i] * 1e-6F);
  }
}

TEST(ClassLoss, ErrorsAreReturned) {
  ClassLoss request;
  std::size_t bytes = 0;
  request.dtype = Dtype::kInt32;
  EXPECT_EQ(class_loss_workspace(request, &bytes), Status::kUnsupportedDtype);
  request.dtype = Dtype::kFloat32;
  request.rows = std::int64_t{1} << 40;
  request.classes = std::int64_t{1} << 40;
  EXPECT_EQ(class_loss_workspace(request, &bytes), Status::kBadShape);
  request.rows = 4;
  request.classes = 4;
  request.smoothing = 1.5;
  EXPECT_EQ(class_loss_workspace(request, &bytes), Status::kBadParameter);
  request.smoothing = 0;
  float value[16] = {};
  request.losses = value;
  EXPECT_EQ(class_loss(request, value, 0, nullptr), Status::kBadParameter);  // losses go with kNone
  request.losses = nullptr;
  request.total = value;
  EXPECT_EQ(class_loss(request, nullptr, 0, nullptr), Status::kNullPointer);
}

}  // namespace
}  // namespace tensorlint::kernels
