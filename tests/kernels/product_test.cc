// Matrix products against float64 sums: shapes at the edges of tiles, vectors and steps, strides of all kinds, every
// dtype; and what requests are refused.

#include "kernels/product/product.h"

#include <algorithm>

#include "kernels/product/dispatch.h"
#include "tests/kernels/testing.h"

namespace tensorlint::kernels {
namespace {

using testing::Access;
using testing::Buffer;

/// One product of a test: operands row-major, or turned, stacks as asked.
struct Case {
  std::int64_t m = 1, n = 1, k = 1;
  std::vector<std::int64_t> batch = {};
  bool turn_a = false, turn_b = false;
  unsigned repeats_a = 0, repeats_b = 0;  // a bit a batch axis: the operand is the same along it
  enum class Added { kNone, kScalar, kRow, kColumn, kMatrix } added = Added::kNone;
  double alpha = 1, beta = 1;
  std::size_t shift = 0;  // elements by which operands and result miss a 16-byte boundary
  bool apart = false;     // neighbours of a row are two elements apart
};

std::int64_t count(const std::vector<std::int64_t>& extents) {
  std::int64_t all = 1;
  for (const std::int64_t extent : extents) all *= extent;
  return all;
}

template <typename T>
void fill(Buffer<T>& data, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = testing::element_from<T>((static_cast<double>(random() >> 11) * 0x1p-53 - 0.4) * 4);
}

/// Lays `operand` out as the case says; gives how many elements it has.
std::size_t lay_out(const Case& c, std::int64_t rows, std::int64_t columns, bool turned, unsigned repeats,
                    MatrixOperand* operand) {
  const std::int64_t step = c.apart ? 2 : 1;
  operand->row = turned ? step : columns * step;
  operand->column = turned ? rows * step : step;
  std::int64_t size = rows * columns * step;
  for (std::size_t axis = c.batch.size(); axis-- > 0;) {
    if ((repeats >> axis & 1U) != 0) continue;
    operand->batch[axis] = size;
    size *= c.batch[axis];
  }
  return static_cast<std::size_t>(size);
}

std::int64_t offset_of(const Case& c, const MatrixOperand& operand, std::int64_t matrix) {
  std::int64_t offset = 0;
  for (std::size_t axis = c.batch.size(); axis-- > 0; matrix /= c.batch[axis])
    offset += matrix % c.batch[axis] * operand.batch[axis];
  return offset;
}

/// Runs the case; the largest error over its bound: k fused steps, two roundings of alpha and the addend, the result's.
template <typename T>
double worst_ratio(const Case& c, const testing::Schedule& schedule = {}, std::vector<T>* bits = nullptr) {
  MatrixProduct request;
  request.dtype = Traits<T>::kDtype;
  request.m = c.m, request.n = c.n, request.k = c.k;
  request.batch_rank = static_cast<int>(c.batch.size());
  std::copy(c.batch.begin(), c.batch.end(), request.batch);
  request.alpha = c.alpha, request.beta = c.beta;
  Buffer<T> a(lay_out(c, c.m, c.k, c.turn_a, c.repeats_a, &request.a), Access::kReadOnly, "a", c.shift);
  Buffer<T> b(lay_out(c, c.k, c.n, c.turn_b, c.repeats_b, &request.b), Access::kReadOnly, "b", c.shift);
  using Added = Case::Added;
  request.addend.row = c.added == Added::kColumn ? 1 : c.added == Added::kMatrix ? c.n : 0;
  request.addend.column = c.added == Added::kRow || c.added == Added::kMatrix ? 1 : 0;
  const std::int64_t addends =
      1 + std::max<std::int64_t>((c.m - 1) * request.addend.row + (c.n - 1) * request.addend.column, 0);
  Buffer<T> added(static_cast<std::size_t>(addends), Access::kReadOnly, "addend");
  fill(a, 1);
  fill(b, 2);
  fill(added, 3);
  const std::int64_t stack = count(c.batch);
  Buffer<T> result(static_cast<std::size_t>(stack * c.m * c.n), Access::kWriteFirst, "result", c.shift);
  request.a.data = a.data(), request.b.data = b.data(), request.result = result.data();
  if (c.added != Added::kNone) request.addend.data = added.data();
  testing::use(schedule);
  EXPECT_EQ(matrix_product(request, nullptr), Status::kOk);
  EXPECT_TRUE(testing::clean());
  const double u = std::is_same_v<T, double> ? 0x1p-53 : 0x1p-24;
  double worst = 0;
  for (std::int64_t matrix = 0; matrix < stack; ++matrix) {
    const std::int64_t a_first = offset_of(c, request.a, matrix), b_first = offset_of(c, request.b, matrix);
    for (std::int64_t i = 0; i < c.m; ++i) {
      for (std::int64_t j = 0; j < c.n; ++j) {
        long double sum = 0, size = 0;
        for (std::int64_t p = 0; p < c.k; ++p) {
          const auto left = static_cast<std::size_t>(a_first + i * request.a.row + p * request.a.column);
          const auto right = static_cast<std::size_t>(b_first + p * request.b.row + j * request.b.column);
          const long double term = static_cast<long double>(testing::value_of(a[left])) * testing::value_of(b[right]);
          sum += term;
          size += std::fabs(term);
        }
        double want = c.alpha * static_cast<double>(sum);
        double bound = std::fabs(c.alpha) * static_cast<double>(size) * static_cast<double>(c.k) * u;
        if (c.added != Added::kNone && c.beta != 0) {
          const auto at = static_cast<std::size_t>(i * request.addend.row + j * request.addend.column);
          const double addend = c.beta * testing::value_of(added[at]);
          bound += 2 * u * (std::fabs(want) + std::fabs(addend));
          want += addend;
        }
        bound += testing::unit_roundoff<T>() * std::fabs(want) * 1.01 + testing::smallest_subnormal<T>() +
                 (c.alpha != 1 ? u * std::fabs(want) : 0);
        const T got = result[static_cast<std::size_t>((matrix * c.m + i) * c.n + j)];
        worst = std::max(worst, testing::error_ratio(testing::value_of(got), want, bound, testing::largest<T>()));
      }
    }
  }
  if (bits != nullptr) bits->assign(result.data(), result.data() + result.size());
  return worst;
}

template <typename T>
class Products : public ::testing::Test {};
using Elements = ::testing::Types<float, double, Half, BFloat16>;
TYPED_TEST_SUITE(Products, Elements);

TYPED_TEST(Products, EdgesOfTilesStepsAndVectors) {
  using T = TypeParam;
  for (const auto& [m, n, k] : {std::array{1, 1, 1},
                                {3, 5, 7},
                                {64, 64, 16},
                                {65, 63, 33},
                                {1, 130, 31},
                                {129, 1, 17},
                                {8, 72, 40},
                                {66, 68, 0},
                                {60, 4, 64}}) {
    const Case c{.m = m, .n = n, .k = k};
    EXPECT_LE(worst_ratio<T>(c), 1.0) << m << " " << n << " " << k;
  }
}

TYPED_TEST(Products, TurnedOperandsAndOddAddresses) {
  using T = TypeParam;
  for (const bool turn_a : {false, true})
    for (const bool turn_b : {false, true})
      for (const std::size_t shift : {0U, 1U}) {
        EXPECT_LE(worst_ratio<T>({.m = 72, .n = 40, .k = 48, .turn_a = turn_a, .turn_b = turn_b, .shift = shift}), 1.0);
        EXPECT_LE(worst_ratio<T>({.m = 67, .n = 35, .k = 19, .turn_a = turn_a, .turn_b = turn_b, .shift = shift}), 1.0);
        EXPECT_LE(worst_ratio<T>(
                      {.m = 16, .n = 24, .k = 8, .turn_a = turn_a, .turn_b = turn_b, .shift = shift, .apart = true}),
                  1.0);
      }
}

TYPED_TEST(Products, StacksAndWhatTheyShare) {
  using T = TypeParam;
  EXPECT_LE(worst_ratio<T>({.m = 5, .n = 6, .k = 7, .batch = {2, 3}}), 1.0);
  // Rows of all matrices with one b are one matrix, unless a is turned.
  EXPECT_LE(worst_ratio<T>({.m = 40, .n = 6, .k = 8, .batch = {3, 2}, .repeats_b = 3}), 1.0);
  EXPECT_LE(worst_ratio<T>({.m = 5, .n = 6, .k = 7, .batch = {3, 2}, .turn_a = true, .repeats_b = 3}), 1.0);
  // Along one axis a is shared, along another one b.
  EXPECT_LE(worst_ratio<T>({.m = 5, .n = 6, .k = 7, .batch = {2, 1, 3, 2}, .repeats_a = 1, .repeats_b = 4}), 1.0);
  EXPECT_LE(worst_ratio<T>({.m = 5, .n = 6, .k = 7, .batch = {2, 3}, .repeats_a = 3}), 1.0);
}

TYPED_TEST(Products, AlphaBetaAndAddends) {
  using T = TypeParam;
  using Added = Case::Added;
  for (const Added added : {Added::kNone, Added::kScalar, Added::kRow, Added::kColumn, Added::kMatrix}) {
    EXPECT_LE(worst_ratio<T>({.m = 6, .n = 9, .k = 5, .added = added}), 1.0);
    EXPECT_LE(worst_ratio<T>({.m = 6, .n = 8, .k = 5, .added = added, .alpha = 0.5, .beta = -2.25}), 1.0);
  }
  EXPECT_LE(worst_ratio<T>({.m = 6, .n = 8, .k = 0, .added = Added::kRow, .beta = 3}), 1.0);
  EXPECT_LE(worst_ratio<T>({.m = 6, .n = 8, .k = 3, .added = Added::kRow, .beta = 0}), 1.0);
}

TYPED_TEST(Products, EveryScheduleGivesTheSameBits) {
  using T = TypeParam;
  std::vector<T> first, bits;
  for (const testing::Schedule& schedule : testing::schedules(testing::schedule_count(6))) {
    EXPECT_LE(worst_ratio<T>({.m = 66, .n = 65, .k = 35}, schedule, &bits), 1.0);
    if (first.empty()) first = bits;
    EXPECT_EQ(std::memcmp(first.data(), bits.data(), bits.size() * sizeof(T)), 0);
  }
}

/// The element type of the first matrix of a stack that is large enough for tiles of 128, and of that matrix alone.
template <typename T>
void expect_same_bits_in_large_tiles() {
  ProductPlan plan;
  ASSERT_EQ(plan_product(130, 68, 66, Traits<T>::kDtype, &plan), Status::kOk);
  EXPECT_EQ(plan.tile, kLargeTile);
  std::vector<T> stack, one;
  EXPECT_LE(worst_ratio<T>({.m = 130, .n = 68, .k = 19, .batch = {66}, .turn_b = true}, {}, &stack), 1.0);
  EXPECT_LE(worst_ratio<T>({.m = 130, .n = 68, .k = 19, .batch = {1}, .turn_b = true}, {}, &one), 1.0);
  EXPECT_EQ(std::memcmp(stack.data(), one.data(), one.size() * sizeof(T)), 0);
}
TEST(LargeTiles, GiveTheBitsOfSmallOnes) {
  expect_same_bits_in_large_tiles<float>();
  expect_same_bits_in_large_tiles<BFloat16>();
  for (const testing::Schedule& schedule : testing::schedules(testing::schedule_count(3)))
    EXPECT_LE(worst_ratio<float>({.m = 65, .n = 68, .k = 19, .batch = {132}, .turn_a = true, .repeats_b = 1}, schedule),
              1.0);
}

TEST(ProductPlans, FoldWhatStepsEvenly) {
  // Four axes, of which the second and third are one for a and b, and the last has one b and rows that go on.
  MatrixProduct request;
  request.m = 4, request.n = 5, request.k = 6;
  request.batch_rank = 5;
  const std::int64_t batch[] = {2, 3, 7, 1, 8};
  std::copy(std::begin(batch), std::end(batch), request.batch);
  request.a = {nullptr, 6, 1, {21 * 8 * 24, 7 * 8 * 24, 8 * 24, 99, 24}};
  request.b = {nullptr, 5, 1, {0, 7 * 30, 30, 99, 0}};
  fold_batch(&request);
  EXPECT_EQ(request.batch_rank, 2);
  EXPECT_EQ(request.batch[0], 2);
  EXPECT_EQ(request.batch[1], 21);
  EXPECT_EQ(request.a.batch[1], 8 * 24);
  EXPECT_EQ(request.b.batch[1], 30);
  EXPECT_EQ(request.m, 32);
  // Rows of b cannot become rows of the result.
  MatrixProduct turned;
  turned.m = turned.n = turned.k = 4;
  turned.batch_rank = 1;
  turned.batch[0] = 3;
  turned.a.row = 1, turned.a.batch[0] = 16;
  fold_batch(&turned);
  EXPECT_EQ(turned.batch_rank, 1);
}

TEST(ProductPlans, CountTiles) {
  ProductPlan plan;
  ASSERT_EQ(plan_product(129, 65, 3, Dtype::kFloat32, &plan), Status::kOk);
  EXPECT_EQ(plan.tile, kSmallTile);
  EXPECT_EQ(plan.tiles, 3 * 3 * 2);
  ASSERT_EQ(plan_product(4096, 4096, 1, Dtype::kFloat16, &plan), Status::kOk);
  EXPECT_EQ(plan.tile, kLargeTile);
  EXPECT_EQ(plan.tiles, 32 * 32);
  ASSERT_EQ(plan_product(4096, 4096, 1, Dtype::kFloat64, &plan), Status::kOk);
  EXPECT_EQ(plan.tile, kSmallTile);
  // More tiles than a grid has blocks: they are walked.
  ASSERT_EQ(plan_product(1, 1, std::int64_t{1} << 40, Dtype::kFloat32, &plan), Status::kOk);
  EXPECT_EQ(plan.tiles, std::int64_t{1} << 40);
  EXPECT_EQ(plan.blocks, 0x7fffffffU);
}

TEST(ProductRequests, WhatIsRefused) {
  Buffer<float> a(64, Access::kReadOnly, "a"), b(64, Access::kReadOnly, "b"), result(64, Access::kWriteFirst, "result");
  MatrixProduct good;
  good.m = good.n = good.k = 8;
  good.a = {a.data(), 8, 1, {}};
  good.b = {b.data(), 8, 1, {}};
  good.result = result.data();
  testing::use({});
  const auto status_of = [&](const auto& change) {
    MatrixProduct request = good;
    change(request);
    return matrix_product(request, nullptr);
  };
  EXPECT_EQ(status_of([](MatrixProduct&) {}), Status::kOk);
  EXPECT_EQ(status_of([](MatrixProduct& r) { r.dtype = Dtype::kInt32; }), Status::kUnsupportedDtype);
  EXPECT_EQ(status_of([](MatrixProduct& r) { r.m = -1; }), Status::kBadShape);
  EXPECT_EQ(status_of([](MatrixProduct& r) { r.m = r.n = std::int64_t{1} << 32; }), Status::kBadShape);
  EXPECT_EQ(status_of([](MatrixProduct& r) { r.a.row = std::int64_t{1} << 62; }), Status::kBadShape);
  EXPECT_EQ(status_of([](MatrixProduct& r) { r.a.row = -8; }), Status::kBadParameter);
  EXPECT_EQ(status_of([](MatrixProduct& r) { r.batch_rank = 7; }), Status::kBadParameter);
  EXPECT_EQ(status_of([](MatrixProduct& r) { r.batch_rank = 1, r.batch[0] = 2, r.b.batch[0] = -1; }),
            Status::kBadParameter);
  EXPECT_EQ(status_of([](MatrixProduct& r) { r.a.data = nullptr; }), Status::kNullPointer);
  EXPECT_EQ(status_of([](MatrixProduct& r) { r.result = nullptr; }), Status::kNullPointer);
  EXPECT_EQ(status_of([&](MatrixProduct& r) { r.b.data = reinterpret_cast<char*>(b.data()) + 2; }),
            Status::kMisaligned);
  EXPECT_EQ(status_of([&](MatrixProduct& r) { r.result = a.data(); }), Status::kOverlap);
  EXPECT_EQ(status_of([&](MatrixProduct& r) { r.addend.data = result.data() + 63; }), Status::kOverlap);
  // Nothing to do, nothing needed; and an addend that does not count may be anything.
  EXPECT_EQ(status_of([](MatrixProduct& r) { r.n = 0, r.a.data = r.b.data = r.result = nullptr; }), Status::kOk);
  EXPECT_EQ(status_of([](MatrixProduct& r) { r.k = 0, r.a.data = r.b.data = nullptr; }), Status::kOk);
  EXPECT_EQ(status_of([&](MatrixProduct& r) { r.addend.data = r.result, r.beta = 0; }), Status::kOk);
  EXPECT_TRUE(testing::clean());
}

}  // namespace
}  // namespace tensorlint::kernels
