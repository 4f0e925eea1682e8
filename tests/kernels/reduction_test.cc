// Reductions on the emulator against float64 (and integer) references, at the edges of vectors, warps, blocks and
// splits.

#include "kernels/reduction/reduction.h"

#include <algorithm>
#include <numeric>

#include "kernels/reduction/plan.h"
#include "tests/kernels/testing.h"

namespace tensorlint::kernels {
namespace {

using testing::Access;
using testing::Buffer;

const char* const kNames[] = {"sum",     "mean",        "max",    "min",    "product", "l1", "l2", "sum of squares",
                              "log sum", "log sum exp", "argmax", "argmin", "any",     "all"};

// Ordinary values, then the inputs that break sums: see `fill`.
enum class Pattern { kOrdinary, kAlternating, kMixedScales, kSpecial, kEqual };

template <typename T>
void fill(Buffer<T>& data, Pattern pattern, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const double big = std::is_same_v<T, Half>         ? 3e4
                     : std::is_same_v<T, Float8E4M3> ? 400
                     : std::is_same_v<T, Float8E5M2> ? 4e4
                                                     : 1e30;
  const double small = std::is_same_v<T, Half> ? 6e-8 : sizeof(T) == 1 ? 0.002 : 1e-30;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const double u = static_cast<double>(random() >> 11) * 0x1p-53;
    double x = 0;
    if constexpr (std::is_integral_v<T>) {
      data[i] = pattern == Pattern::kOrdinary ? static_cast<T>(random())
                : pattern == Pattern::kEqual  ? T{1}
                                              : static_cast<T>(random() % 3);
      continue;
    }
    switch (pattern) {
      case Pattern::kOrdinary:
        x = (u - 0.4) * 4;
        break;
      case Pattern::kAlternating:
        x = i % 2 == 0 ? 3.0 + u : -3.0 - u;
        break;
      case Pattern::kMixedScales:
        x = (random() % 2 == 0 ? big : small) * (u < 0.5 ? -1 : 1);
        break;
      case Pattern::kSpecial:
        x = i % 37 == 5 ? INFINITY : i % 101 == 60 ? NAN : u;
        break;
      case Pattern::kEqual:
        x = 1.0;
        break;
    }
    data[i] = testing::element_from<T>(x);
  }
}

struct Reference {
  double value = 0;
  double bound = 0;
  bool exact = false;
  bool undetermined = false;
};

// Additions between an element and its result, from the plan: the chain of one thread, then the trees.
double sum_depth(const ReductionPlan& plan, int vector_size) {
  if (!plan.by_columns)
    return static_cast<double>(plan.split_length) / plan.lanes + 1 + vector_size + 16 + 24 + plan.splits / 256.0;
  const double levels = std::min(plan.depth, 32U);  // 256 / 8 columns: more of them have more threads
  return static_cast<double>(plan.split_length) / plan.depth + 2 + levels + plan.merge / 32.0 + 24 + plan.splits;
}

template <typename T>
Reference reference(ReductionKind kind, const std::vector<T>& elements, double depth, bool last) {
  Reference r;
  const bool wide_squares = std::is_same_v<T, float> || std::is_same_v<T, BFloat16> || std::is_same_v<T, double>;
  const double u = std::is_same_v<T, double> ? 0x1p-53 : 0x1p-24;
  const double count = static_cast<double>(elements.size());
  long double sum = 0, absolute = 0, squares = 0, product = 1;
  double largest = -INFINITY, smallest = INFINITY;
  std::size_t nonzero = 0;
  bool nan = false;
  for (const T element : elements) {
    const double x = testing::value_of(element);
    sum += x;
    absolute += std::fabs(x);
    squares += static_cast<long double>(x) * x;
    product *= x;
    nan = nan || std::isnan(x);
    largest = std::max(largest, x);
    smallest = std::min(smallest, x);
    nonzero += x != 0 ? 1U : 0U;
  }
  const auto sum_error = static_cast<double>(absolute) * depth * u;
  switch (kind) {
    case ReductionKind::kSum:
      r = {static_cast<double>(sum), sum_error};
      break;
    case ReductionKind::kMean:
      r = {static_cast<double>(sum) / count, sum_error / count + 2 * u * std::fabs(static_cast<double>(sum) / count)};
      break;
    case ReductionKind::kL1:
      r = {static_cast<double>(absolute), sum_error};
      break;
    case ReductionKind::kSumOfSquares: {
      const double unit = wide_squares ? 0x1p-53 : 0x1p-24;
      r = {static_cast<double>(squares), static_cast<double>(squares) * (depth + 1) * unit};
      break;
    }
    case ReductionKind::kL2: {
      const double unit = wide_squares ? 0x1p-53 : 0x1p-24;
      r = {std::sqrt(static_cast<double>(squares)), std::sqrt(static_cast<double>(squares)) * (depth + 3) * unit};
      break;
    }
    case ReductionKind::kLogSum: {
      const double total = static_cast<double>(sum);
      r = {std::log(total),
           total != 0 ? sum_error / std::fabs(total) * 1.1 + 4 * u * std::fabs(std::log(std::fabs(total))) + u : 0};
      r.undetermined = !(sum_error <= 0.5 * std::fabs(total));  // the logarithm of a sum that is all cancellation
      break;
    }
    case ReductionKind::kProduct:
      r = {static_cast<double>(product), std::fabs(static_cast<double>(product)) * (count + depth) * 0x1p-52};
      break;
    case ReductionKind::kMax:
      r = {nan ? NAN : largest, 0, true};
      break;
    case ReductionKind::kMin:
      r = {nan ? NAN : smallest, 0, true};
      break;
    case ReductionKind::kLogSumExp: {
      long double total = 0;
      for (const T element : elements)
        total +=
            std::exp(static_cast<long double>(testing::value_of(element)) - (std::isfinite(largest) ? largest : 0));
      const double value =
          elements.empty() ? -INFINITY : static_cast<double>(std::log(total)) + (std::isfinite(largest) ? largest : 0);
      // Each term: 4 ulp of ex2 and of its argument (below 2^7 where the term counts); then the sum; then the value's
      // own scale.
      r = {nan ? NAN : value, u * (depth + 4 + 128 + 4 * std::fabs(value) + 4 * std::fabs(largest))};
      break;
    }
    case ReductionKind::kArgMax:
    case ReductionKind::kArgMin: {
      std::size_t best = 0;
      const double sign = kind == ReductionKind::kArgMax ? 1 : -1;
      for (std::size_t i = 1; i < elements.size(); ++i) {
        const double x = sign * testing::value_of(elements[i]), y = sign * testing::value_of(elements[best]);
        const bool equal = x == y || (std::isnan(x) && std::isnan(y));
        if (equal ? last : std::isnan(x) || (!std::isnan(y) && x > y)) best = i;
      }
      r = {static_cast<double>(best), 0, true};
      break;
    }
    case ReductionKind::kAny:
      r = {nonzero > 0 ? 1.0 : 0.0, 0, true};
      break;
    case ReductionKind::kAll:
      r = {nonzero == elements.size() ? 1.0 : 0.0, 0, true};
      break;
  }
  return r;
}

// Modulo 2^64, exact; double would not be.
template <typename T>
bool integer_reference(ReductionKind kind, const std::vector<T>& elements, std::int64_t* value) {
  if constexpr (std::is_integral_v<T>) {
    std::uint64_t sum = 0, absolute = 0, squares = 0, product = 1;
    T largest = std::numeric_limits<T>::lowest(), smallest = std::numeric_limits<T>::max();
    for (const T x : elements) {
      const auto wide = static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
      sum += wide;
      absolute += x < 0 ? 0 - wide : wide;
      squares += wide * wide;
      product *= wide;
      largest = std::max(largest, x);
      smallest = std::min(smallest, x);
    }
    switch (kind) {
      case ReductionKind::kSum:
        *value = static_cast<std::int64_t>(sum);
        return true;
      case ReductionKind::kL1:
        *value = static_cast<std::int64_t>(absolute);
        return true;
      case ReductionKind::kSumOfSquares:
        *value = static_cast<std::int64_t>(squares);
        return true;
      case ReductionKind::kProduct:
        *value = static_cast<std::int64_t>(product);
        return true;
      case ReductionKind::kMax:
        *value = largest;
        return true;
      case ReductionKind::kMin:
        *value = smallest;
        return true;
      default:
        return false;
    }
  }
  (void)elements;
  (void)value;
  (void)kind;
  return false;
}

template <typename T, typename Out>
void check_one(ReductionKind kind, const std::vector<std::int64_t>& extents, const std::vector<int>& axes,
               Pattern pattern, const testing::Schedule& schedule, std::size_t shift = 0, bool last = false) {
  const std::int64_t total = std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
  Reduction request;
  request.kind = kind;
  request.dtype = Traits<T>::kDtype;
  request.result_dtype = Traits<Out>::kDtype;
  request.extents = extents.data();
  request.rank = static_cast<int>(extents.size());
  request.axes = axes.data();
  request.axis_count = static_cast<int>(axes.size());
  request.last_of_equals = last;

  FoldedAxes folded;
  ASSERT_EQ(fold_axes(extents.data(), request.rank, axes.data(), request.axis_count, &folded), Status::kOk);
  ReductionPlan plan;
  ReductionPlan unmerged;
  ASSERT_EQ(plan_reduction(folded, Vector<T>::kSize, 16, true, &plan), Status::kOk);
  ASSERT_EQ(plan_reduction(folded, Vector<T>::kSize, 16, false, &unmerged), Status::kOk);

  Buffer<T> input(static_cast<std::size_t>(total), Access::kReadOnly, "input", shift);
  fill(input, pattern, static_cast<std::uint64_t>(total) * 31 + static_cast<std::uint64_t>(kind));
  Buffer<Out> result(static_cast<std::size_t>(folded.results()), Access::kWriteFirst, "result");
  std::size_t bytes = 0;
  ASSERT_EQ(reduction_workspace(request, &bytes), Status::kOk);
  Buffer<std::uint32_t> workspace(bytes / 4, Access::kWriteFirst, "workspace");
  testing::use(schedule);
  ASSERT_EQ(initialize_reduction_workspace(workspace.data(), bytes, nullptr), Status::kOk);
  ASSERT_EQ(reduce(request, input.data(), result.data(), workspace.data(), bytes, nullptr), Status::kOk);
  ASSERT_TRUE(testing::clean()) << kNames[static_cast<int>(kind)];

  // Group the elements by result, in the reduced order: row-major over all axes keeps it.
  const int rank = request.rank;
  std::vector<bool> reduced(static_cast<std::size_t>(rank), false);
  for (const int axis : axes) reduced[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true;
  std::vector<std::vector<T>> groups(static_cast<std::size_t>(folded.results()));
  for (std::int64_t i = 0; i < total; ++i) {
    std::int64_t rest = i, result_index = 0, scale = 1;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const std::int64_t extent = extents[static_cast<std::size_t>(axis)];
      if (!reduced[static_cast<std::size_t>(axis)]) {
        result_index += rest % extent * scale;
        scale *= extent;
      }
      rest /= extent;
    }
    groups[static_cast<std::size_t>(result_index)].push_back(input[static_cast<std::size_t>(i)]);
  }
  const double depth = std::max(sum_depth(plan, Vector<T>::kSize), sum_depth(unmerged, Vector<T>::kSize));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::int64_t exact = 0;
    if (integer_reference(kind, groups[i], &exact)) {
      if constexpr (std::is_integral_v<Out>) {
        ASSERT_EQ(result[i], static_cast<Out>(exact)) << kNames[static_cast<int>(kind)] << " of result " << i;
        continue;
      }
    }
    const Reference want = reference(kind, groups[i], depth, last);
    if (want.undetermined) continue;
    const double got = testing::value_of(result[i]);
    const double bound = want.exact ? 0x1p-1000
                                    : want.bound + std::fabs(want.value) * testing::unit_roundoff<Out>() * 1.01 +
                                          testing::smallest_subnormal<Out>();
    const double ratio = testing::error_ratio(got, want.value, bound, testing::largest<Out>());
    ASSERT_LE(ratio, 1.0) << kNames[static_cast<int>(kind)] << " of " << groups[i].size() << " elements, result " << i
                          << ": got " << got << ", want " << want.value << " within " << bound << ", pattern "
                          << static_cast<int>(pattern);
  }
}

