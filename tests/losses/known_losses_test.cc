// Losses are known by what they compute, not by how they are written.
#include "passes/losses/known_losses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tensorlint::losses {
namespace {

std::optional<LossKind> kind_of(const PairFunction& function, std::vector<double> constants = {}) {
  return identify_pair(function, constants);
}

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double logistic(double x) { return 1 / (1 + std::exp(-x)); }

TEST(KnownLosses, SquaredErrorsInAnySpelling) {
  EXPECT_EQ(kind_of([](double p, double t) { return (p - t) * (p - t); }), LossKind::kMse);
  EXPECT_EQ(kind_of([](double p, double t) { return std::pow(t - p, 2) / 2; }), LossKind::kMse);
  EXPECT_EQ(kind_of([](double p, double t) { return p * p - 2 * p * t + t * t; }), LossKind::kMse);
  EXPECT_EQ(kind_of([](double p, double t) { return -3 * (p - t) * (p - t) + 7; }), LossKind::kMse);
}

TEST(KnownLosses, OtherDistances) {
  EXPECT_EQ(kind_of([](double p, double t) { return std::max(p - t, t - p); }), LossKind::kL1);
  EXPECT_EQ(kind_of([](double p, double t) { return std::sqrt((p - t) * (p - t) + 1e-12); }), LossKind::kL1);
  const auto huber = [](double c) {
    return [c](double p, double t) {
      const double size = std::abs(p - t), inner = std::min(size, c);
      return inner * inner / 2 + c * (size - inner);
    };
  };
  EXPECT_EQ(kind_of(huber(1)), LossKind::kHuber);
  EXPECT_EQ(kind_of(huber(0.25), {0.25}), LossKind::kHuber);
  EXPECT_EQ(kind_of(huber(0.25)), std::nullopt);  // its threshold is a number of the formula
  EXPECT_EQ(kind_of([](double p, double t) { return p - t + softplus(-2 * (p - t)) - std::log(2); }),
            LossKind::kLogCosh);
  EXPECT_EQ(kind_of([](double p, double t) { return std::max(0.9 * (t - p), -0.1 * (t - p)); }), LossKind::kQuantile);
  EXPECT_EQ(kind_of([](double p, double t) { return std::abs((t - p) / t); }), LossKind::kRelativeError);
}

TEST(KnownLosses, CrossEntropiesOfTwoClasses) {
  EXPECT_EQ(kind_of([](double p, double t) { return -t * std::log(p) - (1 - t) * std::log(1 - p); }),
            LossKind::kBinaryCrossEntropy);
  EXPECT_EQ(kind_of([](double p, double t) { return -t * std::log(p + 1e-7) - (1 - t) * std::log(1 - p + 1e-7); }),
            LossKind::kBinaryCrossEntropy);
  EXPECT_EQ(kind_of([](double p, double t) { return -5 * t * std::log(p) - (1 - t) * std::log(1 - p); }),
            LossKind::kBinaryCrossEntropy);  // one class counts more
  EXPECT_EQ(kind_of([](double x, double t) { return std::max(x, 0.0) - x * t + softplus(-std::abs(x)); }),
            LossKind::kBinaryCrossEntropyWithLogits);
  EXPECT_EQ(kind_of([](double x, double t) {
              const double p = logistic(x);
              return -t * (1 - p) * (1 - p) * std::log(p) - (1 - t) * p * p * std::log(1 - p);
            }),
            LossKind::kBinaryFocal);
}

TEST(KnownLosses, DivergenceCountsAndMargins) {
  EXPECT_EQ(kind_of([](double q, double t) { return t * std::log(t) - t * q; }), LossKind::kKlDivergence);
  EXPECT_EQ(kind_of([](double q, double t) { return std::exp(t) * (t - q); }), LossKind::kKlDivergence);
  EXPECT_EQ(kind_of([](double p, double t) { return std::exp(p) - p * t; }), LossKind::kPoisson);
  EXPECT_EQ(kind_of([](double p, double t) { return std::max(1 - p * t, 0.0); }), LossKind::kHinge);
  EXPECT_EQ(kind_of([](double p, double t) { return softplus(-p * t); }), LossKind::kHinge);
}

TEST(KnownLosses, WhatIsNone) {
  EXPECT_EQ(kind_of([](double p, double t) { return std::exp(-(p - t) * (p - t)); }), std::nullopt);  // a kernel
  EXPECT_EQ(kind_of([](double p, double t) { return p * t; }), std::nullopt);
  EXPECT_EQ(kind_of([](double p, double t) { return p + t; }), std::nullopt);
  EXPECT_EQ(kind_of([](double p, double t) { return (p - t) * (p - t) * std::abs(p); }), std::nullopt);
  EXPECT_EQ(kind_of([](double, double) { return 1.0; }), std::nullopt);
  EXPECT_EQ(kind_of([](double p, double t) { return t * std::log(p) - (1 - t) * std::log(1 - p); }), std::nullopt);
}

TEST(KnownLosses, FunctionsOfALogProbability) {
  const auto kind = [](const std::function<double(double)>& function) {
    return identify_log_probability(function, {});
  };
  EXPECT_EQ(kind([](double log) { return -2 * log; }), LossKind::kCrossEntropy);
  EXPECT_EQ(kind([](double log) { return -std::pow(1 - std::exp(log), 2) * log; }), LossKind::kFocal);
  EXPECT_EQ(kind([](double log) { return log * log; }), std::nullopt);
}

}  // namespace
}  // namespace tensorlint::losses
