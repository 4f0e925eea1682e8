// Attention against softmax and sums in long double: widths and lengths at the edges of tiles, layouts of operands and
// results, masks, causal orders, queries that see nothing; and what requests are refused.

#include "kernels/attention/attention.h"

#include <algorithm>
#include <functional>
#include <memory>

#include "tests/kernels/testing.h"

namespace tensorlint::kernels {
namespace {

using testing::Access;
using testing::Buffer;

/// Rows of `columns` elements, `row` apart, the matrices of the stack after each other; `turned`: columns of rows.
struct Layout {
  bool turned = false;
  std::int64_t gap = 0;   // elements between rows
  bool shared = false;    // one matrix for the whole stack
  std::size_t shift = 0;  // elements past a 16-byte boundary
};

struct Case {
  std::int64_t queries = 1, keys = 1, width = 1, value_width = 1, stack = 1;
  Layout query = {}, key = {}, value = {};
  AttentionMask mask = AttentionMask::kNone;
  bool mask_row = true, mask_column = true;  // whether it differs along them
  double fill = -std::numeric_limits<double>::infinity();
  double scale = 0.3;
  bool causal = false;
  std::int64_t offset = 0;
  UndefinedRows undefined = UndefinedRows::kNotANumber;
  double spread = 2;
  std::int64_t result_gap = 0;
  bool result_interleaved = false;                               // [queries, stack, value_width]
  std::function<double(std::int64_t, std::int64_t)> added = {};  // the mask's element of a query and key
};

MatrixOperand strides_of(const Layout& layout, std::int64_t rows, std::int64_t columns) {
  MatrixOperand operand;
  operand.row = layout.turned ? 1 : columns + layout.gap;
  operand.column = layout.turned ? rows + layout.gap : 1;
  operand.batch[0] = layout.shared ? 0 : layout.turned ? columns * operand.column : rows * operand.row;
  return operand;
}

template <typename T>
std::unique_ptr<Buffer<T>> filled(const Layout& layout, const MatrixOperand& operand, std::int64_t rows,
                                  std::int64_t columns, std::int64_t stack, double spread, std::uint64_t seed,
                                  const char* name) {
  // Up to the last element that is read.
  const bool empty = rows * columns == 0;
  const std::int64_t elements =
      empty ? 0 : (stack - 1) * operand.batch[0] + (rows - 1) * operand.row + (columns - 1) * operand.column + 1;
  auto buffer = std::make_unique<Buffer<T>>(static_cast<std::size_t>(elements), Access::kReadOnly, name, layout.shift);
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < buffer->size(); ++i)
    (*buffer)[i] = testing::element_from<T>((static_cast<double>(random() >> 11) * 0x1p-53 - 0.5) * spread);
  return buffer;
}

/// The largest error over what attention.h allows.
template <typename T>
double worst_ratio(const Case& c, const testing::Schedule& schedule = {}, std::vector<T>* bits = nullptr) {
  Attention request;
  request.dtype = Traits<T>::kDtype;
  request.queries = c.queries, request.keys = c.keys, request.width = c.width, request.value_width = c.value_width;
  request.batch_rank = 1, request.batch[0] = c.stack;
  request.query = strides_of(c.query, c.queries, c.width);
  request.key = strides_of(c.key, c.keys, c.width);
  request.value = strides_of(c.value, c.keys, c.value_width);
  const auto query = filled<T>(c.query, request.query, c.queries, c.width, c.stack, c.spread, 1, "query");
  const auto key = filled<T>(c.key, request.key, c.keys, c.width, c.stack, c.spread, 2, "key");
  const auto value = filled<T>(c.value, request.value, c.keys, c.value_width, c.stack, 2, 3, "value");
  request.query.data = query->data(), request.key.data = key->data(), request.value.data = value->data();
  request.mask_kind = c.mask;
  request.mask.row = c.mask_row ? (c.mask_column ? c.keys : 1) : 0;
  request.mask.column = c.mask_column ? 1 : 0;
  const auto mask_elements = static_cast<std::size_t>((c.mask_row ? c.queries : 1) * (c.mask_column ? c.keys : 1));
  Buffer<T> added(mask_elements, Access::kReadOnly, "mask");
  Buffer<std::uint8_t> flags(mask_elements, Access::kReadOnly, "mask");
  for (std::size_t i = 0; i < mask_elements; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const double element = c.added ? c.added(c.mask_column ? at / c.keys : at, c.mask_column ? at % c.keys : 0)
                                   : static_cast<double>(i * 7 % 13) / 4 - 1.5;
    added[i] = testing::element_from<T>(element);
    flags[i] = static_cast<std::uint8_t>(i * 5 % 3 == 0 ? 0 : i % 2 + 1);
  }
  if (c.mask == AttentionMask::kAdded) request.mask.data = added.data();
  if (c.mask == AttentionMask::kKeeps || c.mask == AttentionMask::kDrops) request.mask.data = flags.data();
  request.fill = c.fill, request.scale = c.scale;
  request.causal = c.causal, request.causal_offset = c.offset, request.undefined = c.undefined;
  request.result_row = c.value_width * (c.result_interleaved ? c.stack : 1) + c.result_gap;
  request.result_batch[0] = c.result_interleaved ? c.value_width : c.queries * request.result_row;
  const std::int64_t results =
      (c.stack - 1) * request.result_batch[0] + (c.queries - 1) * request.result_row + c.value_width;
  Buffer<T> result(static_cast<std::size_t>(results), Access::kWriteFirst, "result");
  request.result = result.data();
  testing::use(schedule);
  EXPECT_EQ(attention(request, nullptr), Status::kOk);
  EXPECT_TRUE(testing::clean());
  if (bits != nullptr) bits->clear();

  const auto element = [](const MatrixOperand& operand, std::int64_t matrix, std::int64_t row, std::int64_t column) {
    const auto* const data = static_cast<const T*>(operand.data);
    return static_cast<long double>(
        testing::value_of(data[matrix * operand.batch[0] + row * operand.row + column * operand.column]));
  };
  constexpr long double kInfinite = std::numeric_limits<long double>::infinity();
  const long double u = 0x1p-24L;
  double worst = 0;
  std::vector<long double> scores(static_cast<std::size_t>(c.keys)), errors(scores.size());
  for (std::int64_t matrix = 0; matrix < c.stack; ++matrix) {
    for (std::int64_t i = 0; i < c.queries; ++i) {
      long double largest = -kInfinite, slack = 0;
      for (std::int64_t j = 0; j < c.keys; ++j) {
        long double sum = 0, magnitude = 0;
        for (std::int64_t k = 0; k < c.width; ++k) {
          const long double product = element(request.query, matrix, i, k) * element(request.key, matrix, j, k);
          sum += product;
          magnitude += std::fabs(product);
        }
        long double score = sum * c.scale;
        long double error = static_cast<long double>(c.width + 2) * u * magnitude * std::fabs(c.scale);
        const auto at = static_cast<std::size_t>(i * request.mask.row + j * request.mask.column);
        if (c.mask == AttentionMask::kAdded) {
          score += testing::value_of(added[at]);
          if (std::isfinite(score)) error += u * std::fabs(score);
        } else if (c.mask != AttentionMask::kNone) {
          if ((flags[at] != 0) == (c.mask == AttentionMask::kDrops)) score = c.fill, error = 0;
        }
        if (c.causal && j > i + c.offset) score = -kInfinite, error = 0;
        scores[static_cast<std::size_t>(j)] = score;
        errors[static_cast<std::size_t>(j)] = error;
        largest = std::isnan(score) ? largest : std::max(largest, score);
        if (std::isfinite(score)) slack = std::max(slack, error);
      }
      long double sum = 0, flushed = 0;
      for (std::int64_t j = 0; j < c.keys; ++j) {
        long double& score = scores[static_cast<std::size_t>(j)];
        const long double distance = score - largest;
        score = largest == -kInfinite && !std::isnan(score) ? 0 : std::exp(distance);
        // Each of the two exponents of a weight, the largest score's error beside its own, and a rescaling a step.
        errors[static_cast<std::size_t>(j)] += slack + (std::isfinite(distance) ? 3 * u * std::fabs(distance) : 0) +
                                               8 * u * static_cast<long double>(c.keys / 64 + 2);
        sum += score;
        if (score > 0) flushed += static_cast<long double>(testing::flushed_exponential<T>());
      }
      const bool without = largest == -kInfinite && sum == 0;
      for (std::int64_t j = 0; j < c.value_width; ++j) {
        long double want = 0, bound = 0, magnitude = 0, mixed = 0;
        for (std::int64_t k = 0; k < c.keys; ++k) {
          const long double weight = scores[static_cast<std::size_t>(k)], v = element(request.value, matrix, k, j);
          want += weight * v;
          magnitude += weight * std::fabs(v);
          bound += weight * std::fabs(v) * errors[static_cast<std::size_t>(k)];
          mixed += weight * errors[static_cast<std::size_t>(k)];
        }
        const auto keys = static_cast<long double>(c.keys);
        bound = (bound + magnitude * (mixed / sum + (2 * keys + 16) * u)) / sum + flushed;
        want /= sum;
        if (c.keys == 0 || (c.undefined == UndefinedRows::kZero && !std::isfinite(want)) ||
            (c.undefined == UndefinedRows::kZeroWithoutKeys && without))
          want = 0, bound = 0;
        bound += 1.01L * testing::unit_roundoff<T>() * std::fabs(want) + testing::smallest_subnormal<T>();
        const T got = result[static_cast<std::size_t>(matrix * request.result_batch[0] + i * request.result_row + j)];
        if (bits != nullptr) bits->push_back(got);
        worst = std::max(worst, testing::error_ratio(testing::value_of(got), static_cast<double>(want),
                                                     static_cast<double>(bound), testing::largest<T>()));
      }
    }
  }
  return worst;
}

template <typename T>
class Attentions : public ::testing::Test {};
using Elements = ::testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(Attentions, Elements);

TYPED_TEST(Attentions, EdgesOfTiles) {
  using T = TypeParam;
  for (const std::int64_t queries : {1, 5, 65})
    for (const std::int64_t keys : {1, 3, 64, 67})
      EXPECT_LE(worst_ratio<T>({.queries = queries, .keys = keys, .width = 9, .value_width = 7}), 1.0)
          << queries << " " << keys;
  for (const std::int64_t width : {1, 8, 33, 64, 65, 128, 130, 256})
    EXPECT_LE(worst_ratio<T>({.queries = 3, .keys = 70, .width = width, .value_width = 4}), 1.0) << width;
  for (const std::int64_t width : {1, 4, 30, 64, 66, 128, 129, 256})
    EXPECT_LE(worst_ratio<T>({.queries = 3, .keys = 70, .width = 4, .value_width = width}), 1.0) << width;
  EXPECT_LE(worst_ratio<T>({.queries = 4, .keys = 5, .width = 0, .value_width = 3}), 1.0);
  EXPECT_EQ(worst_ratio<T>({.queries = 4, .keys = 0, .width = 5, .value_width = 3}), 0.0);
}

TYPED_TEST(Attentions, LayoutsOfOperandsAndResults) {
  using T = TypeParam;
  const Case plain = {.queries = 19, .keys = 70, .width = 16, .value_width = 24, .stack = 3};
  for (const Layout& layout : {Layout{.turned = true}, Layout{.gap = 8}, Layout{.gap = 3},
                               Layout{.turned = true, .gap = 2}, Layout{.shared = true}, Layout{.shift = 1}}) {
    for (const int operand : {0, 1, 2}) {
      Case c = plain;
      (operand == 0 ? c.query : operand == 1 ? c.key : c.value) = layout;
      EXPECT_LE(worst_ratio<T>(c), 1.0) << operand;
    }
  }
  Case c = plain;
  c.result_interleaved = true;
  EXPECT_LE(worst_ratio<T>(c), 1.0);
  c.result_gap = 5;
  EXPECT_LE(worst_ratio<T>(c), 1.0);
  c = plain;
  c.result_gap = 8;
  c.stack = 1;
  EXPECT_LE(worst_ratio<T>(c), 1.0);
}

TYPED_TEST(Attentions, Masks) {
  using T = TypeParam;
  for (const AttentionMask mask : {AttentionMask::kAdded, AttentionMask::kKeeps, AttentionMask::kDrops}) {
    for (const double fill : {-std::numeric_limits<double>::infinity(), -10000.0}) {
      const Case c = {.queries = 21, .keys = 69, .width = 8, .value_width = 5, .stack = 2, .mask = mask, .fill = fill};
      EXPECT_LE(worst_ratio<T>(c), 1.0);
      for (const bool along : {false, true}) {
        Case stretched = c;
        (along ? stretched.mask_row : stretched.mask_column) = false;
        stretched.undefined = UndefinedRows::kZero;
        EXPECT_LE(worst_ratio<T>(stretched), 1.0) << along;
      }
    }
  }
}

TYPED_TEST(Attentions, CausalOrders) {
  using T = TypeParam;
  for (const std::int64_t offset : {0, 3, -4, 64, -70, 200})
    for (const UndefinedRows undefined :
         {UndefinedRows::kNotANumber, UndefinedRows::kZeroWithoutKeys, UndefinedRows::kZero})
      EXPECT_LE(worst_ratio<T>({.queries = 70,
                                .keys = 131,
                                .width = 8,
                                .value_width = 4,
                                .causal = true,
                                .offset = offset,
                                .undefined = undefined}),
                1.0)
          << offset;
}

TYPED_TEST(Attentions, QueriesThatSeeNothingAndScoresThatAreNoNumbers) {
  using T = TypeParam;
  const double infinite = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const UndefinedRows undefined :
       {UndefinedRows::kNotANumber, UndefinedRows::kZeroWithoutKeys, UndefinedRows::kZero}) {
    Case c = {.queries = 6, .keys = 130, .width = 4, .value_width = 3, .mask = AttentionMask::kAdded};
    c.undefined = undefined;
    c.added = [&](std::int64_t query, std::int64_t key) {
      switch (query) {
        case 0:
          return -infinite;  // nothing
        case 1:
          return key == 129 ? 0.0 : -infinite;  // one key, in the last step
        case 2:
          return key < 64 ? -infinite : 0.5;  // nothing in the first step
        case 3:
          return key == 70 ? nan : 0.0;
        case 4:
          return key == 70 ? infinite : 0.0;
        default:
          return key < 64 ? 1.0 : -infinite;
      }
    };
    EXPECT_LE(worst_ratio<T>(c), 1.0);
  }
}