const std::vector<ReductionKind> kRealKinds = {
    ReductionKind::kSum,     ReductionKind::kMean,     ReductionKind::kMax, ReductionKind::kMin,
    ReductionKind::kProduct, ReductionKind::kL1,       ReductionKind::kL2,  ReductionKind::kSumOfSquares,
    ReductionKind::kLogSum,  ReductionKind::kLogSumExp};
const std::vector<ReductionKind> kIntegerKinds = {ReductionKind::kSum, ReductionKind::kMax,
                                                  ReductionKind::kMin, ReductionKind::kProduct,
                                                  ReductionKind::kL1,  ReductionKind::kSumOfSquares};

struct Shape {
  std::vector<std::int64_t> extents;
  std::vector<int> axes;
};

// Lengths at the edges of vectors (2 to 16), warps, blocks and unrolled steps, at most 8 Ki elements.
std::vector<Shape> edge_shapes() {
  std::vector<Shape> shapes;
  for (const std::int64_t n :
       {0, 1, 2, 15, 16, 17, 31, 32, 33, 255, 256, 257, 511, 513, 1023, 1025, 2047, 2049, 4097, 8191})
    shapes.push_back({{n}, {0}});
  for (const std::int64_t n : {1, 3, 8, 33, 127, 129}) shapes.push_back({{9, n}, {1}});
  for (const std::int64_t inner : {2, 3, 16, 31, 33, 48, 255, 257}) shapes.push_back({{7, inner}, {0}});
  shapes.push_back({{31, 131}, {0}});
  shapes.push_back({{3, 13, 129}, {1}});
  shapes.push_back({{3, 2, 7, 131}, {0, 2}});
  for (const std::int64_t length : {0, 1, 31, 33, 257}) shapes.push_back({{length, 16}, {0}});
  shapes.push_back({{3, 5, 4, 6}, {0, 2}});
  shapes.push_back({{3, 5, 4, 6}, {1, 3}});
  shapes.push_back({{2, 3, 2, 3, 2, 17}, {0, 2, 4}});
  shapes.push_back({{5, 1, 16, 3}, {-2}});
  // Columns that fill no whole vectors, many rows: one line of several rows, and some left.
  shapes.push_back({{1061, 3}, {0}});
  shapes.push_back({{3, 1033, 2}, {1}});
  shapes.push_back({{1025, 6}, {0}});
  // Segments of one vector and more, side by side with those of other results: whole tiles, a partial one, groups of
  // kept axes, and what does not come out even.
  shapes.push_back({{9, 16, 49}, {0, 2}});
  shapes.push_back({{2, 80, 17}, {0, 2}});
  shapes.push_back({{3, 5, 16, 33}, {1, 3}});
  shapes.push_back({{5, 3, 2, 16, 16}, {0, 2, 4}});
  shapes.push_back({{7, 5, 37}, {0, 2}});
  // Segments of more than a tile, in whole vectors.
  for (const std::int64_t inner : {1028, 2064, 4112}) shapes.push_back({{3, 2, inner}, {0, 2}});
  shapes.push_back({{0, 4}, {0}});
  shapes.push_back({{4, 0}, {0}});
  shapes.push_back({{}, {}});
  shapes.push_back({{6, 7}, {}});
  return shapes;
}

