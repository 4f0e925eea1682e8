// Normalizations against two passes in long double: rows of lanes and of blocks, all kinds of parameters, large means
// beside small variances, in place; and what requests are refused.

#include "kernels/normalization/normalization.h"

#include <algorithm>

#include "tests/kernels/testing.h"

namespace tensorlint::kernels {
namespace {

using testing::Access;
using testing::Buffer;

struct Case {
  NormalizationKind kind = NormalizationKind::kCentred;
  std::int64_t rows = 1, length = 1, groups = 1, each = 1;
  bool scale = true, bias = true;
  double mean = 0.2, spread = 2;  // of the data
  std::size_t shift = 0;
  bool in_place = false;
};

template <typename T>
void fill(Buffer<T>& data, std::uint64_t seed, double mean, double spread) {
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = testing::element_from<T>(mean + (static_cast<double>(random() >> 11) * 0x1p-53 - 0.5) * spread);
}

/// Merges and additions between an element and the statistics: in 4 vectors, of one thread's part, over lanes and
/// warps.
template <typename T>
double depth_of(std::int64_t length) {
  const double lanes = length <= 128 * Vector<T>::kSize ? 32 : 256;
  return 4.0 * Vector<T>::kSize + static_cast<double>(length) / (Vector<T>::kSize * std::min(lanes, 32.0)) / 4 + 4 + 5 +
         8;
}

/// The largest error over its bound, by what normalization.h says of mean and variance; the rest rounds 4 times.
template <typename T>
double worst_ratio(const Case& c, const testing::Schedule& schedule = {}, std::vector<T>* bits = nullptr) {
  using Kind = NormalizationKind;
  const auto elements = static_cast<std::size_t>(c.rows * c.length),
             parameters = static_cast<std::size_t>(c.groups * c.each);
  Buffer<T> data(elements, c.in_place ? Access::kReadWrite : Access::kReadOnly, "data", c.shift);
  Buffer<T> scale(parameters, Access::kReadOnly, "scale"), bias(parameters, Access::kReadOnly, "bias");
  Buffer<T> mean(parameters, Access::kReadOnly, "mean"), variance(parameters, Access::kReadOnly, "variance");
  Buffer<T> result(c.in_place ? 1 : elements, Access::kWriteFirst, "result", c.shift);
  fill(data, 1, c.mean, c.spread);
  fill(scale, 2, 0.5, 3);
  fill(bias, 3, 0, 2);
  fill(mean, 4, 0, 2);
  fill(variance, 5, 1.5, 2);
  const std::vector<T> given(data.data(), data.data() + elements);
  Normalization request;
  request.kind = c.kind;
  request.dtype = Traits<T>::kDtype;
  request.rows = c.rows, request.length = c.length, request.groups = c.groups, request.each = c.each;
  request.data = data.data(), request.result = c.in_place ? data.data() : result.data();
  if (c.scale) request.scale = scale.data();
  if (c.bias) request.bias = bias.data();
  if (c.kind == Kind::kGiven) request.mean = mean.data(), request.variance = variance.data();
  testing::use(schedule);
  EXPECT_EQ(normalization(request, nullptr), Status::kOk);
  EXPECT_TRUE(testing::clean());
  const T* const got = static_cast<const T*>(request.result);
  if (bits != nullptr) bits->assign(got, got + elements);
  const double u = std::is_same_v<T, double> ? 0x1p-53 : 0x1p-24, d = depth_of<T>(c.length);
  double worst = 0;
  for (std::int64_t row = 0; row < c.rows; ++row) {
    long double sum = 0, magnitude = 0, squares = 0;
    const T* const x = given.data() + row * c.length;
    for (std::int64_t i = 0; i < c.length; ++i) {
      sum += static_cast<long double>(testing::value_of(x[i]));
      magnitude += std::fabs(static_cast<long double>(testing::value_of(x[i])));
    }
    const auto count = static_cast<long double>(c.length);
    const auto kind = static_cast<std::size_t>(row % c.groups);
    long double centre = c.kind == Kind::kRootMeanSquare ? 0 : sum / count;
    for (std::int64_t i = 0; i < c.length; ++i)
      squares += (testing::value_of(x[i]) - centre) * (testing::value_of(x[i]) - centre);
    long double deviation = squares / count;
    double mean_error = c.kind == Kind::kCentred ? d * u * static_cast<double>(magnitude / count) : 0;
    double variance_error = d * u * static_cast<double>(deviation + 2 * (magnitude / count) * std::sqrt(deviation)) +
                            mean_error * mean_error;
    if (c.kind == Kind::kRootMeanSquare) variance_error = d * u * static_cast<double>(deviation);
    if (c.kind == Kind::kGiven) {
      centre = testing::value_of(mean[kind]);
      deviation = testing::value_of(variance[kind]);
      variance_error = 0;
    }
    const double steady = static_cast<double>(deviation) + 1e-5, factor = 1 / std::sqrt(steady);
    for (std::int64_t i = 0; i < c.length; ++i) {
      const auto p = kind * static_cast<std::size_t>(c.each) + static_cast<std::size_t>(i / (c.length / c.each));
      const double difference = testing::value_of(x[i]) - static_cast<double>(centre);
      const double scaled = difference * factor * (c.scale ? testing::value_of(scale[p]) : 1);
      const double want = scaled + (c.bias ? testing::value_of(bias[p]) : 0);
      const double by = std::fabs(factor * (c.scale ? testing::value_of(scale[p]) : 1));
      const double bound =
          by * (mean_error + u * std::fabs(difference)) + std::fabs(scaled) * (variance_error / (2 * steady) + 5 * u) +
          (u + 1.01 * testing::unit_roundoff<T>()) * std::fabs(want) + testing::smallest_subnormal<T>();
      const double value = testing::value_of(got[row * c.length + i]);
      worst = std::max(worst, testing::error_ratio(value, want, bound, testing::largest<T>()));
    }
  }
  return worst;
}

template <typename T>
class Normalizations : public ::testing::Test {};
using Elements = ::testing::Types<float, double, Half, BFloat16>;
TYPED_TEST_SUITE(Normalizations, Elements);

TYPED_TEST(Normalizations, RowsOfAllLengths) {
  using T = TypeParam;
  using Kind = NormalizationKind;
  for (const Kind kind : {Kind::kCentred, Kind::kRootMeanSquare})
    for (const std::int64_t length : {1, 2, 7, 8, 31, 32, 33, 130, 512, 1023, 1040, 2500})
      for (const std::size_t shift : {0U, 1U})
        EXPECT_LE(worst_ratio<T>({.kind = kind, .rows = 5, .length = length, .each = length, .shift = shift}), 1.0)
            << length;
}

TYPED_TEST(Normalizations, ParametersOfChannelsAndGroups) {
  using T = TypeParam;
  // One for all; instances; groups of channels, with vectors inside of one and across several.
  EXPECT_LE(worst_ratio<T>({.rows = 6, .length = 40}), 1.0);
  EXPECT_LE(worst_ratio<T>({.rows = 6, .length = 40, .groups = 3}), 1.0);
  EXPECT_LE(worst_ratio<T>({.rows = 4, .length = 48, .groups = 2, .each = 3}), 1.0);
  EXPECT_LE(worst_ratio<T>({.rows = 4, .length = 35, .groups = 2, .each = 5, .scale = false}), 1.0);
  EXPECT_LE(worst_ratio<T>({.rows = 4, .length = 35, .groups = 2, .each = 5, .bias = false}), 1.0);
  EXPECT_LE(worst_ratio<T>({.rows = 2, .length = 9, .scale = false, .bias = false}), 1.0);
}

TYPED_TEST(Normalizations, StatisticsThatAreGiven) {
  using T = TypeParam;
  using Kind = NormalizationKind;
  for (const std::int64_t length : {1, 9, 49, 64, 1500})
    EXPECT_LE(worst_ratio<T>({.kind = Kind::kGiven, .rows = 12, .length = length, .groups = 4}), 1.0);
  EXPECT_LE(worst_ratio<T>({.kind = Kind::kGiven, .rows = 700, .length = 1, .groups = 7}), 1.0);
}

TYPED_TEST(Normalizations, LargeMeansBesideSmallVariances) {
  using T = TypeParam;
  for (const std::int64_t length : {33, 600, 2500}) {
    EXPECT_LE(worst_ratio<T>({.rows = 3, .length = length, .mean = 1000, .spread = 4}), 1.0);
    EXPECT_LE(worst_ratio<T>({.rows = 3, .length = length, .mean = -30, .spread = 0}), 1.0);
  }
}

TYPED_TEST(Normalizations, InPlaceGivesTheSameBitsInEverySchedule) {
  using T = TypeParam;
  std::vector<T> first, bits;
  for (const std::int64_t length : {19, 1540}) {
    first.clear();
    for (const testing::Schedule& schedule : testing::schedules(testing::schedule_count(4))) {
      for (const bool in_place : {false, true}) {
        EXPECT_LE(worst_ratio<T>({.rows = 9, .length = length, .each = length, .in_place = in_place}, schedule, &bits),
                  1.0);
        if (first.empty()) first = bits;
        EXPECT_EQ(std::memcmp(first.data(), bits.data(), bits.size() * sizeof(T)), 0);
      }
    }
  }
}

TEST(NormalizationRequests, WhatIsRefused) {
  Buffer<float> data(64, Access::kReadWrite, "data"), scale(8, Access::kReadOnly, "scale"),
      result(64, Access::kWriteFirst, "result");
  Normalization good;
  good.rows = 8, good.length = 8, good.each = 8;
  good.data = data.data(), good.scale = scale.data(), good.result = result.data();
  testing::use({});
  const auto status_of = [&](const auto& change) {
    Normalization request = good;
    change(request);
    return normalization(request, nullptr);
  };
  EXPECT_EQ(status_of([](Normalization&) {}), Status::kOk);
  EXPECT_EQ(status_of([&](Normalization& r) { r.result = data.data(); }), Status::kOk);
  EXPECT_EQ(status_of([](Normalization& r) { r.dtype = Dtype::kInt64; }), Status::kUnsupportedDtype);
  EXPECT_EQ(status_of([](Normalization& r) { r.rows = -1; }), Status::kBadShape);
  EXPECT_EQ(status_of([](Normalization& r) { r.rows = r.length = std::int64_t{1} << 32; }), Status::kBadShape);
  EXPECT_EQ(status_of([](Normalization& r) { r.groups = 3; }), Status::kBadParameter);
  EXPECT_EQ(status_of([](Normalization& r) { r.each = 3; }), Status::kBadParameter);
  EXPECT_EQ(status_of([](Normalization& r) { r.each = 0; }), Status::kBadParameter);
  EXPECT_EQ(status_of([](Normalization& r) { r.kind = NormalizationKind::kGiven; }), Status::kBadParameter);
  EXPECT_EQ(status_of([](Normalization& r) { r.kind = NormalizationKind::kGiven, r.each = 1; }), Status::kNullPointer);
  EXPECT_EQ(status_of([](Normalization& r) { r.data = nullptr; }), Status::kNullPointer);
  EXPECT_EQ(status_of([&](Normalization& r) { r.scale = reinterpret_cast<char*>(scale.data()) + 2; }),
            Status::kMisaligned);
  EXPECT_EQ(status_of([&](Normalization& r) { r.result = data.data() + 1; }), Status::kOverlap);
  EXPECT_EQ(status_of([&](Normalization& r) { r.scale = r.result; }), Status::kOverlap);
  EXPECT_EQ(status_of([](Normalization& r) { r.rows = 0, r.data = r.result = nullptr; }), Status::kOk);
  EXPECT_TRUE(testing::clean());
}

}  // namespace
}  // namespace tensorlint::kernels