TYPED_TEST(Attentions, ScoresThatRiseAndFallFarApart) {
  using T = TypeParam;
  for (const double slope : {-3.0, 3.0, 200.0}) {
    Case c = {.queries = 3, .keys = 200, .width = 4, .value_width = 5, .mask = AttentionMask::kAdded};
    c.added = [&](std::int64_t query, std::int64_t key) { return static_cast<double>((key + query) / 16) * slope; };
    EXPECT_LE(worst_ratio<T>(c), 1.0) << slope;
    c.added = {};
    c.scale = slope;
    EXPECT_LE(worst_ratio<T>(c), 1.0) << slope;
  }
}

TYPED_TEST(Attentions, EveryScheduleGivesTheSameBits) {
  using T = TypeParam;
  std::vector<T> first, bits;
  for (const testing::Schedule& schedule : testing::schedules(testing::schedule_count(4))) {
    EXPECT_LE(worst_ratio<T>({.queries = 66, .keys = 67, .width = 12, .value_width = 70, .stack = 2}, schedule, &bits),
              1.0);
    if (first.empty()) first = bits;
    EXPECT_EQ(std::memcmp(first.data(), bits.data(), bits.size() * sizeof(T)), 0);
  }
}

TEST(AttentionRequests, WhatIsRefused) {
  Buffer<float> query(32, Access::kReadOnly, "query"), key(40, Access::kReadOnly, "key"),
      value(20, Access::kReadOnly, "value"), mask(40, Access::kReadOnly, "mask"),
      result(16, Access::kWriteFirst, "result");
  Attention good;
  good.queries = 8, good.keys = 10, good.width = 4, good.value_width = 2;
  good.query = {query.data(), 4, 1, {}}, good.key = {key.data(), 4, 1, {}}, good.value = {value.data(), 2, 1, {}};
  good.result = result.data(), good.result_row = 2;
  testing::use({});
  const auto status_of = [&](const auto& change) {
    Attention request = good;
    change(request);
    return attention(request, nullptr);
  };
  EXPECT_EQ(status_of([](Attention&) {}), Status::kOk);
  EXPECT_EQ(status_of([](Attention& r) { r.dtype = Dtype::kFloat64; }), Status::kUnsupportedDtype);
  EXPECT_EQ(status_of([](Attention& r) { r.dtype = Dtype::kInt32; }), Status::kUnsupportedDtype);
  EXPECT_EQ(status_of([](Attention& r) { r.width = 257; }), Status::kBadShape);
  EXPECT_EQ(status_of([](Attention& r) { r.value_width = 257; }), Status::kBadShape);
  EXPECT_EQ(status_of([](Attention& r) { r.queries = -1; }), Status::kBadShape);
  EXPECT_EQ(status_of([](Attention& r) { r.queries = r.keys = std::int64_t{1} << 32; }), Status::kBadShape);
  EXPECT_EQ(status_of([](Attention& r) { r.batch_rank = 1, r.batch[0] = -1; }), Status::kBadShape);
  EXPECT_EQ(status_of([](Attention& r) { r.key.row = std::int64_t{1} << 62; }), Status::kBadShape);
  EXPECT_EQ(status_of([](Attention& r) { r.batch_rank = kMaxBatchAxes + 1; }), Status::kBadParameter);
  EXPECT_EQ(status_of([](Attention& r) { r.query.row = -1; }), Status::kBadParameter);
  EXPECT_EQ(status_of([](Attention& r) { r.result_row = 1; }), Status::kBadParameter);
  EXPECT_EQ(status_of([](Attention& r) { r.batch_rank = 1, r.batch[0] = 2; }), Status::kBadParameter);
  EXPECT_EQ(status_of([](Attention& r) { r.causal_offset = std::int64_t{1} << 41; }), Status::kBadParameter);
  EXPECT_EQ(status_of([](Attention& r) { r.query.data = nullptr; }), Status::kNullPointer);
  EXPECT_EQ(status_of([](Attention& r) { r.result = nullptr; }), Status::kNullPointer);
  EXPECT_EQ(status_of([](Attention& r) { r.mask_kind = AttentionMask::kAdded; }), Status::kNullPointer);
  EXPECT_EQ(status_of([&](Attention& r) { r.key.data = reinterpret_cast<char*>(key.data()) + 2; }),
            Status::kMisaligned);
  EXPECT_EQ(status_of([&](Attention& r) { r.result = value.data(); }), Status::kOverlap);
  EXPECT_EQ(status_of([&](Attention& r) {
              r.mask_kind = AttentionMask::kAdded, r.mask = {mask.data(), 0, 1, {}}, r.result = mask.data() + 9;
            }),
            Status::kOverlap);
  EXPECT_EQ(status_of([](Attention& r) { r.queries = 0, r.query.data = r.result = nullptr; }), Status::kOk);
  EXPECT_EQ(status_of([](Attention& r) { r.value_width = 0, r.result = nullptr; }), Status::kOk);
  EXPECT_TRUE(testing::clean());
}

}  // namespace
}  // namespace tensorlint::kernels