bool empty_reduction(const Shape& shape) {
  for (const int axis : shape.axes) {
    const std::size_t at = static_cast<std::size_t>(axis < 0 ? axis + static_cast<int>(shape.extents.size()) : axis);
    if (shape.extents[at] == 0) return true;
  }
  return false;
}

template <typename T>
class Real : public ::testing::Test {};
using RealTypes = ::testing::Types<double, float, Half, BFloat16, Float8E4M3, Float8E5M2>;
TYPED_TEST_SUITE(Real, RealTypes);

template <typename T>
using OutOf = std::conditional_t<sizeof(T) == 1, float, T>;

TYPED_TEST(Real, EdgeShapesAgreeWithFloat64) {
  std::size_t turn = 0;
  for (const Shape& shape : edge_shapes()) {
    for (const ReductionKind kind : kRealKinds) {
      // Every third schedule kind in turn, misaligned by one element every other time.
      const testing::Schedule schedule = testing::schedules(3)[turn % 3];
      check_one<TypeParam, OutOf<TypeParam>>(kind, shape.extents, shape.axes, Pattern::kOrdinary, schedule,
                                             turn / 3 % 2);
      if (this->HasFatalFailure()) return;
      ++turn;
    }
    if (!empty_reduction(shape)) {
      for (const bool last : {false, true}) {
        for (const ReductionKind kind : {ReductionKind::kArgMax, ReductionKind::kArgMin}) {
          const Pattern pattern = turn % 2 == 0 ? Pattern::kSpecial : Pattern::kOrdinary;
          check_one<TypeParam, std::int64_t>(kind, shape.extents, shape.axes, pattern,
                                             testing::schedules(3)[static_cast<std::size_t>(turn++ % 3)], 0, last);
        }
      }
    }
    for (const ReductionKind kind : {ReductionKind::kAny, ReductionKind::kAll}) {
      check_one<TypeParam, std::uint8_t>(kind, shape.extents, shape.axes, Pattern::kOrdinary, {});
    }
    if (this->HasFatalFailure()) return;
  }
}

