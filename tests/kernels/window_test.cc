// Convolutions and pools against float64 loops over windows; every dtype, groups, strides, dilations, pads; what
// requests are refused.

#include "kernels/window/window.h"

#include <algorithm>

#include "kernels/window/dispatch.h"
#include "tests/kernels/testing.h"

namespace tensorlint::kernels {
namespace {

using testing::Access;
using testing::Buffer;

/// An axis whose windows are as many as fit.
WindowAxis axis_of(std::int64_t in, std::int64_t kernel, std::int64_t stride = 1, std::int64_t dilation = 1,
                   std::int64_t begin = 0, std::int64_t end = 0) {
  const std::int64_t room = in + begin + end - (kernel - 1) * dilation - 1;
  return {in, room < 0 ? 0 : room / stride + 1, kernel, stride, dilation, begin, end};
}

template <typename T>
void fill(Buffer<T>& data, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = testing::element_from<T>((static_cast<double>(random() >> 11) * 0x1p-53 - 0.4) * 4);
}

/// visit(index of the element in the window, index in the image) for each element of window (row, column) in the image.
template <typename Visit>
void visit_window(const WindowAxis (&axes)[kWindowAxes], std::int64_t row, std::int64_t column, const Visit& visit) {
  for (std::int64_t i = 0; i < axes[0].kernel; ++i) {
    for (std::int64_t j = 0; j < axes[1].kernel; ++j) {
      const std::int64_t y = row * axes[0].stride - axes[0].begin + i * axes[0].dilation;
      const std::int64_t x = column * axes[1].stride - axes[1].begin + j * axes[1].dilation;
      if (y >= 0 && y < axes[0].in && x >= 0 && x < axes[1].in)
        visit(i * axes[1].kernel + j, static_cast<std::size_t>(y * axes[1].in + x));
    }
  }
}

struct ConvolutionCase {
  std::int64_t batch, channels, filters, groups;
  WindowAxis rows, columns;
  bool bias = false;
  std::size_t shift = 0;
};

/// The largest error over its bound: one fused step a term, the bias, the result's rounding.
template <typename T>
double worst_ratio(const ConvolutionCase& c, const testing::Schedule& schedule = {}, std::vector<T>* bits = nullptr) {
  Convolution request;
  request.dtype = Traits<T>::kDtype;
  request.batch = c.batch, request.channels = c.channels, request.filters = c.filters, request.groups = c.groups;
  request.axes[0] = c.rows, request.axes[1] = c.columns;
  const std::int64_t plane = c.rows.in * c.columns.in, window = c.rows.kernel * c.columns.kernel;
  const std::int64_t positions = c.rows.out * c.columns.out, each = c.channels / c.groups;
  const auto size = [](std::int64_t elements) { return static_cast<std::size_t>(elements); };
  Buffer<T> data(size(c.batch * c.channels * plane), Access::kReadOnly, "data", c.shift);
  Buffer<T> weight(size(c.filters * each * window), Access::kReadOnly, "weight", c.shift);
  Buffer<T> bias(size(c.filters), Access::kReadOnly, "bias");
  Buffer<T> result(size(c.batch * c.filters * positions), Access::kWriteFirst, "result", c.shift);
  fill(data, 1);
  fill(weight, 2);
  fill(bias, 3);
  request.data = data.data(), request.weight = weight.data(), request.result = result.data();
  if (c.bias) request.bias = bias.data();
  testing::use(schedule);
  EXPECT_EQ(convolution(request, nullptr), Status::kOk);
  EXPECT_TRUE(testing::clean());
  if (bits != nullptr) bits->assign(result.data(), result.data() + result.size());
  const double u = std::is_same_v<T, double> ? 0x1p-53 : 0x1p-24;
  double worst = 0;
  for (std::int64_t i = 0; i < c.batch * c.filters * positions; ++i) {
    const std::int64_t position = i % positions, filter = i / positions % c.filters, image = i / positions / c.filters;
    const std::int64_t group = filter / (c.filters / c.groups);
    long double sum = 0, magnitude = 0;
    for (std::int64_t channel = 0; channel < each; ++channel) {
      const std::int64_t from = (image * c.channels + group * each + channel) * plane;
      visit_window(request.axes, position / c.columns.out, position % c.columns.out,
                   [&](std::int64_t tap, std::size_t at) {
                     const long double term = static_cast<long double>(testing::value_of(data[size(from) + at])) *
                                              testing::value_of(weight[size((filter * each + channel) * window + tap)]);
                     sum += term;
                     magnitude += std::fabs(term);
                   });
    }
    double want = static_cast<double>(sum);
    double bound = static_cast<double>(magnitude) * static_cast<double>(each * window) * u;
    if (c.bias) {
      const double added = testing::value_of(bias[size(filter)]);
      bound += u * (std::fabs(want) + std::fabs(added));
      want += added;
    }
    bound += testing::unit_roundoff<T>() * std::fabs(want) * 1.01 + testing::smallest_subnormal<T>();
    worst = std::max(worst, testing::error_ratio(testing::value_of(result[size(i)]), want, bound));
  }
  return worst;
}

template <typename T>
class Windows : public ::testing::Test {};
using Elements = ::testing::Types<float, double, Half, BFloat16>;
TYPED_TEST_SUITE(Windows, Elements);

TYPED_TEST(Windows, ConvolutionsInTiles) {
  using T = TypeParam;
  // Plain; with everything; one axis; more than a tile of filters and positions; one window; filters larger than a
  // step.
  for (const ConvolutionCase& c : {
           ConvolutionCase{1, 3, 4, 1, axis_of(7, 3), axis_of(9, 3)},
           ConvolutionCase{2, 6, 10, 2, axis_of(9, 3, 2, 2, 2, 1), axis_of(11, 2, 3, 1, 0, 2), true},
           ConvolutionCase{2, 4, 8, 1, WindowAxis{}, axis_of(40, 5, 2, 1, 2, 2), true},
           ConvolutionCase{1, 2, 70, 1, axis_of(10, 3, 1, 1, 1, 1), axis_of(9, 3, 1, 1, 1, 1), true, 1},
           ConvolutionCase{1, 8, 5, 1, axis_of(4, 4), axis_of(4, 4)},
           ConvolutionCase{3, 8, 16, 4, axis_of(5, 2), axis_of(8, 4, 4), true},
           ConvolutionCase{1, 2, 4, 1, axis_of(2, 3, 1, 1, 3, 3), axis_of(2, 3, 2, 1, 3, 3)},  // windows of padding
       })
    EXPECT_LE(worst_ratio<T>(c), 1.0) << c.filters << " filters, " << c.columns.in << " columns";
}

TYPED_TEST(Windows, ConvolutionsOfFewFiltersAndOfSingleElements) {
  using T = TypeParam;
  for (const ConvolutionCase& c : {
           ConvolutionCase{2, 5, 5, 5, axis_of(8, 3, 1, 1, 1, 1), axis_of(9, 3, 2, 1, 1, 1), true},
           ConvolutionCase{1, 6, 4, 2, axis_of(6, 2, 1, 2), axis_of(7, 3, 2, 1, 0, 3)},
           ConvolutionCase{1, 3, 3, 1, axis_of(5, 5, 1, 1, 4, 4), axis_of(60, 5, 1, 1, 4, 4), true, 1},
           ConvolutionCase{2, 6, 8, 2, axis_of(5, 1), axis_of(6, 1), true},
           ConvolutionCase{2, 6, 8, 1, axis_of(5, 1, 2), axis_of(7, 1, 2), true},  // of every other element
       })
    EXPECT_LE(worst_ratio<T>(c), 1.0) << c.filters << " filters, " << c.columns.in << " columns";
}

TEST(WindowSchedules, ConvolutionsGiveTheSameBitsInEveryScheduleAndTile) {
  std::vector<float> first, bits;
  const ConvolutionCase c{2, 5, 67, 1, axis_of(9, 3, 1, 1, 1, 1), axis_of(9, 3, 1, 1, 1, 1), true};
  for (const testing::Schedule& schedule : testing::schedules(testing::schedule_count(4))) {
    EXPECT_LE(worst_ratio<float>(c, schedule, &bits), 1.0);
    if (first.empty()) first = bits;
    EXPECT_EQ(std::memcmp(first.data(), bits.data(), bits.size() * sizeof(float)), 0);
  }
  // The first images of enough for tiles of 128.
  ConvolutionCase many = c;
  many.batch = 132;
  ProductPlan plan;
  ASSERT_EQ(plan_product(67, 81, 132, Dtype::kFloat32, &plan), Status::kOk);
  EXPECT_EQ(plan.tile, kLargeTile);
  EXPECT_LE(worst_ratio<float>(many, {}, &bits), 1.0);
  const ConvolutionCase one{1, 5, 67, 1, c.rows, c.columns, true};
  EXPECT_LE(worst_ratio<float>(one, {}, &first), 1.0);
  EXPECT_EQ(std::memcmp(first.data(), bits.data(), first.size() * sizeof(float)), 0);
}

struct PoolingCase {
  std::int64_t images;
  WindowAxis rows, columns;
};

/// The largest error over its bound: one addition a term, the division, the result's rounding; maxima are exact.
template <typename T>
double worst_ratio(PoolingKind kind, const PoolingCase& c, bool special = false,
                   const testing::Schedule& schedule = {}) {
  Pooling request;
  request.kind = kind;
  request.dtype = Traits<T>::kDtype;
  request.images = c.images;
  request.axes[0] = c.rows, request.axes[1] = c.columns;
  const std::int64_t plane = c.rows.in * c.columns.in, positions = c.rows.out * c.columns.out;
  Buffer<T> data(static_cast<std::size_t>(c.images * plane), Access::kReadOnly, "data");
  Buffer<T> result(static_cast<std::size_t>(c.images * positions), Access::kWriteFirst, "result");
  fill(data, 1);
  for (std::size_t i = 0; special && i < data.size(); i += 5)
    data[i] = testing::element_from<T>(i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY);
  request.data = data.data(), request.result = result.data();
  testing::use(schedule);
  EXPECT_EQ(pooling(request, nullptr), Status::kOk);
  EXPECT_TRUE(testing::clean());
  const double u = std::is_same_v<T, double> ? 0x1p-53 : 0x1p-24;
  double worst = 0;
  for (std::int64_t i = 0; i < c.images * positions; ++i) {
    const std::int64_t image = i / positions, row = i % positions / c.columns.out, column = i % c.columns.out;
    double largest = -INFINITY, sum = 0, magnitude = 0;
    std::int64_t terms = 0;
    visit_window(request.axes, row, column, [&](std::int64_t, std::size_t at) {
      const double x = testing::value_of(data[static_cast<std::size_t>(image * plane) + at]);
      if (x > largest) largest = x;
      sum += x;
      magnitude += std::fabs(x);
      ++terms;
    });
    double want = largest, bound = 0;
    if (kind != PoolingKind::kMax) {
      std::int64_t count = terms;
      if (kind == PoolingKind::kAverageWithPadding) {
        WindowAxis padded[kWindowAxes] = {c.rows, c.columns};
        for (WindowAxis& axis : padded) axis.in += axis.begin + axis.end, axis.begin = 0;
        count = 0;
        visit_window(padded, row, column, [&](std::int64_t, std::size_t) { ++count; });
      }
      want = sum / static_cast<double>(count);
      bound = (magnitude * static_cast<double>(terms) * u) / static_cast<double>(count) + u * std::fabs(want) +
              testing::unit_roundoff<T>() * std::fabs(want) * 1.01 + testing::smallest_subnormal<T>();
    }
    const double got = testing::value_of(result[static_cast<std::size_t>(i)]);
    worst = std::max(worst, bound == 0 && got != want && !(std::isnan(got) && std::isnan(want))
                                ? INFINITY
                                : testing::error_ratio(got, want, bound));
  }
  return worst;
}

TYPED_TEST(Windows, Pools) {
  using T = TypeParam;
  for (const PoolingCase& c : {
           PoolingCase{3, axis_of(7, 3, 2), axis_of(9, 3, 2)},
           PoolingCase{2, axis_of(8, 3, 2, 1, 1, 1), axis_of(9, 2, 3, 2, 1, 1)},
           PoolingCase{5, WindowAxis{}, axis_of(40, 4, 3, 2, 2, 1)},
           PoolingCase{300, axis_of(2, 2), axis_of(2, 2)},
           // As ceil_mode has it: the last windows go past data and padding.
           PoolingCase{2, {7, 4, 3, 2, 1, 0, 0}, {6, 3, 3, 2, 1, 1, 0}},
       }) {
    EXPECT_LE(worst_ratio<T>(PoolingKind::kMax, c), 1.0);
    EXPECT_LE(worst_ratio<T>(PoolingKind::kMax, c, true), 1.0);
    EXPECT_LE(worst_ratio<T>(PoolingKind::kAverage, c), 1.0);
    EXPECT_LE(worst_ratio<T>(PoolingKind::kAverageWithPadding, c), 1.0);
  }
  // A window of padding alone: -infinity; 0 / 0; zeros.
  const PoolingCase padding{2, WindowAxis{}, axis_of(3, 2, 2, 1, 2, 2)};
  EXPECT_LE(worst_ratio<T>(PoolingKind::kMax, padding), 1.0);
  EXPECT_LE(worst_ratio<T>(PoolingKind::kAverage, padding), 1.0);
  EXPECT_LE(worst_ratio<T>(PoolingKind::kAverageWithPadding, padding), 1.0);
}

TEST(WindowSchedules, FewFiltersAndPools) {
  for (const testing::Schedule& schedule : testing::schedules(testing::schedule_count(4))) {
    EXPECT_LE(worst_ratio<float>({2, 5, 5, 5, axis_of(8, 3, 1, 1, 1, 1), axis_of(9, 3, 2, 1, 1, 1), true}, schedule),
              1.0);
    EXPECT_LE(worst_ratio<float>(PoolingKind::kAverage, {3, axis_of(7, 3, 2), axis_of(9, 3, 2)}, false, schedule), 1.0);
  }
}

TEST(WindowRequests, WhatIsRefused) {
  Buffer<float> data(2 * 4 * 36, Access::kReadOnly, "data"), weight(8 * 4 * 9, Access::kReadOnly, "weight");
  Buffer<float> result(2 * 8 * 16, Access::kWriteFirst, "result"), pooled(2 * 4 * 16, Access::kWriteFirst, "pooled");
  Convolution good;
  good.batch = 2, good.channels = 4, good.filters = 8;
  good.axes[0] = good.axes[1] = axis_of(6, 3);
  good.data = data.data(), good.weight = weight.data(), good.result = result.data();
  testing::use({});
  const auto status_of = [&](const auto& change) {
    Convolution request = good;
    change(request);
    return convolution(request, nullptr);
  };
  EXPECT_EQ(status_of([](Convolution&) {}), Status::kOk);
  EXPECT_EQ(status_of([](Convolution& r) { r.dtype = Dtype::kInt8; }), Status::kUnsupportedDtype);
  EXPECT_EQ(status_of([](Convolution& r) { r.batch = -1; }), Status::kBadShape);
  EXPECT_EQ(status_of([](Convolution& r) { r.axes[1].out = -1; }), Status::kBadShape);
  EXPECT_EQ(status_of([](Convolution& r) { r.axes[0].in = kWindowLimit; }), Status::kBadShape);
  EXPECT_EQ(status_of([](Convolution& r) { r.axes[0].dilation = kWindowLimit / 2; }), Status::kBadShape);
  EXPECT_EQ(status_of([](Convolution& r) { r.axes[0].out = kWindowLimit + 1; }), Status::kBadShape);
  EXPECT_EQ(status_of([](Convolution& r) { r.batch = r.filters = std::int64_t{1} << 32; }), Status::kBadShape);
  EXPECT_EQ(status_of([](Convolution& r) { r.channels = std::int64_t{1} << 28; }), Status::kBadShape);
  EXPECT_EQ(status_of([](Convolution& r) { r.axes[0].stride = 0; }), Status::kBadParameter);
  EXPECT_EQ(status_of([](Convolution& r) { r.axes[1].begin = -1; }), Status::kBadParameter);
  EXPECT_EQ(status_of([](Convolution& r) { r.groups = 0; }), Status::kBadParameter);
  EXPECT_EQ(status_of([](Convolution& r) { r.groups = 3; }), Status::kBadParameter);
  EXPECT_EQ(status_of([](Convolution& r) { r.weight = nullptr; }), Status::kNullPointer);
  EXPECT_EQ(status_of([&](Convolution& r) { r.data = reinterpret_cast<char*>(data.data()) + 1; }), Status::kMisaligned);
  EXPECT_EQ(status_of([&](Convolution& r) { r.result = data.data(); }), Status::kOverlap);
  EXPECT_EQ(status_of([&](Convolution& r) { r.bias = result.data() + 3; }), Status::kOverlap);
  EXPECT_EQ(status_of([](Convolution& r) { r.batch = 0, r.data = r.weight = r.result = nullptr; }), Status::kOk);
  Pooling pool;
  pool.images = 8;
  pool.axes[0] = pool.axes[1] = axis_of(6, 3);
  pool.data = data.data(), pool.result = pooled.data();
  const auto pool_status = [&](const auto& change) {
    Pooling request = pool;
    change(request);
    return pooling(request, nullptr);
  };
  EXPECT_EQ(pool_status([](Pooling&) {}), Status::kOk);
  EXPECT_EQ(pool_status([](Pooling& r) { r.dtype = Dtype::kInt8; }), Status::kUnsupportedDtype);
  EXPECT_EQ(pool_status([](Pooling& r) { r.images = -1; }), Status::kBadShape);
  EXPECT_EQ(pool_status([](Pooling& r) { r.axes[0].stride = 0; }), Status::kBadParameter);
  EXPECT_EQ(pool_status([](Pooling& r) { r.result = nullptr; }), Status::kNullPointer);
  EXPECT_EQ(pool_status([&](Pooling& r) { r.result = data.data(); }), Status::kOverlap);
  EXPECT_EQ(pool_status([](Pooling& r) { r.images = 0, r.data = r.result = nullptr; }), Status::kOk);
  EXPECT_TRUE(testing::clean());
}

}  // namespace
}  // namespace tensorlint::kernels