TYPED_TEST(Real, AdversarialValues) {
  const std::vector<Shape> shapes = {{{1031}, {0}}, {{5, 300}, {1}}, {{77, 24}, {0}}, {{4, 13, 9}, {0, 2}}};
  for (const Shape& shape : shapes) {
    for (const Pattern pattern : {Pattern::kAlternating, Pattern::kMixedScales, Pattern::kSpecial, Pattern::kEqual}) {
      for (const ReductionKind kind : kRealKinds) {
        check_one<TypeParam, OutOf<TypeParam>>(kind, shape.extents, shape.axes, pattern, {testing::Order::kRandom, 7});
        if (this->HasFatalFailure()) return;
      }
    }
  }
}

// Several rows, and several sets of columns, that are each cut into splits: a ticket and partials for each of them.
TYPED_TEST(Real, SplitsOfSeveralRowsAndColumns) {
  constexpr std::int64_t kSize = Vector<TypeParam>::kSize;
  const Shape rows = {{3, 4096 * kSize + 5}, {1}};
  const Shape columns = {{3, 4200, 2 * kSize}, {1}};
  const Shape lines = {{700, 3 * kSize, kSize + 1}, {0, 2}};
  for (const ReductionKind kind : {ReductionKind::kSum, ReductionKind::kMax, ReductionKind::kLogSumExp}) {
    check_one<TypeParam, OutOf<TypeParam>>(kind, rows.extents, rows.axes, Pattern::kOrdinary,
                                           {testing::Order::kPriority, 5});
    check_one<TypeParam, OutOf<TypeParam>>(kind, columns.extents, columns.axes, Pattern::kOrdinary,
                                           {testing::Order::kRandom, 5}, 1);
    check_one<TypeParam, OutOf<TypeParam>>(kind, lines.extents, lines.axes, Pattern::kOrdinary,
                                           {testing::Order::kRandom, 6}, 1);
    if (this->HasFatalFailure()) return;
  }
  check_one<TypeParam, std::int64_t>(ReductionKind::kArgMax, rows.extents, rows.axes, Pattern::kOrdinary, {});
  check_one<TypeParam, std::int64_t>(ReductionKind::kArgMin, columns.extents, columns.axes, Pattern::kOrdinary, {});
}

TEST(Reduction, ManyShortRows) {
  const Shape rows = {{131072, 13}, {1}};
  FoldedAxes folded;
  ASSERT_EQ(fold_axes(rows.extents.data(), 2, rows.axes.data(), 1, &folded), Status::kOk);
  ReductionPlan plan;
  ASSERT_EQ(plan_reduction(folded, Vector<float>::kSize, 4, true, &plan), Status::kOk);
  ASSERT_GT(plan.rows_each, 1U);
  check_one<float, float>(ReductionKind::kSum, rows.extents, rows.axes, Pattern::kOrdinary, {});
}

template <typename T>
class Integer : public ::testing::Test {};
using IntegerTypes = ::testing::Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t>;
TYPED_TEST_SUITE(Integer, IntegerTypes);

TYPED_TEST(Integer, EdgeShapesAreExact) {
  std::size_t turn = 0;
  for (const Shape& shape : edge_shapes()) {
    for (const ReductionKind kind : kIntegerKinds) {
      const testing::Schedule schedule = testing::schedules(3)[turn % 3];
      check_one<TypeParam, TypeParam>(kind, shape.extents, shape.axes, Pattern::kOrdinary, schedule, turn / 3 % 2);
      ++turn;
    }
    check_one<TypeParam, std::int64_t>(ReductionKind::kSum, shape.extents, shape.axes, Pattern::kOrdinary, {});
    if (empty_reduction(shape)) continue;
    check_one<TypeParam, float>(ReductionKind::kMean, shape.extents, shape.axes, Pattern::kSpecial, {});
    for (const bool last : {false, true}) {
      check_one<TypeParam, std::int32_t>(ReductionKind::kArgMax, shape.extents, shape.axes, Pattern::kSpecial, {}, 0,
                                         last);
      if (sizeof(TypeParam) <= 4) {
        check_one<TypeParam, std::int64_t>(ReductionKind::kArgMin, shape.extents, shape.axes, Pattern::kOrdinary, {}, 0,
                                           last);
      }
    }
    check_one<TypeParam, std::uint8_t>(ReductionKind::kAll, shape.extents, shape.axes, Pattern::kSpecial, {});
    if (this->HasFatalFailure()) return;
  }
}

// The synchronisation structures: lanes of a warp, a block, splits with a ticket; along rows and down columns. With one
// cheap monoid that shows order (float sums of mixed scales) the bits must not depend on the schedule.
struct Structure {
  const char* name;
  std::vector<std::int64_t> extents;
  std::vector<int> axes;
  unsigned splits;
  int schedules = 200;
};

class Structures : public ::testing::TestWithParam<Structure> {};

template <typename T>
void run_structure(const Structure& structure, ReductionKind kind, int count) {
  const std::int64_t total =
      std::accumulate(structure.extents.begin(), structure.extents.end(), std::int64_t{1}, std::multiplies<>());
  Reduction request;
  request.kind = kind;
  request.dtype = Traits<T>::kDtype;
  request.result_dtype = kind == ReductionKind::kArgMax ? Dtype::kInt64 : Dtype::kFloat32;
  request.extents = structure.extents.data();
  request.rank = static_cast<int>(structure.extents.size());
  request.axes = structure.axes.data();
  request.axis_count = static_cast<int>(structure.axes.size());
  FoldedAxes folded;
  ASSERT_EQ(fold_axes(request.extents, request.rank, request.axes, request.axis_count, &folded), Status::kOk);
  ReductionPlan plan;
  ASSERT_EQ(plan_reduction(folded, Vector<T>::kSize, 4, kind != ReductionKind::kArgMax, &plan), Status::kOk);
  // An index has no columns to merge: its plan is another one.
  if (kind != ReductionKind::kArgMax) {
    ASSERT_EQ(plan.splits > 1, structure.splits > 1);
  }
  Buffer<T> input(static_cast<std::size_t>(total), Access::kReadOnly, "input");
  fill(input, Pattern::kMixedScales, 3);
  std::size_t bytes = 0;
  ASSERT_EQ(reduction_workspace(request, &bytes), Status::kOk);
  // One workspace for all runs: the tickets must be left at zero.
  Buffer<std::uint32_t> workspace(bytes / 4, Access::kWriteFirst, "workspace");
  ASSERT_EQ(initialize_reduction_workspace(workspace.data(), bytes, nullptr), Status::kOk);
  std::vector<std::uint64_t> first;
  for (const testing::Schedule& schedule : testing::schedules(count)) {
    // Results of 4 and of 8 bytes, in cells of 4.
    Buffer<std::uint64_t> result(static_cast<std::size_t>(folded.results()), Access::kWriteFirst, "result", 0, 4);
    std::fill(result.data(), result.data() + result.size(), 0);
    testing::use(schedule);
    ASSERT_EQ(reduce(request, input.data(), result.data(), workspace.data(), bytes, nullptr), Status::kOk);
    ASSERT_TRUE(testing::clean()) << "seed " << schedule.seed;
    const std::vector<std::uint64_t> bits(result.data(), result.data() + result.size());
    if (first.empty()) first = bits;
    ASSERT_EQ(bits, first) << "seed " << schedule.seed;
  }
}

TEST_P(Structures, SameBitsInEverySchedule) {
  const int count = testing::schedule_count(GetParam().schedules);
  run_structure<float>(GetParam(), ReductionKind::kSum, count);
  run_structure<BFloat16>(GetParam(), ReductionKind::kLogSumExp, count / 10);
  run_structure<float>(GetParam(), ReductionKind::kArgMax, count / 10);
}

INSTANTIATE_TEST_SUITE_P(
    All, Structures,
    ::testing::Values(Structure{"lanes", {19, 40}, {1}, 1}, Structure{"block", {3, 2100}, {1}, 1},
                      Structure{"row_splits", {40000}, {0}, 2},
                      Structure{"row_splits_of_3_rows", {3, 33000}, {1}, 2, 30}, Structure{"columns", {50, 96}, {0}, 1},
                      Structure{"column_groups", {9, 5, 3}, {1}, 1}, Structure{"column_splits", {8300, 8}, {0}, 2},
                      Structure{"column_splits_of_3_sets", {3, 4200, 16}, {1}, 2, 30},
                      Structure{"column_splits_of_2_tiles", {400, 160}, {0}, 2, 40},
                      Structure{"segments", {4, 3, 50}, {0, 2}, 1}, Structure{"columns_of_3", {2000, 3}, {0}, 1},
                      Structure{"splits_of_columns_of_3", {30000, 3}, {0}, 2, 20},
                      Structure{"segments_side_by_side", {6, 8, 49}, {0, 2}, 1, 60},
                      Structure{"splits_of_segments", {1000, 8, 9}, {0, 2}, 2, 30}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Reduction, ErrorsAreReturned) {
  const std::int64_t extents[] = {4, 0};
  const int axis = 1;
  Reduction request;
  request.extents = extents;
  request.rank = 2;
  request.axes = &axis;
  request.axis_count = 1;
  float value[4] = {};
  request.kind = ReductionKind::kArgMax;
  request.result_dtype = Dtype::kInt64;
  EXPECT_EQ(reduce(request, value, value, nullptr, 0, nullptr), Status::kEmptyArgument);
  request.result_dtype = Dtype::kFloat32;
  EXPECT_EQ(reduce(request, value, value, nullptr, 0, nullptr), Status::kUnsupportedDtype);
  request.kind = ReductionKind::kSum;
  request.result_dtype = Dtype::kFloat8E4M3;
  EXPECT_EQ(reduce(request, value, value, nullptr, 0, nullptr), Status::kUnsupportedDtype);
  request.result_dtype = Dtype::kFloat32;
  EXPECT_EQ(reduce(request, nullptr, nullptr, nullptr, 0, nullptr), Status::kNullPointer);
  const int bad = 2;
  request.axes = &bad;
  EXPECT_EQ(reduce(request, value, value, nullptr, 0, nullptr), Status::kBadShape);
  const std::int64_t negative[] = {4, -1};
  request.axes = &axis;
  request.extents = negative;
  EXPECT_EQ(reduce(request, value, value, nullptr, 0, nullptr), Status::kBadShape);
  const std::int64_t huge[] = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  request.extents = huge;
  EXPECT_EQ(reduce(request, value, value, nullptr, 0, nullptr), Status::kBadShape);
  const std::int64_t large[] = {100000};
  const int zero = 0;
  request.extents = large;
  request.rank = 1;
  request.axes = &zero;
  alignas(16) static float many[100000];
  alignas(16) static unsigned char space[4096];
  EXPECT_EQ(reduce(request, many, value, space, 8, nullptr), Status::kWorkspaceTooSmall);
  EXPECT_EQ(reduce(request, reinterpret_cast<char*>(many) + 1, value, space, sizeof space, nullptr),
            Status::kMisaligned);
  request.dtype = Dtype::kInt32;
  request.kind = ReductionKind::kLogSumExp;
  EXPECT_EQ(reduce(request, many, value, space, sizeof space, nullptr), Status::kUnsupportedDtype);
}

}  // namespace
}  // namespace tensorlint::kernels
